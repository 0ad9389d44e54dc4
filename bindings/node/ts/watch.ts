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

export interface Watched {
  ended: Promise<Ended>;
  touch: () => void;
}

/** The longest delay of a timer; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Runs a handler, with a signal that tells it when nobody waits for it. */
export function watch(
  handler: (signal: AbortSignal) => unknown,
  limits: Limits,
  late: (ended: Ended) => void,
): Watched {
  const inner = new AbortController();
  const since = performance.now();
  const { deadlineMs, maxDeadlineMs, signal } = limits;
  let touch = (): void => {};
  const ended = new Promise<Ended>((resolve) => {
    let isOpen = true;
    const end = (how: Ended): void => {
      if (!isOpen) return late(how);
      isOpen = false;
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
      resolve(how);
      if (how.how === "timeout" || how.how === "cancelled") inner.abort(signal?.reason);
    };
    const cancel = (): void => end({ how: "cancelled", reason: signal?.reason });
    const expire = (): void => end({ how: "timeout", afterMs: Math.round(performance.now() - since) });
    const timer =
      deadlineMs > LONGEST_TIMER ? undefined : setTimeout(expire, deadlineMs);
    touch = () => {
      if (isOpen && performance.now() - since + deadlineMs <= maxDeadlineMs) timer?.refresh();
    };
    if (signal?.aborted) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
    try {
      Promise.resolve(handler(inner.signal)).then(
        (value) => end({ how: "returned", value }),
        (error: unknown) => end({ how: "threw", error }),
      );
    } catch (error) {
      end({ how: "threw", error });
    }
  });
  return { ended, touch: () => touch() };
}
