/** A call that is open, and the way from anywhere below its handler back to it. */

import { AsyncLocalStorage } from "node:async_hooks";

import { lenient, textOf } from "./json.js";
import type { NativeStanding } from "./native.js";
import { type SessionFacts, snaked } from "./report.js";

/** The method whose failures are results. */
export const TOOLS_CALL = "tools/call";

/** What the innermost handler did, before the SDK made something else of it. */
export type Inner =
  | { did: "nothing" }
  | { did: "refused"; error: unknown; issues: unknown }
  | { did: "returned"; value: unknown }
  | { did: "threw"; error: unknown };

/** What is known of a request before it ends. */
export interface Asked {
  method: string;
  tool?: string | undefined;
  arguments?: unknown;
  request?: string | number | undefined;
  client?: string | undefined;
  trace?: string | undefined;
  session?: SessionFacts | undefined;
}

/** An open call. */
export class OpenCall {
  readonly asked: Asked;
  readonly standing: NativeStanding;
  inner: Inner = { did: "nothing" };
  /** Starts the deadline again, for a handler that tells of progress. */
  touch: () => void = () => {};
  readonly #since = performance.now();

  constructor(asked: Asked, standing: NativeStanding) {
    this.asked = asked;
    this.standing = standing;
  }

  get isTool(): boolean {
    return this.asked.method === TOOLS_CALL;
  }

  /** What the engine is told of it. */
  facts(session?: SessionFacts): string {
    const elapsed_ms = Math.max(0, Math.round(performance.now() - this.#since));
    const told = session === undefined ? undefined : snaked(session);
    return textOf({ ...this.asked, session: told, elapsed_ms });
  }

  /** The same without what the client sent, which the engine may be unable to read. */
  leastFacts(): string {
    return textOf({ method: this.asked.method, tool: lenient(this.asked.tool) ?? undefined });
  }
}

/** The call in whose handler, or in a task of whose handler, the program is. */
export const current = new AsyncLocalStorage<OpenCall>();
