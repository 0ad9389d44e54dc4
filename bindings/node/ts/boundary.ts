/** The boundary: whatever a handler does, its client gets one answer, recorded before it is sent. */

import { type AuditLog, logOf } from "./audit.js";
import { observeBackground } from "./background.js";
import { OpenCall, current } from "./call.js";
import type { Contract } from "./contract.js";
import { engine } from "./error.js";
import { failureOf, isOfTheSdk, messageOf } from "./failing.js";
import { textOf } from "./json.js";
import { type NativeBoundary, native } from "./native.js";
import { type BoundaryOptions, DEFAULTS, contractOf, settingsOf } from "./options.js";
import type { SessionFacts } from "./report.js";
import { type Told, isProtocolError, spoken } from "./thrown.js";
import { type Ended, type Limits, type Watched, watch } from "./watch.js";

/** How an answer is sent. */
export type Form = "result" | "error" | "http";

/** An answer of the engine. */
export interface Answer {
  answer: unknown;
  code: string;
  incident: string | null;
  recorded: boolean;
  status?: number;
  headers?: Record<string, string>;
}

/** What the front knows of a request. */
export interface GuardOptions {
  /** Aborted when the client does not want the answer any more. */
  signal?: AbortSignal | undefined;
  /** The handler may take as long as it likes. */
  unlimited?: boolean;
  /** The engine has to read every result. */
  readsResult?: boolean;
  /** What an error is, where the front knows better. */
  told?: (error: unknown) => Told;
}

/** A JSON-RPC error, as the SDKs send errors that are thrown. */
export class RpcReply extends Error {
  override name = "RpcReply";
  readonly code: number;
  readonly data: object;

  constructor(error: { code: number; message: string; data: object }) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
    recorded.add(error.data);
  }
}

/** What the errors of boundaries carry, by which they are known again on their way out. */
const recorded = new WeakSet<object>();

/** The client is asked for something in the form of an error: that is the protocol's, and no failure. */
const QUESTIONS: ReadonlySet<number> = new Set([-32042]);

/** Whether an error can be sent as it is: a boundary made it, or it is a question. */
export function isSettled(error: { code: number; data?: unknown }): boolean {
  const { code, data } = error;
  return QUESTIONS.has(code) || (typeof data === "object" && data !== null && recorded.has(data));
}

export class Boundary {
  readonly contract: Contract;
  /** The log, unless there is none. */
  readonly log: AuditLog | undefined;
  /** @internal */
  readonly native: NativeBoundary;
  /** @internal */
  readonly options: BoundaryOptions;
  /** Whether the contract has rules for sessions. */
  readonly hasSessions: boolean;
  /** Whether every result of a tool has to be read by the engine. */
  readonly #readsAll: boolean;
  readonly #refuses: boolean;

  constructor(options: BoundaryOptions, server: string) {
    this.options = options;
    this.contract = contractOf(options);
    this.log = logOf(options.audit, options.name ?? server);
    const log = this.log?.native ?? null;
    this.native = engine(
      () => new native.NativeBoundary(this.contract.native, log, settingsOf(options)),
    );
    this.hasSessions = this.native.hasSessions;
    this.#readsAll = this.hasSessions || this.contract.describe().success;
    this.#refuses = this.hasSessions || options.arguments === "enforce";
    observeBackground(this);
  }

  /** How many failures had a code that their tool does not declare. */
  get undeclared(): number {
    return this.native.undeclared;
  }

  /** How many successes did not match the output schema of their tool. */
  get mismatched(): number {
    return this.native.mismatched;
  }

