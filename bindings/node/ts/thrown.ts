/** What a handler threw, as the engine reads it. */

import { isFailure } from "./failure.js";
import { lenient, textOf } from "./json.js";

/** The range that JSON-RPC reserves: such a number is the protocol's, whatever class the error has. */
const RESERVED = { least: -32768, most: -32000 };

/** How a handler failed, for the engine: an error of the protocol, or anything that was thrown. */
export interface Told {
  how: string;
  what: string;
}

/** An error that has a number of the protocol. */
export interface ProtocolError extends Error {
  code: number;
  data?: unknown;
}

/** Whether an error is one of the protocol, such as an `McpError`. */
export function isProtocolError(value: unknown): value is ProtocolError {
  const code = value instanceof Error ? (value as { code?: unknown }).code : undefined;
  return (
    typeof code === "number" &&
    Number.isInteger(code) &&
    code >= RESERVED.least &&
    code <= RESERVED.most
  );
}

/** What the engine is told of something that was thrown. Reading it never throws. */
export function told(thrown: unknown): Told {
  try {
    if (isFailure(thrown)) return { how: "threw", what: ofFailure(thrown) };
    if (isProtocolError(thrown)) return { how: "refused", what: ofProtocolError(thrown) };
    if (thrown instanceof Error) return { how: "threw", what: ofError(thrown) };
  } catch {
    // A getter or a proxy of what was thrown failed: what can be read is described below.
  }
  return { how: "threw", what: textOf({ value: lenient(thrown) }) };
}

function ofFailure(failure: { drafted: { text: string; unfit: string[] }; stack?: string }): string {
  const { text, unfit } = failure.drafted;
  const rest = textOf({ unfit, stack: failure.stack });
  return `{"fault":${text},${rest.slice(1)}`;
}

function ofProtocolError(error: ProtocolError): string {
  const data = error.data === undefined ? undefined : lenient(error.data);
  return textOf({ code: error.code, message: plain(error.message), data });
}

const SPOKEN = /^MCP error (-?\d+): (.*)$/s;

/** The error of the protocol that a text is, as the 1.x SDK writes it into results. */
export function spoken(text: string): Told | undefined {
  const [, code, message] = SPOKEN.exec(text) ?? [];
  if (message === undefined) return undefined;
  return { how: "refused", what: textOf({ code: Number(code), message: plain(message) }) };
}

/** The message without the prefix that the SDK puts before every message of its errors. */
export function plain(message: string): string {
  return message.replace(/^(?:MCP error -?\d+: )+/, "");
}

function ofError(error: Error): string {
  const { code, status, statusCode, issues } = error as {
    code?: unknown;
    status?: unknown;
    statusCode?: unknown;
    issues?: unknown;
  };
  return textOf({
    message: String(error.message),
    name: String(error.name),
    code: scalar(code) ?? systemCode(error),
    status: scalar(status) ?? scalar(statusCode),
    cause: error.cause === undefined ? undefined : lenient(error.cause),
    stack: typeof error.stack === "string" ? error.stack : undefined,
    issues: issuesOf(issues),
  });
}

function scalar(value: unknown): string | number | undefined {
  return typeof value === "string" || typeof value === "number" ? value : undefined;
}

/** `fetch` hides the system's own code in the cause of an error without any. */
function systemCode(error: Error, depth = 4): string | undefined {
  const { cause } = error;
  if (!(cause instanceof Error) || depth === 0) return undefined;
  const { code, errno } = cause as { code?: unknown; errno?: unknown };
  const known = typeof code === "string" && (errno !== undefined || code.startsWith("UND_ERR_"));
  return known ? code : systemCode(cause, depth - 1);
}

/** One thing that a validator found fault with. */
export interface Issue {
  path: (string | number)[];
  message: string;
}

/** The issues of a validator's error: those of zod, and of every other that follows Standard Schema. */
export function issuesOf(issues: unknown): Issue[] | undefined {
  if (!Array.isArray(issues) || issues.length === 0) return undefined;
  const read = issues.map((issue) => issueOf(issue));
  return read.every((issue): issue is Issue => issue !== undefined) ? read : undefined;
}

function issueOf(issue: unknown): Issue | undefined {
  if (typeof issue !== "object" || issue === null) return undefined;
  const { path = [], message } = issue as { path?: unknown; message?: unknown };
  if (!Array.isArray(path) || typeof message !== "string") return undefined;
  return { path: path.map(step), message };
}

function step(part: unknown): string | number {
  const key = typeof part === "object" && part !== null ? (part as { key?: unknown }).key : part;
  return typeof key === "number" ? key : String(key);
}
