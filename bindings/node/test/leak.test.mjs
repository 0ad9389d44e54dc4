// Failing calls keep nothing: neither memory nor handles. `FAILING_CALLS` says how many there are.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { withContract } from "faultwire";
import * as errors from "faultwire/standard";

import { scratch } from "./lib/connect.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const CALLS = Number(process.env.FAILING_CALLS ?? 3000);
/** More than this is no noise: of the heap, which is counted exactly, and of the whole process. */
const MOST_BYTES_A_CALL = 1024;
const NOISE = 64 * 2 ** 20;

/** What the process holds after everything that can be freed is freed. */
async function held() {
  for (let n = 0; n < 3; n += 1) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heapUsed, files: readdirSync("/proc/self/fd").length, active: process.getActiveResourcesInfo().length };
}

test(`${CALLS} failing calls leak neither memory nor handles`, async () => {
  const server = withContract(new McpServer({ name: "s", version: "1" }), { audit: scratch(), deadlines: { never: 1 } });
  const tool = (name, handler) => server.registerTool(name, { inputSchema: {} }, handler);
  tool("throws", () => { throw new Error("again"); });
  tool("typed", () => { throw errors.rateLimited({ retryAfterMs: 5 }); });
  tool("never", () => new Promise(() => {}));
  const client = new Client({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  const tools = ["throws", "typed", "never", "unknown"];
  const run = async (calls) => {
    for (let n = 0; n < calls; n += 32) {
      await Promise.all(Array.from({ length: 32 }, (_, at) => client.callTool({ name: tools[at % tools.length], arguments: {} })));
    }
  };
  await run(CALLS / 3);
  const before = await held();
  await run(CALLS);
  const after = await held();
  const growth = (after.heapUsed - before.heapUsed) / CALLS;
  assert.ok(growth < MOST_BYTES_A_CALL, `${growth.toFixed(0)} bytes of the heap a call`);
  const resident = after.rss - before.rss;
  assert.ok(resident < NOISE + (CALLS * MOST_BYTES_A_CALL) / 4, `${resident} resident bytes more`);
  assert.equal(after.files, before.files);
  assert.ok(after.active <= before.active, `${after.active} active resources, before ${before.active}`);
  console.log({ calls: CALLS, heapBytesACall: Math.round(growth), residentBytesACall: Math.round(resident / CALLS), files: after.files });
});
