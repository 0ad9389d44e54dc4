/** Failures of servers, as a client reads them. */

import { type Contract, type RetryContext, type Stamp, retryContext, stamped } from "./contract.js";
import { engine } from "./error.js";
import { textOf } from "./json.js";
import { type NativeReader, native } from "./native.js";
import type { Report } from "./report.js";

/** What is known of a server's failure, and what to do about it. */
export interface Verdict<C extends string = string> {
  /** The code, if the server named one. */
  readonly code: C | null;
  /** The contract of the code, if it is known. */
  readonly contract: string | null;
  readonly category: string | null;
  readonly message: string | null;
  /** The id to ask support with. */
  readonly incident: string | null;
  /** Whether to send the call again. */
  readonly retry: boolean;
  readonly delayMs: number | null;
  readonly maxDelayMs: number | null;
  /** Why, or why not: `retryable`, `never_retried`, `may_have_run`, `budget_spent`. */
  readonly reason: string;
  /** What to do instead, or until then. */
  readonly action: string;
  readonly class: string | null;
  /** All that the envelope says. */
  readonly fault: Report;
}

/** Reads failures of some contracts. */
export class Reader {
  readonly #native: NativeReader;

  /** Of these contracts; of all that are built in, if none is named. */
  constructor(contracts?: readonly Contract[]) {
    this.#native = engine(() =>
      contracts === undefined
        ? native.NativeReader.builtin()
        : new native.NativeReader(contracts.map((contract) => contract.native)),
    );
  }

  /** What to do about a failing result of `tools/call`, or a JSON-RPC error; nothing for a success. */
  verdict(reply: unknown, context: RetryContext = {}, stamp?: Stamp): Verdict | undefined {
    const known = retryContext(context);
    const text = textOf(reply);
    const read = engine(() => this.#native.verdict(text, known, stamped(stamp)));
    if (read === null) return undefined;
    const { delay_ms: delayMs, max_delay_ms: maxDelayMs, ...rest } = JSON.parse(read);
    return { ...rest, delayMs, maxDelayMs };
  }
}

let builtin: Reader | undefined;

/**
 * What to do about a failing result of `tools/call`, or a JSON-RPC error; nothing for a success.
 *
 * ```ts
 * import { Contract, verdict } from "faultwire";
 *
 * const fault = Contract.builtin("standard").fault({ code: "rate_limited", retry_after_ms: 2000 });
 * const result = JSON.parse(fault.render({ surface: "result" }));
 * const answer = verdict(result, { readOnly: true });
 * console.log(answer?.code, answer?.retry, answer?.delayMs); // rate_limited true 2000
 * ```
 */
export function verdict(
  reply: unknown,
  options: RetryContext & { contracts?: readonly Contract[] | undefined } = {},
): Verdict | undefined {
  const { contracts, ...context } = options;
  const reader = contracts ? new Reader(contracts) : (builtin ??= new Reader());
  return reader.verdict(reply, context);
}
