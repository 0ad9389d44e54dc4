/** A call that is open, and the way from anywhere below its handler back to it. */

import { AsyncLocalStorage } from "node:async_hooks";

import type { Boundary } from "./boundary.js";
import { lenient, textOf } from "./json.js";
import { type NativeStanding, native } from "./native.js";
import { type SessionFacts, snaked } from "./report.js";

/** The method whose failures are results. */
export const TOOLS_CALL = "tools/call";

/** What the innermost handler did, before the SDK made something else of it. */
export type Inner =
  | { did: "nothing" }
  | { did: "refused"; error: unknown; issues: unknown }
  | { did: "returned"; value: unknown }
  | { did: "threw"; error: unknown };

const NOTHING: Inner = { did: "nothing" };

/** What is known of a request besides its method and tool. */
export interface Asked {
  arguments?: unknown;
  request?: string | number | undefined;
  client?: string | undefined;
  trace?: string | undefined;
}

/** An open call. */
export class OpenCall {
  readonly boundary: Boundary;
  readonly method: string;
  readonly tool: string | undefined;
  readonly standing: NativeStanding;
  inner: Inner = NOTHING;
  /** Starts the deadline again, for a handler that tells of progress. */
  touch: () => void = nothing;
  /** Successes do not need to know it. */
  readonly #asked: () => Asked;
  readonly #since = performance.now();
  /** Which session of its client it belongs to. */
  readonly #turn: number | undefined;

  constructor(
    boundary: Boundary,
    method: string,
    asked: () => Asked,
    tool?: string,
    standing: NativeStanding = new native.NativeStanding(),
  ) {
    this.boundary = boundary;
    this.method = method;
    this.tool = tool;
    this.standing = standing;
    this.#asked = asked;
    this.#turn = boundary.hasSessions ? standing.turn : undefined;
  }

  get isTool(): boolean {
    return this.method === TOOLS_CALL;
  }

  /** What the engine is told of it. */
  facts(session?: SessionFacts): string {
    const elapsed_ms = Math.max(0, Math.round(performance.now() - this.#since));
    const told = session === undefined ? undefined : snaked(session);
    const { method, tool } = this;
    return textOf({ method, tool, ...this.#asked(), session: told, elapsed_ms, turn: this.#turn });
  }

  /** The same without what the client sent, which the engine may be unable to read. */
  leastFacts(): string {
    const tool = lenient(this.tool) ?? undefined;
    return textOf({ method: this.method, tool, turn: this.#turn });
  }

  /** A task of it, which does not change the state of its session. */
  task(): OpenCall {
    return new OpenCall(this.boundary, this.method, this.#asked, this.tool);
  }

  /** The id of its request. */
  get request(): string | number | undefined {
    return this.#asked().request;
  }
}

function nothing(): void {}

/** The call in whose handler, or in a task of whose handler, the program is. */
export const current = new AsyncLocalStorage<OpenCall>();
