/** What failed in a call: what its handler did takes precedence over what the SDK made of it. */

import type { Inner, OpenCall } from "./call.js";
import { textOf } from "./json.js";
import { refusesResult } from "./sdk.js";
import { type Told, issuesOf, plain, told } from "./thrown.js";

/** What the engine is told of a call that ended with this error, or with this failing result. */
export function failureOf(call: OpenCall, error: unknown): Told {
  const { inner } = call;
  if (inner.did === "threw") return told(inner.error);
  if (inner.did === "returned" || refusesResult(error)) return unusable(error);
  if (call.isTool && call.tool === undefined) return MALFORMED_CALL;
  const { issues } = (error ?? {}) as { issues?: unknown };
  if (!call.isTool && issuesOf(issues) !== undefined) return malformedRequest(issues);
  if (inner.did !== "refused") return told(error);
  if (inner.issues === undefined) return told(inner.error);
  return { how: "threw", what: textOf({ message: "Invalid arguments", issues: inner.issues }) };
}

/** The SDK refused what the handler returned. */
function unusable(error: unknown): Told {
  return { how: "upstream_protocol", what: plain(messageOf(error)) };
}

/** Whether the SDK made a failure of a result that was none. */
export function isOfTheSdk(inner: Inner): boolean {
  return inner.did === "returned" && (inner.value as { isError?: unknown } | null)?.isError !== true;
}

/** What is said of a `tools/call` that names no tool. */
const MALFORMED_CALL: Told = {
  how: "invalid_arguments",
  what: "tools/call needs the name of a tool, and arguments that are an object",
};

const INVALID_PARAMS = -32602;

/** A request of another method whose params its schema refuses. */
function malformedRequest(issues: unknown): Told {
  const said = issuesOf(issues)?.map(({ path, message }) => `${path.join(".")}: ${message}`);
  const message = `Invalid params: ${said?.join("; ")}`;
  return { how: "refused", what: textOf({ code: INVALID_PARAMS, message }) };
}

/** What an error, a failing result, or anything else says. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return error.message;
    const { content } = (error ?? {}) as { content?: { text?: unknown }[] };
    return String(content?.[0]?.text ?? error);
  } catch {
    return "unreadable";
  }
}
