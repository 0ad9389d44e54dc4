// Servers over HTTP: sessions of the legacy protocol, and requests of the modern one.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, describe, test } from "node:test";

import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { McpServer as McpServerV2, createMcpHandler } from "@modelcontextprotocol/server";
import { Contract, Failure, withContract } from "faultwire";
import * as errors from "faultwire/standard";

import { eventually, records, scratch } from "./lib/connect.mjs";

const text = (words) => ({ content: [{ type: "text", text: words }] });
const servers = [];
after(() => { for (const server of servers) { server.closeAllConnections(); server.close(); } });

async function listening(handler) {
  const server = createServer(handler).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return new URL(`http://127.0.0.1:${server.address().port}/mcp`);
}

describe("sessions over HTTP, 1.x", () => {
  test("k12: each has its own state, and all share one log", async () => {
    const audit = scratch();
    const kaiza = Contract.builtin("kaiza");
    const transports = new Map();
    const url = await listening(async (request, response) => {
      const known = transports.get(request.headers["mcp-session-id"]);
      if (known !== undefined) return await known.handleRequest(request, response);
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => transports.set(id, transport),
      });
      const server = withContract(new McpServer({ name: "s", version: "1" }), { contract: kaiza, audit });
      server.registerTool("begin_session", { inputSchema: {} }, () => text("begun"));
      server.registerTool("work", { inputSchema: {} }, () => text("done"));
      server.registerTool("fail", { inputSchema: {} }, () => { throw new Failure(kaiza, "INVARIANT_VIOLATION"); });
      await server.connect(transport);
      await transport.handleRequest(request, response);
    });
    const connect = async () => {
      const client = new Client({ name: "test", version: "1" });
      await client.connect(new StreamableHTTPClientTransport(url));
      return async (name) => {
        const result = await client.callTool({ name, arguments: {} });
        return result.isError ? JSON.parse(result.content[0].text).error_code : "ok";
      };
    };
    const [one, other] = [await connect(), await connect()];
    assert.equal(await one("begin_session"), "ok");
    assert.equal(await other("work"), "SESSION_NOT_INITIALIZED");
    assert.equal(await one("fail"), "INVARIANT_VIOLATION");
    assert.equal(await one("work"), "SESSION_LOCKED");
    assert.equal(await other("begin_session"), "ok");
    assert.equal(await other("work"), "ok");
    assert.equal(records(audit).filter((record) => record.type === "fault").length, 3);
  });
});

describe("requests over HTTP, 2.x", () => {
  for (const mode of ["legacy", "auto"]) {
    test(`a5: one envelope, recorded first (${mode})`, async () => {
      const audit = scratch();
      const handler = createMcpHandler(() => {
        const server = withContract(new McpServerV2({ name: "s", version: "2" }), { audit, deadlines: { never: 100 } });
        server.registerTool("typed", {}, () => { throw errors.locked({ message: "busy", retryAfterMs: 1500 }); });
        server.registerTool("never", {}, () => new Promise(() => {}));
        server.registerTool("waits", {}, () => new Promise((resolve) => setTimeout(() => resolve(text("late")), 500)));
        server.registerTool("fine", {}, () => text("fine"));
        return server;
      });
      const url = await listening(async (incoming, outgoing) => {
        const chunks = [];
        for await (const chunk of incoming) chunks.push(chunk);
        const stop = new AbortController();
        outgoing.on("close", () => stop.abort());
        const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined;
        const request = new Request(`http://${incoming.headers.host}${incoming.url}`, { method: incoming.method, headers: incoming.headers, body, signal: stop.signal });
        const response = await handler.fetch(request);
        outgoing.writeHead(response.status, Object.fromEntries(response.headers));
        if (response.body) for await (const chunk of response.body) outgoing.write(chunk);
        outgoing.end();
      });
      const client = new ClientV2({ name: "test", version: "1" }, mode === "auto" ? { versionNegotiation: { mode } } : {});
      await client.connect(new HttpV2(url));
      const call = (name, options) => client.callTool({ name, arguments: {} }, options);
      assert.deepEqual((await call("fine")).content, [{ type: "text", text: "fine" }]);
      const typed = await call("typed");
      assert.equal(JSON.parse(typed.content[0].text).error.code, "locked");
      assert.equal(typed.isError, true);
      assert.equal(JSON.parse((await call("never")).content[0].text).error.code, "timeout");
      assert.equal(records(audit).filter((record) => record.type === "fault").length, 2);
      if (mode !== "auto") return;
      // There, closing the stream takes the call back.
      await assert.rejects(call("waits", { signal: AbortSignal.timeout(100) }));
      const taken = () => records(audit).find((record) => record.fault?.code === "cancelled");
      await eventually(taken, "a record of the cancellation");
    });
  }
});
