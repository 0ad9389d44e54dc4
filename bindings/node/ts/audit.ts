/** The audit log: durable records of failures. */

import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

import { AuditError, engine, inputError, translated } from "./error.js";
import type { Fault } from "./fault.js";
import { textOf } from "./json.js";
import { type NativeAuditLog, native } from "./native.js";
import { snaked } from "./report.js";

/** Options of a log. */
export interface AuditOptions {
  /** Who writes it, for the error that another writer gets. */
  holder?: string | undefined;
  segmentBytes?: number | undefined;
  segmentAgeS?: number | undefined;
  checkpointEvery?: number | undefined;
  /** Failures are answered although they cannot be recorded. */
  failOpen?: boolean | undefined;
  /** A clock that stands still, for tests. */
  clockMs?: number | undefined;
}

/** What is known of the call that failed. Only a keyed hash of the arguments is recorded. */
export interface CallFacts {
  request?: string | number | undefined;
  client?: string | undefined;
  arguments?: unknown;
  upstreamCode?: string | number | undefined;
  elapsedMs?: number | undefined;
  attempt?: number | undefined;
}

/**
 * An open audit log. One process writes a log at a time.
 *
 * ```ts
 * import { AuditLog, Contract } from "faultwire";
 *
 * const log = AuditLog.open("audit");
 * const fault = Contract.builtin("standard").fault({ code: "timeout" });
 * await log.append(fault, { request: 7 }); // It is on disk now.
 * log.close();
 * ```
 */
export class AuditLog {
  /** @internal */
  readonly native: NativeAuditLog;
  /** The directory. */
  readonly directory: string;

  private constructor(opened: NativeAuditLog, directory: string) {
    this.native = opened;
    this.directory = directory;
  }

  /** Opens the log in a directory, or begins one there. */
  static open(directory: string, options: AuditOptions = {}): AuditLog {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const given = textOf(snaked(options));
    return new AuditLog(
      engine(() => native.NativeAuditLog.open(directory, given)),
      resolve(directory),
    );
  }

  /** Records a fault. The number of its record comes when it is on disk; the event loop goes on. */
  async append(fault: Fault, call: CallFacts = {}): Promise<number | null> {
    const facts = textOf(snaked(call));
    return await waited(() => this.native.append(fault.native, facts));
  }

  /** Records something that is no failure. */
  async event(name: string, facts: unknown = {}): Promise<number | null> {
    const text = textOf(facts);
    return await waited(() => this.native.event(name, text));
  }

  /** The record's members for a fault, without its place in the log. */
  entry(fault: Fault, call: CallFacts = {}): string {
    const facts = textOf(snaked(call));
    return engine(() => this.native.entry(fault.native, facts));
  }

  /** The log's id. */
  get id(): string {
    return this.native.id;
  }

  /** Waits until everything is on disk, and closes the files. */
  close(): void {
    engine(() => this.native.close());
  }
}

async function waited<T>(start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    throw translated(error);
  }
}

/** Where a boundary records failures. */
export type AuditSetting = AuditLog | string | false | undefined;

/** The logs that this process has opened for its boundaries: all servers of one directory share one. */
const opened = new Map<string, AuditLog>();

/** More servers of one name than this are not expected on one machine. */
const MOST_NAMES = 64;

/** The log of a setting: one that is open, that of a directory, or the default one of a server. */
export function logOf(setting: AuditSetting, server: string): AuditLog | undefined {
  if (setting === false) return undefined;
  if (setting instanceof AuditLog) return setting;
  if (setting === "") throw inputError("audit is empty", "name a directory, or set it to false");
  if (typeof setting === "string") return shared(setting);
  const base = join(stateHome(), "faultwire", "audit");
  const name = server.replace(/[^A-Za-z0-9._-]/g, "_").replace(/^\.+/, "") || "server";
  for (let nth = 1; nth <= MOST_NAMES; nth += 1) {
    try {
      return shared(join(base, nth === 1 ? name : `${name}-${nth}`));
    } catch (error) {
      // Another process has it: a second client of the same server is usual.
      if (!(error instanceof AuditError && error.isLocked)) throw error;
    }
  }
  throw inputError(`all ${MOST_NAMES} audit logs of ${name} are in use`, "set audit to a directory");
}

function shared(directory: string): AuditLog {
  const path = resolve(directory);
  const known = opened.get(path);
  if (known !== undefined) return known;
  const log = AuditLog.open(path);
  opened.set(path, log);
  return log;
}

function stateHome(): string {
  const set = process.env["XDG_STATE_HOME"];
  return set?.startsWith("/") ? set : join(homedir(), ".local", "state");
}
