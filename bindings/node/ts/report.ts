/** What a failure knows, in the names of this language and in those of the engine. */

import { type Json, lenient, textOf, unfit } from "./json.js";

/** Whose failure it is. */
export type Origin = "client" | "gateway" | "upstream" | "policy";
/** How far the call got. */
export type Outcome = "not_sent" | "maybe_executed" | "executed";
/** What a code says about sending the same call again. */
export type RetryKind = "never" | "immediate" | "after" | "backoff";

/** The session in which a failure happened. */
export interface SessionFacts {
  id?: string | null | undefined;
  client?: string | null | undefined;
  role?: string | null | undefined;
  workspaceRoot?: string | null | undefined;
  phase?: string | null | undefined;
  planHash?: string | null | undefined;
}

/** Facts about a call that some contracts show. */
export interface MetaFacts {
  toolVersion?: string | undefined;
  elapsedMs?: number | undefined;
  mode?: string | undefined;
  approvalMode?: boolean | undefined;
}

/** Known facts that help to act. */
export interface Hints {
  nearest?: string | undefined;
  missing?: string | undefined;
  allowed?: string | undefined;
  directory?: string | undefined;
  check?: string | undefined;
}

/** What every failure may say. All of it is optional. */
export interface Facts {
  /** What to tell the client; without it, the code's canonical message. */
  message?: string | undefined;
  /** What to do next, in one sentence; without it, the contract's. */
  next?: string | undefined;
  /** What the client could try instead. */
  suggestion?: string | undefined;
  /** Facts for the client: any JSON. */
  details?: unknown;
  /** The failure underneath: an error, or any value. It is private where the contract says so. */
  cause?: unknown;
  /** The tool that failed, if the boundary does not know. */
  tool?: string | undefined;
  origin?: Origin | undefined;
  outcome?: Outcome | undefined;
  /** What was observed, by the name of a condition. */
  condition?: string | undefined;
  /** The invariant that was violated. */
  invariant?: string | undefined;
  /** What the policy decided. */
  policyDecision?: string | undefined;
  hints?: Hints | undefined;
  /** Whether the tool only reads or is idempotent. */
  repeatable?: boolean | undefined;
  session?: SessionFacts | undefined;
  meta?: MetaFacts | undefined;
  incident?: string | undefined;
  timestamp?: string | undefined;
  trace?: string | undefined;
  method?: string | undefined;
}

/** What a failure may say whose code names a delay. */
export interface Delay {
  /** How long to wait before the next attempt. */
  retryAfterMs?: number | undefined;
  /** When the limit resets: ISO 8601, or seconds since 1970. */
  rateLimitReset?: string | number | undefined;
}

/** What a failure may say whose code keeps what was done before it. */
export interface Data {
  data?: unknown;
}

/** Everything that the row of some code allows. */
export interface AnyFacts extends Facts, Delay, Data {
  /** One of the kinds that the row of the code lists. */
  retry?: RetryKind | undefined;
  /** One of the statuses that the row of the code lists. */
  status?: number | undefined;
}

/** The JSON form of a failure, as the engine reads and writes it. */
export interface Report {
  code: string;
  condition?: string;
  message?: string;
  tool?: string;
  method?: string;
  origin?: Origin;
  outcome?: Outcome;
  retry?: RetryKind;
  retry_after_ms?: number;
  status?: number;
  next?: string;
  hints?: Hints;
  repeatable?: boolean;
  suggestion?: string;
  details?: Json;
  data?: Json;
  cause?: Json;
  invariant?: string;
  rate_limit_reset?: string | number;
  policy_decision?: string;
  session?: Record<string, string | null>;
  meta?: Record<string, string | number | boolean>;
  incident?: string;
  timestamp?: string;
  trace?: string;
  stack?: string;
}

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** An object whose own members, not those below, have the engine's names. */
export function snaked(facts: object): Record<string, unknown> {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known.map(([key, value]) => [snake(key), value]));
}

/** The members that hold values of the caller, as they are. */
const NESTED = ["session", "meta"] as const;

/** A report for the engine, and why its details are not JSON, if they are not. */
export interface Drafted {
  text: string;
  unfit: string[];
}

/** The report of a code with these facts. */
export function drafted(code: string, facts: AnyFacts): Drafted {
  const report = { code, ...snaked(facts) } as Record<string, unknown>;
  const wrong = facts.details === undefined ? [] : unfit(facts.details);
  if (wrong.length > 0) delete report["details"];
  for (const key of NESTED) {
    const inner = facts[key];
    if (inner !== undefined) report[key] = snaked(inner);
  }
  if (facts.cause !== undefined) report["cause"] = lenient(facts.cause);
  return { text: textOf(report), unfit: wrong };
}
