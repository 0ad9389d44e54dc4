/** Waits for a handler: until it ends, its deadline passes, or the client takes the call back. */

/** How a handler ended. */
export type Ended =
  | { how: "returned"; value: unknown }
  | { how: "threw"; error: unknown }
  | { how: "timeout"; afterMs: number }
  | { how: "cancelled"; reason: unknown };

export interface Limits {
  deadlineMs: number;
  /** A deadline that starts again ends here. */
  maxDeadlineMs: number;
  /** Aborted when the client does not want the answer any more. */
  signal?: AbortSignal | undefined;
}

/** A handler. Its signal tells it when its call has ended without it. */
export type Watched = (signal: LateSignal) => unknown;

/** The longest delay of a timer; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Runs a handler and tells once how it ended, and later how it ended after that. What it returns
 * starts the deadline again. There is no promise of its own: most calls are successes, and wait.
 */
export function watch(
  handler: Watched,
  { deadlineMs, maxDeadlineMs, signal }: Limits,
  settled: (ended: Ended) => void,
  late: (ended: Ended) => void,
): () => void {
  const inner = new LateSignal();
  const since = performance.now();
  let isOpen = true;
  const end = (ended: Ended): void => {
    if (!isOpen) return late(ended);
    isOpen = false;
    clearTimeout(timer);
    signal?.removeEventListener("abort", cancel);
    settled(ended);
    if (ended.how === "timeout" || ended.how === "cancelled") inner.abort(signal?.reason);
  };
  const cancel = (): void => end({ how: "cancelled", reason: signal?.reason });
  const expire = (): void => end({ how: "timeout", afterMs: Math.round(performance.now() - since) });
  const timer = deadlineMs > LONGEST_TIMER ? undefined : setTimeout(expire, deadlineMs);
  if (signal?.aborted) cancel();
  else signal?.addEventListener("abort", cancel, { once: true });
  try {
    Promise.resolve(handler(inner)).then(
      (value) => end({ how: "returned", value }),
      (error: unknown) => end({ how: "threw", error }),
    );
  } catch (error) {
    end({ how: "threw", error });
  }
  return () => {
    if (isOpen && performance.now() - since + deadlineMs <= maxDeadlineMs) timer?.refresh();
  };
}

/** A signal that is only made for handlers that look at it: making one costs more than a call. */
export class LateSignal {
  #controller: AbortController | undefined;
  #isAborted = false;
  #reason: unknown;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}
