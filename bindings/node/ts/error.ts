/** Errors of the engine: what is wrong, where, and what to do. */

/** What the engine says of an error. */
interface Told {
  kind: string;
  what: string;
  file: string | null;
  line: number | null;
  column: number | null;
  help: string | null;
  text: string;
}

/**
 * An error of the engine. Each kind has a class of its own.
 *
 * ```ts
 * import { Contract, UnknownContractError } from "faultwire";
 *
 * try {
 *   Contract.builtin("standart");
 * } catch (error) {
 *   if (!(error instanceof UnknownContractError)) throw error;
 *   console.log(error.help); // did you mean "standard"?
 * }
 * ```
 */
export class FaultwireError extends Error {
  override name = "FaultwireError";
  /** The kind, such as `unknown_code`. */
  readonly kind: string;
  /** What is wrong, without its place. */
  readonly what: string;
  /** The file, or the name that was given. */
  readonly file: string | undefined;
  /** The line in the file, from 1. */
  readonly line: number | undefined;
  /** The column in the line, from 1. */
  readonly column: number | undefined;
  /** What to do. */
  readonly help: string | undefined;

  constructor(told: Told) {
    const says = told.help !== null && !told.text.includes(told.help);
    super(says ? `${told.text}\nhelp: ${told.help}` : told.text);
    this.kind = told.kind;
    this.what = told.what;
    this.file = told.file ?? undefined;
    this.line = told.line ?? undefined;
    this.column = told.column ?? undefined;
    this.help = told.help ?? undefined;
  }
}

/** A contract file has mistakes; the message lists all of them. */
export class ContractError extends FaultwireError {
  override name = "ContractError";
}
/** There is no built-in contract of this name. */
export class UnknownContractError extends FaultwireError {
  override name = "UnknownContractError";
}
/** The contract has no such code. */
export class UnknownCodeError extends FaultwireError {
  override name = "UnknownCodeError";
}
/** The contract does not allow this failure. */
export class FaultError extends FaultwireError {
  override name = "FaultError";
}
/** This is not an envelope of the contract. */
export class EnvelopeError extends FaultwireError {
  override name = "EnvelopeError";
}
/** The input is not what the engine expects. */
export class InputError extends FaultwireError {
  override name = "InputError";
}
/** The audit log cannot be opened or written. */
export class AuditError extends FaultwireError {
  override name = "AuditError";

  /** Whether another process, or another part of this one, writes the log. */
  get isLocked(): boolean {
    return this.what.includes("the log is in use by");
  }
}
/** A bug of the engine. */
export class InternalError extends FaultwireError {
  override name = "InternalError";
}

const KINDS: Readonly<Record<string, new (told: Told) => FaultwireError>> = {
  contract: ContractError,
  unknown_contract: UnknownContractError,
  unknown_code: UnknownCodeError,
  fault: FaultError,
  envelope: EnvelopeError,
  input: InputError,
  audit: AuditError,
  internal: InternalError,
};

/** The exception for an error that the native part threw. */
export function translated(error: unknown): unknown {
  const message = error instanceof Error ? error.message : "";
  if (!message.startsWith('{"kind":')) return error;
  const told = JSON.parse(message) as Told;
  const translated = new (KINDS[told.kind] ?? FaultwireError)(told);
  Error.captureStackTrace?.(translated, engine);
  return translated;
}

/** Calls the engine; its errors become exceptions. */
export function engine<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw translated(error);
  }
}

/** An error of this package, for input that does not reach the engine. */
export function inputError(what: string, help: string): InputError {
  const [file, line, column] = [null, null, null];
  return new InputError({ kind: "input", what, file, line, column, help, text: what });
}
