/** Failures: what a handler throws. */

import type { Contract } from "./contract.js";
import type { Fault } from "./fault.js";
import { type AnyFacts, type Drafted, type Report, drafted } from "./report.js";

/** The same for every copy of this package in a process. */
const BRAND = Symbol.for("faultwire.failure");

/**
 * A failure of one code, to be thrown from anywhere below a handler. The boundary records it, and
 * its client gets the envelope.
 *
 * A code that the contract does not have, or facts that its row does not allow, are refused here
 * (K3). The generated modules have a function for each code, which the compiler checks.
 *
 * ```ts
 * import { Contract, Failure } from "faultwire";
 *
 * const contract = Contract.builtin("standard");
 * const failure = new Failure(contract, "rate_limited", { retryAfterMs: 2000 });
 * console.log(failure.code, failure.retryAfterMs); // rate_limited 2000
 * ```
 */
export class Failure<C extends string = string> extends Error {
  override readonly name: string = "Failure";
  readonly contract: Contract;
  readonly code: C;
  /** All that it was made with. */
  readonly facts: Readonly<AnyFacts>;
  /** @internal */
  readonly drafted: Drafted;
  readonly #accepted: Fault;

  constructor(contract: Contract, code: C, facts: AnyFacts = {}) {
    const draft = drafted(code, facts);
    const accepted = contract.drafted(draft.text, draft.unfit);
    const message = facts.message ?? contract.row(code)?.message ?? code;
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.contract = contract;
    this.code = code;
    this.facts = Object.freeze({ ...facts });
    this.drafted = draft;
    this.#accepted = accepted;
    for (const hidden of ["contract", "facts", "drafted", "name"]) {
      Object.defineProperty(this, hidden, { enumerable: false });
    }
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** One of another copy of this package is one, too. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this !== Failure) return Function.prototype[Symbol.hasInstance].call(this, value);
    return isFailure(value);
  }

  /** The fault that it is. A boundary makes a better one, which knows the call. */
  get fault(): Fault {
    return this.#accepted;
  }

  /** What it says, as JSON; not redacted. */
  get report(): Report {
    return JSON.parse(this.drafted.text) as Report;
  }

  /** The HTTP status. */
  get status(): number {
    return this.#accepted.status;
  }

  get next(): AnyFacts["next"] {
    return this.facts.next;
  }

  get suggestion(): AnyFacts["suggestion"] {
    return this.facts.suggestion;
  }

  get details(): AnyFacts["details"] {
    return this.facts.details;
  }

  get data(): AnyFacts["data"] {
    return this.facts.data;
  }

  get retry(): AnyFacts["retry"] {
    return this.facts.retry;
  }

  get retryAfterMs(): AnyFacts["retryAfterMs"] {
    return this.facts.retryAfterMs;
  }

  get invariant(): AnyFacts["invariant"] {
    return this.facts.invariant;
  }

  get session(): AnyFacts["session"] {
    return this.facts.session;
  }

  /** What a client may know of it, so that logging it as JSON shows nothing private. */
  toJSON(): Report {
    return this.#accepted.report();
  }
}

/** Whether a value is a failure: of any contract, or of one, or with one of these codes. */
export function isFailure<C extends string = string>(
  value: unknown,
  contract?: Contract,
  ...only: C[]
): value is Failure<C> {
  if (typeof value !== "object" || value === null || !(BRAND in value)) return false;
  const failure = value as unknown as Failure<C>;
  return (
    (contract === undefined || failure.contract.name === contract.name) &&
    (only.length === 0 || only.includes(failure.code))
  );
}
