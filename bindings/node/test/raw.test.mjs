// Lines on stdio, as no official client sends them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Contract } from "faultwire";

import { eventually, records, scratch } from "./lib/connect.mjs";

const standard = Contract.builtin("standard");
const MODERN = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
};

/** A server that is spoken to in lines. */
function talk(program) {
  const audit = scratch();
  const file = fileURLToPath(new URL(program, import.meta.url));
  const child = spawn(process.execPath, [file], { env: { ...process.env, AUDIT: audit }, stdio: ["pipe", "pipe", "inherit"] });
  const replies = new Map();
  const exited = new Promise((resolve) => child.once("exit", resolve));
  let rest = "";
  child.stdout.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const reply of lines.map((line) => JSON.parse(line))) {
      assert.ok(!replies.has(reply.id), `two replies to ${reply.id}`);
      replies.set(reply.id, reply);
    }
  });
  const send = (id, method, params = {}) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...(id === null ? {} : { id }), method, params })}\n`);
  const reply = (id) => eventually(() => replies.get(id), `a reply to ${id}`);
  return { child, exited, send, reply, faults: () => records(audit).filter((record) => record.type === "fault") };
}

test("errors that the SDK sends by itself have the envelope, too", async () => {
  const { child, send, reply, faults } = talk("servers/v2.mjs");
  send(1, "server/discover", { _meta: MODERN });
  await reply(1);
  send(2, "ping", { _meta: MODERN });
  const { error } = await reply(2);
  assert.equal(error.code, -32601);
  assert.equal(standard.decode(JSON.stringify(error.data)).code, "unknown_method");
  send(3, "tools/call", { name: "success", arguments: {} });
  assert.match((await reply(3)).error.data.error.message, /missing the required _meta envelope/);
  assert.deepEqual(faults().map(({ fault, call }) => [fault.method, call.request]), [["ping", 2], ["tools/call", 3]]);
  child.kill();
});

test("a modern result is complete, and says whose it is", async () => {
  const { child, send, reply } = talk("servers/v2.mjs");
  send(1, "server/discover", { _meta: MODERN });
  await reply(1);
  send(2, "tools/call", { name: "throws_error", arguments: {}, _meta: { ...MODERN, traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" } });
  const { result } = await reply(2);
  assert.equal(result.resultType, "complete");
  assert.equal(result.isError, true);
  assert.deepEqual(result._meta["io.modelcontextprotocol/serverInfo"], { name: "v2", version: "2.0.0" });
  assert.equal(result._meta["io.modelcontextprotocol/toolFailure"].code, "internal");
  child.kill();
});

test("a5: a call is answered although the client has closed its side", async () => {
  const { child, exited, send, reply, faults } = talk("servers/v1.mjs");
  const clientInfo = { name: "raw", version: "1" };
  send(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  await reply(1);
  send(null, "notifications/initialized");
  send(2, "tools/call", { name: "never", arguments: {} });
  child.stdin.end();
  assert.match((await reply(2)).result.content[0].text, /"code":"timeout"/);
  await exited;
  assert.equal(faults().length, 1);
});
