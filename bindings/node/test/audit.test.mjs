// The audit log: durable, one writer, and no wait on the event loop.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { AuditError, AuditLog, Contract } from "faultwire";

import { connect, eventually, records, scratch } from "./lib/connect.mjs";

const contract = Contract.builtin("standard");

describe("the audit log", () => {
  test("k10: a record is on disk when append is done", async () => {
    const directory = scratch();
    const log = AuditLog.open(directory);
    const seq = await log.append(contract.fault({ code: "timeout", tool: "t" }), { request: 7, client: "c", arguments: { a: 1 } });
    const [, record] = records(directory);
    assert.equal(record.seq, seq);
    assert.equal(record.fault.code, "timeout");
    assert.equal(record.call.request, 7);
    assert.match(record.call.arguments, /^hmac-sha256:/);
    await log.event("hello", { a: 1 });
    assert.equal(records(directory)[2].name, "hello");
    assert.equal(log.id, record.log);
    log.close();
    await assert.rejects(log.append(contract.fault({ code: "timeout" })), AuditError);
  });

  test("one process writes a log; the other gets a clear error", () => {
    const directory = scratch();
    const log = AuditLog.open(directory);
    const script = `import { AuditLog } from "faultwire"; try { AuditLog.open(${JSON.stringify(directory)}) } catch (e) { console.log(e.name, e.message) }`;
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    assert.match(said, new RegExp(`^AuditError .*in use by process ${process.pid}.*\nhelp: only one process can write a log`));
    log.close();
    AuditLog.open(directory).close();
  });

  test("64 records at once do not hold the event loop", async () => {
    const log = AuditLog.open(scratch());
    const faults = Array.from({ length: 64 }, () => contract.fault({ code: "timeout" }));
    await log.append(faults[0]);
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    let turns = 0;
    let open = true;
    const turn = () => { turns += 1; if (open) setImmediate(turn); };
    turn();
    await Promise.all(faults.map((fault) => log.append(fault)));
    open = false;
    delay.disable();
    assert.ok(turns > 1, "the loop turned while the disk was written");
    log.close();
  });

  test("a fault that cannot be recorded is answered as that (k10)", async () => {
    const server = await connect("v1", "test/servers/v1.mjs", { CONTRACT: "kaiza" });
    const before = await server.call("throws_error");
    assert.equal(JSON.parse(before.content[0].text).error_code, "INTERNAL_ERROR");
    renameSync(join(server.audit, "audit-log.jsonl"), join(server.audit, "gone"));
    const after = await server.call("throws_error");
    assert.equal(JSON.parse(after.content[0].text).error_code, "AUDIT_LOG_FAILED");
    await server.close();
  });

  test("the default log is the server's, and a second process gets the next", async () => {
    const state = scratch("state");
    const script = `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"; import { boundaryOf, withContract } from "faultwire";
      const s = withContract(new McpServer({ name: "my server", version: "1" })); console.log(boundaryOf(s).log.directory); setTimeout(() => {}, 2000)`;
    const run = () => spawn(process.execPath, ["--input-type=module", "-e", script], { env: { ...process.env, XDG_STATE_HOME: state } });
    const said = (child) => new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data).trim())));
    const one = run();
    assert.equal(await said(one), join(state, "faultwire/audit/my_server"));
    const two = run();
    assert.equal(await said(two), join(state, "faultwire/audit/my_server-2"));
    one.kill();
    two.kill();
  });

  test("worker threads have their own engine", async () => {
    const script = (directory) => `const { parentPort } = require("node:worker_threads");
      const { AuditLog, Contract, Failure } = require("faultwire");
      const log = AuditLog.open(${JSON.stringify(directory)});
      const { fault } = new Failure(Contract.builtin("kaiza"), "INTERNAL_ERROR");
      log.append(fault).then((seq) => { log.close(); parentPort.postMessage(seq); });`;
    const work = (directory) => new Promise((resolve, reject) => {
      const worker = new Worker(script(directory), { eval: true });
      worker.once("message", (seq) => worker.once("exit", () => resolve(seq)));
      worker.once("error", reject);
    });
    const directories = [scratch(), scratch(), scratch()];
    assert.deepEqual(await Promise.all(directories.map(work)), [1, 1, 1]);
    for (const directory of directories) assert.equal(records(directory)[1].fault.code, "INTERNAL_ERROR");
    assert.equal(contract.fault({ code: "timeout" }).report().code, "timeout");
  });

  test("a process that ends after its work ends, whatever was opened", async () => {
    const script = `import { AuditLog, Contract } from "faultwire"; const log = AuditLog.open(${JSON.stringify(scratch())});
      console.log(await log.append(Contract.builtin("standard").fault({ code: "timeout" })));`;
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8", timeout: 10_000 });
    assert.equal(said, "1\n");
  });

  test("a failure of no call is recorded before the process ends", async () => {
    for (const [crash, event] of [["setTimeout(() => { throw new Error('no call') }, 20)", "uncaughtException"], ["setTimeout(() => Promise.reject(new Error('no call')), 20)", "unhandledRejection"]]) {
      const directory = scratch();
      const script = `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"; import { withContract } from "faultwire";
        withContract(new McpServer({ name: "s", version: "1" }), { audit: ${JSON.stringify(directory)} }); ${crash}; setTimeout(() => {}, 5000)`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
      let stderr = "";
      child.stderr.on("data", (chunk) => { stderr += chunk; });
      const status = await new Promise((resolve) => child.once("exit", resolve));
      assert.equal(status, 1);
      assert.match(stderr, /Error: no call/);
      const record = await eventually(() => records(directory).find((one) => one.type === "fault"), "a record");
      assert.equal(record.fault.method, event);
      assert.equal(record.fault.tool, undefined);
      assert.equal(record.fault.cause.message, "no call");
    }
  });
});
