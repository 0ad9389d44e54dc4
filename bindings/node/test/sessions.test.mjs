// Contracts with more than failures: sessions (K12), wrapped successes and profiles (T1, T5), manifests (T6).

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Contract, Failure, assertManifest, boundaryOf, manifest, withContract } from "faultwire";
import { z } from "zod";

import { connect } from "./lib/connect.mjs";

/** A server in this process, and an official client of it. */
async function paired(server) {
  const client = new Client({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  return client;
}

const text = (words) => ({ content: [{ type: "text", text: words }] });

describe("sessions (k12)", () => {
  const kaiza = Contract.builtin("kaiza");
  const server = () => {
    const made = withContract(new McpServer({ name: "s", version: "1" }), { contract: kaiza, audit: false });
    made.registerTool("begin_session", { inputSchema: {} }, () => text("begun"));
    made.registerTool("end_session", { inputSchema: {} }, () => text("ended"));
    made.registerTool("read", { annotations: { readOnlyHint: true }, inputSchema: {} }, () => text("read"));
    made.registerTool("write_file", { inputSchema: { path: z.string() } }, ({ path }) => text(path));
    made.registerTool("fail", { inputSchema: {} }, () => { throw new Failure(kaiza, "INVARIANT_VIOLATION"); });
    made.registerTool("fail_when_told", { inputSchema: {} }, async () => {
      await new Promise((resolve) => { made.tell = resolve; });
      throw new Failure(kaiza, "INVARIANT_VIOLATION");
    });
    return made;
  };
  const code = (result) => result.isError ? JSON.parse(result.content[0].text).error_code : "ok";

  test("k12: nothing before it begins, and a failure locks it", async () => {
    const client = await paired(server());
    const call = async (name, args = {}) => code(await client.callTool({ name, arguments: args }));
    assert.equal(await call("write_file", { path: "a" }), "SESSION_NOT_INITIALIZED");
    assert.equal(await call("begin_session"), "ok");
    assert.equal(await call("write_file", { path: "a" }), "ok");
    assert.equal(await call("fail"), "INVARIANT_VIOLATION");
    assert.equal(await call("write_file", { path: "a" }), "SESSION_LOCKED");
    assert.equal(await call("read"), "ok");
    assert.equal(await call("write_file", { path: "docs/reports/why.md" }), "ok");
    assert.equal(await call("begin_session"), "ok");
    assert.equal(await call("write_file", { path: "a" }), "ok");
  });

  test("k12: a call of a session that is over locks no other", async () => {
    const made = server();
    const client = await paired(made);
    const call = async (name, args = {}) => code(await client.callTool({ name, arguments: args }));
    assert.equal(await call("begin_session"), "ok");
    const late = call("fail_when_told");
    while (made.tell === undefined) await new Promise(setImmediate);
    assert.equal(await call("begin_session"), "ok");
    made.tell();
    assert.equal(await late, "INVARIANT_VIOLATION");
    assert.equal(await call("write_file", { path: "a" }), "ok");
  });

  test("k12: each connection has its own session", async () => {
    const [one, other] = [await paired(server()), await paired(server())];
    await one.callTool({ name: "begin_session" });
    assert.equal(code(await other.callTool({ name: "write_file", arguments: { path: "a" } })), "SESSION_NOT_INITIALIZED");
    assert.equal(code(await one.callTool({ name: "write_file", arguments: { path: "a" } })), "ok");
  });
});

describe("profiles and successes (t1, t5)", () => {
  for (const [program, kind] of [["test/servers/v1.mjs", "v1"], ["test/servers/v2.mjs", "modern"]]) {
    for (const profile of ["api", "workflow"]) {
      test(`t5: ${profile} on ${program}, on every path`, async () => {
        const META = JSON.stringify({ toolVersion: "1.2", mode: "autopilot", approvalMode: false });
        const server = await connect(kind, program, { CONTRACT: "tuitbot", PROFILE: profile, META });
        for (const tool of ["success", "throws_error", "never", "no_such_tool", "is_error"]) {
          const { content, isError } = await server.call(tool);
          const envelope = JSON.parse(content[0].text);
          const keys = isError ? ["success", "data", "error", "meta"] : ["success", "data", "meta"];
          assert.deepEqual(Object.keys(envelope), keys, tool);
          assert.equal(envelope.success, !isError);
          assert.equal(envelope.meta.tool_version, "1.2");
          assert.equal(typeof envelope.meta.elapsed_ms, "number");
          assert.equal(envelope.meta.approval_mode, profile === "api" ? undefined : false);
          assert.equal("mode" in envelope.meta, profile !== "api");
        }
        await server.close();
      });
    }
  }
});

describe("manifests (t6)", () => {
  const tools = {
    post: { category: "write", mutation: true, requires: ["x_client"], codes: ["rate_limited", "unavailable"] },
    read: { category: "read", codes: ["not_found"], requires: ["db"] },
  };
  const server = (more = {}, strict = true) => {
    const made = withContract(new McpServer({ name: "m", version: "1" }), { audit: false, tools: { ...tools, ...more }, strict });
    made.registerTool("read", {}, () => { throw new Failure(Contract.builtin("standard"), "conflict"); });
    made.registerTool("post", { inputSchema: { n: z.number() } }, () => { throw new Failure(Contract.builtin("standard"), "rate_limited"); });
    return made;
  };

  test("t6: it is sorted, stable, and has the boundary's own codes", async () => {
    const made = await manifest(server());
    assert.deepEqual(made.tools.map((tool) => tool.name), ["post", "read"]);
    const [post] = made.tools;
    assert.deepEqual(Object.keys(post), ["name", "category", "mutation", "requires_db", "requires_x_client", "profiles", "possible_error_codes"]);
    assert.deepEqual(post.possible_error_codes, ["cancelled", "internal", "invalid_arguments", "rate_limited", "timeout", "unavailable"]);
    assert.equal(JSON.stringify(made), JSON.stringify(await manifest(server())));
  });

  test("t6: a committed manifest that differs, or is missing, fails", async () => {
    const path = join(mkdtempSync(join(tmpdir(), "faultwire-")), "manifest.json");
    await assert.rejects(assertManifest(server(), path), /does not exist/);
    writeFileSync(path, `${JSON.stringify(await manifest(server()), undefined, 2)}\n`);
    await assertManifest(server(), path);
    writeFileSync(path, readFileSync(path, "utf8").replace('"unavailable"', '"locked"'));
    await assert.rejects(assertManifest(server(), path), /- "locked".*\n\+ "unavailable"/s);
    await assert.rejects(manifest(server({ gone: { codes: [] } })), /gone is declared, but not registered/);
  });

  test("t6: a code that a tool does not declare is found", async () => {
    for (const [strict, expected] of [[true, "internal"], [false, "conflict"]]) {
      const made = server({}, strict);
      const client = await paired(made);
      const { structuredContent } = await client.callTool({ name: "read" });
      assert.equal(structuredContent.error.code, expected);
      assert.equal(boundaryOf(made).undeclared, 1);
      const fine = await client.callTool({ name: "post", arguments: { n: 1 } });
      assert.equal(fine.structuredContent.error.code, "rate_limited");
      assert.equal(boundaryOf(made).undeclared, 1);
    }
    assert.throws(() => withContract(new McpServer({ name: "m", version: "1" }), { audit: false, tools: { x: { codes: ["timeouts"] } } }), /did you mean "timeout"/);
  });
});

describe("options", () => {
  test("a server is wrapped once, and only a server", () => {
    const server = withContract(new McpServer({ name: "m", version: "1" }), { audit: false });
    assert.throws(() => withContract(server), /already/);
    assert.throws(() => withContract({}), /does not know this kind of server/);
    assert.throws(() => boundaryOf(new Server({ name: "m", version: "1" })), /under no contract/);
    assert.throws(() => withContract(new McpServer({ name: "m", version: "1" }), { audit: false, contract: "context-resolve", keep: ["paths"] }), /masks this kind/);
    assert.throws(() => withContract(new McpServer({ name: "m", version: "1" }), { audit: false, output: "maybe" }), /settings/);
  });

  test("a server that is connected already can be wrapped, and its session's facts are told", async () => {
    const server = new McpServer({ name: "late", version: "1" });
    server.registerTool("fails", { inputSchema: {} }, () => { throw new Error("why"); });
    server.registerTool("soft", { inputSchema: {} }, () => text('{"ok":false,"error":"Something failed"}'));
    const client = await paired(server);
    withContract(server, { contract: "kaiza", audit: false, session: () => ({ id: "s-1", role: "WINDSURF" }) });
    for (const tool of ["fails", "soft", "none"]) {
      const { content, isError } = await client.callTool({ name: tool, arguments: {} });
      assert.ok(isError);
      const { session_id, role, tool_name } = JSON.parse(content[0].text);
      assert.deepEqual([session_id, role, tool_name], ["s-1", "WINDSURF", tool]);
    }
  });

  test("arguments: enforce refuses what a low-level handler would accept", async () => {
    const server = await connect("v1", "test/servers/v1-low.mjs", { ARGUMENTS: "enforce", OUTPUT: "enforce", ORDER: "last" });
    const { structuredContent } = await server.call("echo", { words: "ok", times: "x" });
    assert.equal(structuredContent.error.code, "invalid_arguments");
    assert.deepEqual(structuredContent.error.details.validationIssues.map((issue) => issue.path), ["times"]);
    const { isError, content } = await server.call("bad_output");
    assert.ok(isError);
    assert.equal(JSON.parse(content[0].text).error.code, "bad_response");
    const undefinedResult = await server.call("returns_undefined");
    assert.equal(undefinedResult.structuredContent.error.code, "bad_response");
    await server.close();
  });
});
