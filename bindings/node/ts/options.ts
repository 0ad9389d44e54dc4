/** Options of a boundary. */

import type { AuditSetting } from "./audit.js";
import { Contract, type Keep } from "./contract.js";
import { textOf } from "./json.js";
import { type MetaFacts, type SessionFacts, snaked } from "./report.js";

/** What happens to something that does not match a schema. */
export type Check = "off" | "warn" | "enforce";

/** What a tool needs, and the codes that it may answer (T6). */
export interface ToolFacts {
  /** The codes that the tool may answer, besides those of the boundary. */
  codes: readonly string[];
  category?: string | undefined;
  /** Whether it changes something. */
  mutation?: boolean | undefined;
  /** What it needs, by name. */
  requires?: readonly string[] | undefined;
  /** The profiles in which it is; all of the contract's by default. */
  profiles?: readonly string[] | undefined;
}

/** Options of a boundary. All are optional. */
export interface BoundaryOptions {
  /** The contract; `standard` by default. */
  contract?: Contract | string | undefined;
  /** The audit log, its directory, or `false` for none: failures are then not recorded anywhere.
   * The default is a directory of the server's name below `$XDG_STATE_HOME/faultwire/audit`. */
  audit?: AuditSetting;
  /** How long a handler may take; one minute by default. Progress starts it again. */
  deadlineMs?: number | undefined;
  /** The same for single tools. */
  deadlines?: Readonly<Record<string, number>> | undefined;
  /** How long a handler that tells of progress may take; ten minutes by default. */
  maxDeadlineMs?: number | undefined;
  /** The profile of the contract; its first by default. */
  profile?: string | undefined;
  /** Facts for every session, or a function that knows them when a call has failed. */
  session?: SessionFacts | (() => SessionFacts) | undefined;
  /** Facts for every call. */
  meta?: Omit<MetaFacts, "elapsedMs"> | undefined;
  /** Successes that do not match the tool's output schema; `warn` records them. */
  output?: Check | undefined;
  /** Arguments that do not match the tool's input schema; `enforce` refuses what the SDK would accept. */
  arguments?: Check | undefined;
  /** Successes that say that they failed: `auto` answers the certain ones as failures, `rewrite`
   * those that are likely, too; `record` only records them. */
  softFailures?: "auto" | "rewrite" | "record" | "off" | undefined;
  /** Kinds of text that clients may see. */
  keep?: readonly Keep[] | undefined;
  /** What each tool needs and may answer. */
  tools?: Readonly<Record<string, ToolFacts>> | undefined;
  /** A code that its tool does not declare becomes an internal failure, so that tests notice it.
   * By default it does, unless `NODE_ENV` is `production`. */
  strict?: boolean | undefined;
  /** The name of the server, for its default log. */
  name?: string | undefined;
}

const MINUTE_MS = 60_000;

/** What holds without options. */
export const DEFAULTS = { contract: "standard", deadlineMs: MINUTE_MS, maxDeadlineMs: 10 * MINUTE_MS };

/** The contract of these options. */
export function contractOf(options: { contract?: Contract | string | undefined }): Contract {
  const { contract = DEFAULTS.contract } = options;
  return typeof contract === "string" ? Contract.builtin(contract) : contract;
}

/** The settings that the engine knows. */
export function settingsOf(options: BoundaryOptions): string {
  const { profile, session, meta, output, arguments: check, softFailures, keep, tools } = options;
  const known = Object.entries(tools ?? {}).map(([name, tool]) => [name, tool.codes] as const);
  return textOf({
    profile,
    session: typeof session === "object" ? snaked(session) : undefined,
    meta: meta === undefined ? undefined : snaked(meta),
    output,
    arguments: check,
    soft_failures: softFailures,
    keep,
    codes: tools === undefined ? undefined : Object.fromEntries(known),
    strict: options.strict ?? process.env["NODE_ENV"] !== "production",
  });
}
