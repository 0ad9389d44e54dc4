/** One failure, accepted by a contract. */

import { engine } from "./error.js";
import type { NativeFault } from "./native.js";
import type { Report } from "./report.js";

/** Which form a fault is written in. */
export interface RenderOptions {
  /** The envelope for MCP clients, that for HTTP clients, or a whole result of `tools/call`. */
  surface?: "mcp" | "http" | "result" | undefined;
  /** The profile; by default the contract's first. */
  profile?: string | undefined;
  /** For a whole result: the tool declares an output schema. */
  hasOutputSchema?: boolean | undefined;
  /** For a whole result: the protocol is 2026-07-28 or later. */
  modern?: boolean | undefined;
}

/**
 * One failure under one contract. It cannot be changed.
 *
 * ```ts
 * import { Contract } from "faultwire";
 *
 * const fault = Contract.builtin("workrail").fault({ code: "TIMEOUT" });
 * console.log(fault.render());
 * // {"code":"TIMEOUT","message":"The operation timed out","retry":{"kind":"retryable_immediate"}}
 * ```
 */
export class Fault {
  /** @internal */
  readonly native: NativeFault;

  /** @internal */
  constructor(native: NativeFault) {
    this.native = native;
  }

  /** The exact text of an envelope. */
  render(options: RenderOptions = {}): string {
    const { surface, profile, hasOutputSchema, modern } = options;
    return engine(() => this.native.render(surface, profile, hasOutputSchema, modern));
  }

  /** What the client may know of it. */
  report(): Report {
    return JSON.parse(engine(() => this.native.report())) as Report;
  }

  /** The HTTP status. */
  get status(): number {
    return this.native.status;
  }

  /** The public report, so that writing a fault as JSON shows nothing private. */
  toJSON(): Report {
    return this.report();
  }
}
