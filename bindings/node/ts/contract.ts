/** Contracts: codes, and everything that is known of them. */

import { readFileSync } from "node:fs";

import { engine } from "./error.js";
import { Fault } from "./fault.js";
import { textOf } from "./json.js";
import { type NativeContract, native } from "./native.js";
import type { Report, RetryKind } from "./report.js";

/** The row of a code. Lists have the default first. */
export interface Row {
  readonly id: string;
  readonly category: string;
  readonly retry: RetryKind | readonly RetryKind[];
  readonly retryable: boolean;
  readonly status: number | readonly number[];
  readonly message: string;
  readonly meaning: string;
  /** What a client should do. */
  readonly action: string;
  readonly since: string;
  readonly after_ms?: number;
  readonly keeps_data?: boolean;
  readonly outcome?: string;
  readonly retired?: { readonly since: string; readonly successor: string };
}

/** Everything in a contract, as `faultwire contract show --json` prints it. */
export interface Description {
  readonly name: string;
  readonly version: string;
  readonly title: string;
  readonly fallback: string;
  readonly profiles: readonly string[];
  readonly codes: readonly Row[];
  /** The code of each condition. */
  readonly conditions: Readonly<Record<string, string>>;
  /** Whether successes are wrapped, too. */
  readonly success: boolean;
  readonly [more: string]: unknown;
}

/** A moment and a random number, where a test or a replay names them. */
export interface Stamp {
  nowMs: number;
  random?: number | undefined;
  showStack?: boolean | undefined;
}

/** What is known of a call that may be sent again. */
export interface RetryContext {
  /** How often it was sent, from 1. */
  attempt?: number | undefined;
  readOnly?: boolean | undefined;
  idempotent?: boolean | undefined;
  /** How many retries are left. */
  budget?: number | undefined;
}

/** Whether and when to send a call again. */
export interface RetryAnswer {
  retry: boolean;
  delayMs: number | null;
  maxDelayMs: number | null;
  action: string;
  code: string;
  reason: string;
}

/** Kinds of text that stay in spite of redaction. */
export type Keep = "paths" | "addresses" | "frames" | "personal";

/** The longest line of a server that is read. */
const LONGEST_LINE = 16 * 1024 * 1024;

/**
 * A contract: its codes, and the envelopes that tell clients of failures.
 *
 * ```ts
 * import { Contract } from "faultwire";
 *
 * const contract = Contract.builtin("standard");
 * console.log(contract.row("rate_limited")?.retryable); // true
 * ```
 */
export class Contract {
  /** @internal */
  readonly native: NativeContract;
  readonly name: string;
  readonly version: string;
  /** The rows of its codes, by name. */
  readonly codes: Readonly<Record<string, Row>>;
  readonly #description: Description;

  private constructor(loaded: NativeContract) {
    this.native = loaded;
    this.#description = freeze(JSON.parse(engine(() => loaded.describe())) as Description);
    this.name = this.#description.name;
    this.version = this.#description.version;
    const rows = this.#description.codes.map((row) => [row.id, row] as const);
    this.codes = Object.freeze(Object.fromEntries(rows));
  }

  static readonly #builtin = new Map<string, Contract>();

  /** A built-in contract. */
  static builtin(name: string): Contract {
    const known = Contract.#builtin.get(name);
    if (known !== undefined) return known;
    const contract = new Contract(engine(() => native.NativeContract.builtin(name)));
    Contract.#builtin.set(name, contract);
    return contract;
  }

  /** The names of the built-in contracts. */
  static builtins(): string[] {
    return native.builtins();
  }

  /** The contract in a file. */
  static load(path: string): Contract {
    return Contract.parse(path, readFileSync(path, "utf8"));
  }

  /** The contract in the text of a file; the name is used in errors. */
  static parse(name: string, text: string): Contract {
    return new Contract(engine(() => native.NativeContract.load(name, text)));
  }

  /** Everything in it. */
  describe(): Description {
    return this.#description;
  }

  /** The row of a code, if there is one. */
  row(code: string): Row | undefined {
    return Object.hasOwn(this.codes, code) ? this.codes[code] : undefined;
  }

  /** The code of a violated invariant for which no other is named. */
  get invariantCode(): string {
    return this.native.invariantCode;
  }

  /** A fault of a report. A code that the contract does not have is refused (K3). */
  fault(report: Report, stamp?: Stamp): Fault {
    return this.drafted(textOf(report), [], stamp);
  }

  /** @internal */
  drafted(report: string, unfit: string[], stamp?: Stamp): Fault {
    const wrong = unfit.length > 0 ? unfit : undefined;
    return new Fault(engine(() => this.native.fault(report, stamped(stamp), wrong)));
  }

  /** The report in an envelope. */
  decode(envelope: string, options: { surface?: string; profile?: string } = {}): Report {
    const { surface, profile } = options;
    return JSON.parse(engine(() => this.native.decode(envelope, surface, profile))) as Report;
  }

  /** What a line that a server sent is: `{failure: false}`, or the failure and its rule. */
  classify(
    line: string | Uint8Array,
    options: { call?: unknown; why?: boolean; limit?: number } = {},
  ): { failure: boolean; rule?: string } & Partial<Report> & Record<string, unknown> {
    const bytes = typeof line === "string" ? Buffer.from(line) : line;
    const call = options.call === undefined ? undefined : textOf(options.call);
    const limit = options.limit ?? LONGEST_LINE;
    return JSON.parse(
      engine(() => this.native.classify(bytes, limit, call, options.why ?? false)),
    );
  }

  /** The text without credentials, and without all else that is not kept by its kind. */
  redact(text: string, options: { keep?: readonly Keep[] } = {}): string {
    return engine(() => this.native.redact(text.toWellFormed(), [...(options.keep ?? [])]));
  }

  /** Whether and when to send a call again that was answered with this envelope. */
  retry(
    envelope: string,
    context: RetryContext & { surface?: string } = {},
    stamp?: Stamp,
  ): RetryAnswer {
    const { surface, ...rest } = context;
    const known = retryContext(rest);
    const told = engine(() => this.native.retry(envelope, surface, known, stamped(stamp)));
    const { delay_ms: delayMs, max_delay_ms: maxDelayMs, ...answer } = JSON.parse(told);
    return { ...answer, delayMs, maxDelayMs };
  }
}

/** @internal */
export function stamped(stamp: Stamp | undefined): string | undefined {
  if (stamp === undefined) return undefined;
  const { nowMs, random, showStack } = stamp;
  return textOf({ now_ms: nowMs, random, show_stack: showStack });
}

/** @internal */
export function retryContext(context: RetryContext): string {
  const { attempt, readOnly, idempotent, budget } = context;
  return textOf({ attempt, read_only: readOnly, idempotent, budget });
}

/** The text without credentials, paths, addresses, stack frames and personal data. */
export function redact(text: string, options: { keep?: readonly Keep[] } = {}): string {
  return engine(() => native.redact(text.toWellFormed(), [...(options.keep ?? [])]));
}

function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}
