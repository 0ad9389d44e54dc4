/** Four ways to make a failure of facts that are only known at run time (K6). */

import type { Contract } from "./contract.js";
import { Failure, isFailure } from "./failure.js";
import type { AnyFacts } from "./report.js";

/** What is known around a failure; all of it is kept. */
export interface Context extends AnyFacts {
  /** The code, if what failed has none that is registered. */
  code?: string | undefined;
}

/** The name of the startup, in place of a tool. */
const STARTUP = "startup";

/**
 * The failure that anything thrown is. Its own code is kept if the contract has it; otherwise the
 * code of the context is used, then the contract's fallback (K7).
 *
 * ```ts
 * import { Contract, fromUnknown } from "faultwire";
 *
 * const contract = Contract.builtin("standard");
 * const failure = fromUnknown(contract, new Error("disk on fire"), { code: "unavailable" });
 * console.log(failure.code, failure.message); // unavailable disk on fire
 * ```
 */
export function fromUnknown(contract: Contract, error: unknown, context: Context = {}): Failure {
  const { code, ...facts } = context;
  if (isFailure(error, contract)) return withFacts(error, facts);
  const own = [ownCode(error), code].find((one) => one !== undefined && contract.row(one));
  return new Failure(contract, own ?? contract.describe().fallback, {
    ...facts,
    message: facts.message ?? ownMessage(error),
    cause: facts.cause ?? (error === null ? undefined : error),
  });
}

/** The failure of an invariant that was violated. */
export function invariantViolation(
  contract: Contract,
  invariant: string,
  context: Context = {},
): Failure {
  const { code, ...facts } = context;
  const own = code !== undefined && contract.row(code) ? code : contract.invariantCode;
  return new Failure(contract, own, { ...facts, invariant });
}

/** The failure of a tool. */
export function toolFailure(contract: Contract, code: string, context: AnyFacts = {}): Failure {
  return new Failure(contract, code, context);
}

/** The failure of the startup, when there is no tool yet. */
export function startupFailure(contract: Contract, code: string, context: AnyFacts = {}): Failure {
  const condition = context.condition ?? "bootstrap_failed";
  return new Failure(contract, code, { ...context, condition, tool: STARTUP });
}

/** The same failure, with facts that it did not have. */
function withFacts(failure: Failure, facts: AnyFacts): Failure {
  if (Object.keys(known(facts)).length === 0) return failure;
  const session = { ...known(facts.session), ...known(failure.facts.session) };
  const all = { ...known(facts), ...known(failure.facts), session };
  const same = new Failure(failure.contract, failure.code, all);
  if (failure.stack !== undefined) same.stack = failure.stack;
  return same;
}

/** The members that say something. */
function known<T extends object>(facts: T | undefined): Partial<T> {
  const said = Object.entries(facts ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said) as Partial<T>;
}

/** The names under which things that are thrown have their code, and their message. */
const CODES = ["code", "error_code"];
const MESSAGES = ["message", "human_message", "error"];

function ownCode(thrown: unknown): string | undefined {
  return member(thrown, CODES);
}

function ownMessage(thrown: unknown): string | undefined {
  const message = typeof thrown === "string" ? thrown : member(thrown, MESSAGES);
  // A thrown value without a message gets the canonical one, not an empty text (K7).
  return message === "" ? undefined : message;
}

function member(value: unknown, names: readonly string[]): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = names.map((name) => (value as Record<string, unknown>)[name]);
  return found.find((one): one is string => typeof one === "string");
}
