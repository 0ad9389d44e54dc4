// Clients that follow the contract's answer, and what a model reads of a failure.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Client as ClientV2 } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ToolCallError, callTool, verdict, withContract } from "faultwire";
import * as errors from "faultwire/standard";

const text = (words) => ({ content: [{ type: "text", text: words }] });

/** A server whose tools fail so many times before they succeed. */
async function flaky(Kind) {
  const calls = { n: 0 };
  const server = withContract(new McpServer({ name: "flaky", version: "1" }), { audit: false });
  const tool = (name, annotations, failure, times) =>
    server.registerTool(name, { annotations, inputSchema: {} }, () => {
      calls.n += 1;
      if (calls.n <= times) throw failure();
      return text(`after ${calls.n}`);
    });
  tool("reads", { readOnlyHint: true }, () => errors.unavailable({ retryAfterMs: 20 }), 2);
  tool("writes", {}, () => errors.timeout({ retryAfterMs: 20, outcome: "maybe_executed" }), 2);
  tool("limited", {}, () => errors.rateLimited({ retryAfterMs: 20, outcome: "not_sent" }), 2);
  tool("missing", { readOnlyHint: true }, () => errors.notFound({ message: "No city Osló" }), 99);
  tool("slow", { readOnlyHint: true }, () => errors.rateLimited({ retryAfterMs: 90_000 }), 99);
  tool("always", { idempotentHint: true }, () => errors.unavailable({ retryAfterMs: 1 }), 99);
  const client = new Kind({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  return { client, calls };
}

for (const [name, Kind] of [["1.x", Client], ["2.x", ClientV2]]) {
  describe(`callTool with the client ${name}`, () => {
    test("a7: it waits and sends again what may be sent again", async () => {
      for (const tool of ["reads", "limited"]) {
        const { client, calls } = await flaky(Kind);
        const waits = [];
        const result = await callTool(client, { name: tool, arguments: {} }, { onRetry: (v) => waits.push(v.delayMs) });
        assert.equal(result.content[0].text, "after 3");
        assert.equal(calls.n, 3);
        assert.ok(waits.every((ms) => ms >= 20), String(waits));
      }
    });

    test("a7: it gives up with a typed error that says why", async () => {
      const reasons = { writes: ["may_have_run", 1], missing: ["never_retried", 1], always: ["budget_spent", 4], slow: ["retryable", 1] };
      for (const [tool, [reason, sent]] of Object.entries(reasons)) {
        const { client, calls } = await flaky(Kind);
        const error = await callTool(client, { name: tool, arguments: {} }).catch((e) => e);
        assert.ok(error instanceof ToolCallError, String(error));
        assert.equal(error.verdict.reason, reason, tool);
        assert.equal(error.attempts, sent);
        assert.equal(calls.n, sent);
        assert.ok(errors.isFault(error.verdict), "the guards read verdicts, too");
        assert.match(error.message, new RegExp(`^${tool} failed`));
      }
    });

    test("what is no failure of the server is thrown as it is", async () => {
      const { client } = await flaky(Kind);
      const stop = AbortSignal.abort(new Error("enough"));
      await assert.rejects(callTool(client, { name: "reads" }, { signal: stop }), (e) => !(e instanceof ToolCallError));
      await client.close();
      await assert.rejects(callTool(client, { name: "reads" }), (e) => !(e instanceof ToolCallError));
    });
  });
}

test("a verdict of a server without a contract is its words", () => {
  const read = verdict({ isError: true, content: [{ type: "text", text: "429 Too Many Requests" }] }, { readOnly: true });
  assert.equal(read.fault.message, "429 Too Many Requests");
  assert.equal(errors.isFault(read), false);
});
