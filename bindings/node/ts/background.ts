/** Failures of tasks that no handler waits for: a rejected promise, an error in a callback. */

import { inspect } from "node:util";

import type { Boundary } from "./boundary.js";
import { current } from "./call.js";
import { textOf } from "./json.js";
import { told } from "./thrown.js";

/** The boundary that was made last records failures of which no call is known. */
let latest: Boundary | undefined;
let isObserved = false;

/** Sees to failures in the background, from the first boundary on. */
export function observeBackground(boundary: Boundary): void {
  latest = boundary;
  if (isObserved) return;
  isObserved = true;
  process.on("unhandledRejection", (reason) => failed("unhandledRejection", reason));
  process.on("uncaughtException", (error, origin) => failed(origin, error));
}

function failed(event: NodeJS.UncaughtExceptionOrigin, error: unknown): void {
  const call = current.getStore();
  if (call !== undefined) {
    // One call's task does not end the calls of others.
    void call.boundary.recorded(call.task(), told(error), "error").catch(() => undefined);
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

function crash(error: unknown): never {
  process.stderr.write(`${error instanceof Error && error.stack ? error.stack : inspect(error)}\n`);
  process.exit(1);
}
