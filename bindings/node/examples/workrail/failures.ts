// What can go wrong with a workflow, as types. Each is mapped to its code by a switch that names
// every case: a new one does not compile until it is mapped (findings 6, 7, 8, 9 and 13).

import type { Failure, Json } from "faultwire";
import * as errors from "faultwire/workrail";
import { z } from "zod";

/** What is wrong with a workflow. */
export type WorkflowError = Readonly<{
  kind:
    | "WorkflowNotFound"
    | "InvalidState"
    | "InvalidLoop"
    | "MissingContext"
    | "MaxIterationsExceeded"
    | "ConditionEvalFailed";
  message: string;
}>;

export function workflowFailure({ kind, message }: WorkflowError): Failure<errors.Code> {
  switch (kind) {
    case "WorkflowNotFound":
      return errors.notFound({ message });
    case "InvalidState":
    case "InvalidLoop":
      return errors.validationError({ message });
    case "MissingContext":
    case "MaxIterationsExceeded":
      return errors.preconditionFailed({ message });
    case "ConditionEvalFailed":
      return errors.internalError({ message });
    default:
      return unmapped(kind);
  }
}

const reason = z.object({ code: z.string(), message: z.string() });
export type Reason = z.infer<typeof reason>;

/** The state of a session's log. */
export type Health =
  | Readonly<{ kind: "healthy" }>
  | Readonly<{ kind: "corrupt_tail" | "corrupt_head" | "unknown_version"; reason: Reason }>;

export function unhealthy(health: Health): Failure<errors.Code> {
  return errors.sessionNotHealthy({
    suggestion: "Only healthy sessions go on; start the workflow again.",
    details: { health },
  });
}

/** Why a step that was done could not be acknowledged: read and written by its kind. */
export const AckFailure = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("missing_node_or_run") }),
  z.object({ kind: z.literal("workflow_hash_mismatch") }),
  z.object({ kind: z.literal("missing_snapshot") }),
  z.object({ kind: z.literal("no_pending_step") }),
  z.object({ kind: z.literal("advance_apply_failed"), message: z.string() }),
  z.object({ kind: z.literal("advance_next_failed"), message: z.string() }),
  z.object({ kind: z.literal("session_store_error"), error: reason }),
  z.object({ kind: z.literal("snapshot_store_error"), error: reason }),
]);
export type AckFailure = z.infer<typeof AckFailure>;

/** How long a disk that cannot be used now may need. */
const STORE_DELAY_MS = 2000;

export function ackFailure(failure: AckFailure): Failure<errors.Code> {
  const details: Json = failure;
  switch (failure.kind) {
    case "missing_node_or_run":
      return tokenFailure("TOKEN_UNKNOWN_NODE", details);
    case "workflow_hash_mismatch":
      return tokenFailure("TOKEN_WORKFLOW_HASH_MISMATCH", details);
    case "no_pending_step":
      return errors.preconditionFailed({ details });
    case "advance_apply_failed":
      return errors.validationError({ message: failure.message, details });
    case "missing_snapshot":
    case "advance_next_failed":
      return errors.internalError({ details });
    case "session_store_error":
    case "snapshot_store_error":
      return errors.internalError({ details, retry: "after", retryAfterMs: STORE_DELAY_MS });
    default:
      return unmapped(failure);
  }
}

const TOKENS = {
  TOKEN_INVALID_FORMAT: errors.tokenInvalidFormat,
  TOKEN_UNSUPPORTED_VERSION: errors.tokenUnsupportedVersion,
  TOKEN_BAD_SIGNATURE: errors.tokenBadSignature,
  TOKEN_SCOPE_MISMATCH: errors.tokenScopeMismatch,
  TOKEN_UNKNOWN_NODE: errors.tokenUnknownNode,
  TOKEN_WORKFLOW_HASH_MISMATCH: errors.tokenWorkflowHashMismatch,
  TOKEN_SESSION_LOCKED: errors.tokenSessionLocked,
} as const;

/** A failure that is about a token names its code in the details, too. */
export function tokenFailure(
  code: keyof typeof TOKENS,
  details: { readonly [key: string]: Json } = {},
): Failure<errors.Code> {
  return TOKENS[code]({
    suggestion: "Use the exact tokens that WorkRail returned; they are opaque.",
    details: { ...details, tokenErrorCode: code },
  });
}

function unmapped(it: never): never {
  throw new TypeError(`not mapped: ${JSON.stringify(it)}`);
}