  /**
   * Runs the handler of a request. The promise has what is sent; it is rejected with the JSON-RPC
   * error if the form is `error`.
   * @internal
   */
  guard(
    call: OpenCall,
    form: Form,
    handler: Watched,
    how: GuardOptions = {},
  ): Promise<unknown> {
    const refused = this.#refusal(call, form);
    if (refused !== null) return refused.then((answer) => this.#sent(answer, form));
    return new Promise((resolve, reject) => {
      const settled = (ended: Ended): void => {
        if (ended.how === "returned" && this.#passes(call, ended.value, how)) resolve(ended.value);
        else this.#settle(call, form, ended, how).then(resolve, reject);
      };
      const late = (ended: Ended): void => this.#late(call, ended);
      const run: Watched = (signal) => current.run(call, handler, signal);
      call.touch = watch(run, this.#limits(call, how), settled, late);
    });
  }

  #limits(call: OpenCall, how: GuardOptions): Limits {
    const { deadlineMs = DEFAULTS.deadlineMs, maxDeadlineMs = DEFAULTS.maxDeadlineMs } = this.options;
    const own = (call.tool === undefined ? undefined : this.options.deadlines?.[call.tool]) ?? deadlineMs;
    return {
      deadlineMs: how.unlimited ? Number.POSITIVE_INFINITY : own,
      maxDeadlineMs: Math.max(maxDeadlineMs, own),
      signal: how.signal,
    };
  }

  /** Whether a result certainly is a success: nothing else has to be known of its call then. */
  #passes(call: OpenCall, result: unknown, how: GuardOptions): boolean {
    if (typeof result !== "object" || result === null || call.inner.did === "threw") return false;
    if (!call.isTool) return this.#isJson(result);
    if (this.#readsAll || how.readsResult === true) return false;
    const { isError } = result as { isError?: unknown };
    try {
      return isError !== true && this.native.passes(textOf(result));
    } catch {
      return false;
    }
  }

  /** Whether a result can be sent at all. */
  #isJson(result: object): boolean {
    try {
      return textOf(result).length > 0;
    } catch {
      return false;
    }
  }

  async #settle(call: OpenCall, form: Form, ended: Ended, how: GuardOptions): Promise<unknown> {
    switch (ended.how) {
      case "timeout": {
        const words = `No answer within ${seconds(ended.afterMs)}`;
        return await this.fail(call, { how: "timeout", what: words }, form);
      }
      case "cancelled": {
        const why = typeof ended.reason === "string" ? `: ${ended.reason}` : "";
        return await this.fail(call, { how: "cancelled", what: `Cancelled by the client${why}` }, form);
      }
      case "threw": {
        const { error } = ended;
        if (isProtocolError(error) && QUESTIONS.has(error.code)) throw error;
        return await this.fail(call, how.told?.(error) ?? failureOf(call, error), form);
      }
      case "returned":
        return await this.#returned(call, form, ended.value);
    }
  }

  async #returned(call: OpenCall, form: Form, result: unknown): Promise<unknown> {
    if (typeof result !== "object" || result === null) {
      const words = `The handler returned ${result === null ? "null" : typeof result}, and no result`;
      return await this.fail(call, { how: "upstream_protocol", what: words }, form);
    }
    const failed = call.isTool && (result as { isError?: unknown }).isError === true;
    const { did } = call.inner;
    if (did === "threw" || (failed && (did === "refused" || isOfTheSdk(call.inner)))) {
      return await this.fail(call, failureOf(call, result), form);
    }
    const said = failed && did === "nothing" ? spoken(messageOf(result)) : undefined;
    if (said !== undefined) return await this.fail(call, said, form);
    let text: string;
    try {
      text = textOf(result);
    } catch (error) {
      const words = `The result cannot be written as JSON: ${messageOf(error)}`;
      return await this.fail(call, { how: "upstream_protocol", what: words }, form);
    }
    if (!call.isTool) return result;
    const facts = call.facts(this.#session());
    const judged = engine(() => this.native.returned(facts, call.standing, text, form));
    if (judged === null) return result;
    return typeof judged === "string" ? JSON.parse(judged) : this.#sent(await judged, form);
  }

  /**
   * Records a failure, then gives what is sent.
   * @internal
   */
  async fail(call: OpenCall, { how, what }: Told, form: Form): Promise<unknown> {
    return this.#sent(await this.recorded(call, { how, what }, form), form);
  }

  /** @internal */
  async recorded(call: OpenCall, { how, what }: Told, form: Form): Promise<string> {
    try {
      return await this.native.failed(call.facts(this.#session()), call.standing, how, what, form);
    } catch (error) {
      // The answer must not depend on whether the engine can read what failed.
      const words = `The failure could not be read: ${messageOf(error)}`;
      return await this.native.failed(call.leastFacts(), call.standing, "internal", words, form);
    }
  }

  #refusal(call: OpenCall, form: Form): Promise<string> | null {
    if (!this.#refuses || !call.isTool) return null;
    return engine(() => this.native.refusal(call.facts(this.#session()), call.standing, form));
  }

  #sent(answered: string, form: Form): unknown {
    const answer = JSON.parse(answered) as Answer;
    if (form === "result") return answer.answer;
    if (form === "http") return answer;
    throw new RpcReply(answer.answer as { code: number; message: string; data: object });
  }

  /** A handler that ended after its call. */
  #late(call: OpenCall, ended: Ended): void {
    const failed = ended.how === "threw" ? messageOf(ended.error) : undefined;
    const { method, tool, request } = call;
    this.native.event("late_answer", textOf({ method, tool, request, failed }));
  }

  /** What is known of the session; a function that fails must not prevent the answer. */
  #session(): SessionFacts | undefined {
    const { session } = this.options;
    if (typeof session !== "function") return undefined;
    try {
      return session();
    } catch {
      return undefined;
    }
  }
}

function seconds(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${Math.round(ms / 100) / 10} s`;
}
