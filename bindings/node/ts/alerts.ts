/** Failures in the order of time, and the pages that they raise. */

import type { Contract } from "./contract.js";
import { engine } from "./error.js";
import { textOf } from "./json.js";
import { type NativeAlerts, native } from "./native.js";
import type { Origin } from "./report.js";

/** A failure, at a moment in seconds. */
export interface AlertEvent {
  t: number;
  client: string;
  code: string;
  origin?: Origin | undefined;
}

/** A page that is raised. */
export interface Page {
  t: number;
  level: string;
  client: string;
  code: string;
  count: number;
}

/**
 * The alert rules of a contract (O7).
 *
 * ```ts
 * import { Alerts, Contract } from "faultwire";
 *
 * const alerts = new Alerts(Contract.builtin("owlclaw"));
 * const page = alerts.observe({ t: 0, client: "desktop", code: "auth.forbidden" });
 * console.log(page?.level); // critical
 * ```
 */
export class Alerts {
  readonly #native: NativeAlerts;

  /** Remembers at least `capacity` pairs of client and code. */
  constructor(contract: Contract, capacity?: number) {
    this.#native = engine(() => new native.NativeAlerts(contract.native, capacity));
  }

  /** Takes an event, and returns the page that it raises, if it raises one. */
  observe(event: AlertEvent): Page | undefined {
    const page = engine(() => this.#native.observe(textOf(event)));
    return page === null ? undefined : (JSON.parse(page) as Page);
  }

  /** How many pairs of client and code were forgotten early. */
  get forgotten(): number {
    return this.#native.forgotten;
  }
}
