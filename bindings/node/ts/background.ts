/** Failures of tasks that nobody waits for: a rejected promise, an error in a callback. */

import { inspect } from "node:util";

import type { Boundary } from "./boundary.js";
import { OpenCall, current } from "./call.js";
import { textOf } from "./json.js";
import { native } from "./native.js";
import { told } from "./thrown.js";

/** The boundary that was made last records failures of which no call is known. */
let latest: Boundary | undefined;
let isObserved = false;
/** The boundary of each call that can have tasks. */
const owners = new WeakMap<OpenCall, Boundary>();

/** Sees to failures in the background, from the first boundary on. */
export function observeBackground(boundary: Boundary): void {
  latest = boundary;
  if (isObserved) return;
  isObserved = true;
  process.on("unhandledRejection", (reason) => failed("unhandledRejection", reason));
  process.on("uncaughtException", (error, origin) => failed(origin, error));
}

/** Tasks of this call are failures of this boundary. */
export function own(call: OpenCall, boundary: Boundary): void {
  owners.set(call, boundary);
}

function failed(event: NodeJS.UncaughtExceptionOrigin, error: unknown): void {
  const call = current.getStore();
  const owner = call === undefined ? undefined : owners.get(call);
  if (call !== undefined && owner !== undefined) {
    // One call's task does not end the calls of others.
    attributed(call, owner, error);
    return;
  }
  const { how, what } = told(error);
  try {
    latest?.native.record(textOf({ method: event }), how, what);
  } finally {
    // As without us: the process ends, unless the program has its own way with such errors.
    if (process.listenerCount(event) === 1) crash(error);
  }
}

function attributed(call: OpenCall, owner: Boundary, error: unknown): void {
  // The state of the session depends on calls, and this one ends in its own way.
  const task = new OpenCall(call.asked, new native.NativeStanding());
  void owner.recorded(task, told(error), "error").catch(() => undefined);
}

function crash(error: unknown): never {
  process.stderr.write(`${error instanceof Error && error.stack ? error.stack : inspect(error)}\n`);
  process.exit(1);
}
