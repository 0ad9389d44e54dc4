// The example server of WorkRail: each of its codes, by the condition that brings it about.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { Contract } from "faultwire";

import { connect, scratch } from "./lib/connect.mjs";
import { AckFailure, ackFailure, workflowFailure } from "../examples/workrail/failures.js";

const workrail = Contract.builtin("workrail");

describe("the WorkRail example", () => {
  const dir = scratch("workrail");
  const file = (id) => join(dir, "workflows", `${id}.json`);
  const put = (id, workflow) => writeFileSync(file(id), typeof workflow === "string" ? workflow : JSON.stringify(workflow));
  const two = { requires: ["goal"], steps: [{ id: "a", prompt: "Do a" }, { id: "b", prompt: "Do b" }] };
  let server;
  before(async () => {
    mkdirSync(join(dir, "workflows"), { recursive: true });
    put("two", two);
    put("broken", "no JSON");
    put("endless", { steps: [{ id: "a", prompt: "p", repeats: 0 }] });
    const audit = scratch("audit");
    server = await connect("v1", "examples/workrail/server.js", { AUDIT: audit }, [dir, audit]);
  });
  after(() => server.close());

  const call = async (tool, args) => {
    const result = await server.call(tool, args);
    return [result.isError === true, JSON.parse(result.content[0].text)];
  };
  const start = async (id = "two", context = { goal: 1 }) => await call("start_workflow", { workflowId: id, context });
  const proceed = async (stateToken, ackToken, output) => await call("continue_workflow", { stateToken, ...(ackToken ? { ackToken } : {}), ...(output ? { output } : {}) });
  const fails = (told, code, kind = "not_retryable") => {
    const [isError, envelope] = told;
    assert.ok(isError, JSON.stringify(envelope));
    assert.equal(envelope.code, code, JSON.stringify(envelope));
    assert.equal(envelope.retry.kind, kind);
    assert.equal(server.records().at(-1).fault.code, code);
    return envelope;
  };
  const session = () => { const all = readdirSync(join(dir, "sessions")); return join(dir, "sessions", all.at(-1)); };
  /** A new session, alone in its directory. */
  const fresh = async () => { for (const name of readdirSync(join(dir, "sessions"))) rmSync(join(dir, "sessions", name)); return (await start())[1]; };

  test("a workflow from its start to its end", async () => {
    const first = await fresh();
    assert.equal(first.step.id, "a");
    const [, second] = await proceed(first.stateToken, first.ackToken, { note: "done" });
    assert.equal(second.step.id, "b");
    const [, last] = await proceed(second.stateToken, second.ackToken);
    assert.equal(last.isComplete, true);
    fails(await proceed(last.stateToken, last.ackToken), "PRECONDITION_FAILED");
  });

  test("w4: VALIDATION_ERROR with an issue for each field", async () => {
    const { details } = fails(await call("start_workflow", { workflowId: 5 }), "VALIDATION_ERROR");
    assert.deepEqual(details.validationIssues.map((issue) => issue.path), ["workflowId"]);
    fails(await start("broken"), "VALIDATION_ERROR");
    fails(await start("endless"), "VALIDATION_ERROR");
  });

  test("NOT_FOUND and PRECONDITION_FAILED", async () => {
    fails(await start("none"), "NOT_FOUND");
    const { message } = fails(await start("two", {}), "PRECONDITION_FAILED");
    assert.equal(message, "The context lacks goal");
  });

  test("w11: what is wrong with a token is in the details", async () => {
    const { stateToken, ackToken } = await fresh();
    const other = await start();
    const tokens = {
      TOKEN_INVALID_FORMAT: ["nonsense"],
      TOKEN_UNSUPPORTED_VERSION: [stateToken.replace("wr1", "wr2")],
      TOKEN_BAD_SIGNATURE: [`${stateToken.slice(0, -4)}AAAA`],
      TOKEN_SCOPE_MISMATCH: [stateToken, other[1].ackToken],
    };
    for (const [code, given] of Object.entries(tokens)) {
      const { details, suggestion } = fails(await proceed(...given), code);
      assert.equal(details.tokenErrorCode, code);
      assert.ok(Buffer.byteLength(suggestion) <= 512);
    }
    fails(await proceed(ackToken), "TOKEN_SCOPE_MISMATCH");
    put("two", { ...two, steps: two.steps.slice(1) });
    assert.equal(fails(await proceed(stateToken), "TOKEN_WORKFLOW_HASH_MISMATCH").details.kind, "workflow_hash_mismatch");
    put("two", two);
  });

  test("TOKEN_UNKNOWN_NODE and TOKEN_SESSION_LOCKED", async () => {
    const { stateToken } = await fresh();
    writeFileSync(`${session()}.lock`, "");
    const locked = fails(await proceed(stateToken), "TOKEN_SESSION_LOCKED", "retryable_after_ms");
    assert.equal(locked.retry.afterMs, 1000);
    for (const name of readdirSync(join(dir, "sessions"))) rmSync(join(dir, "sessions", name));
    assert.equal(fails(await proceed(stateToken), "TOKEN_UNKNOWN_NODE").details.kind, "missing_node_or_run");
  });

  test("w10: SESSION_NOT_HEALTHY says how", async () => {
    const damages = {
      corrupt_head: () => "{",
      corrupt_tail: (text) => `${text}{"v":1,"index":7}\n`,
      unknown_version: (text) => `${text}{"v":9,"index":1}\n`,
    };
    for (const [kind, damage] of Object.entries(damages)) {
      const { stateToken } = await fresh();
      const path = session();
      writeFileSync(path, `${damage(readFileSync(path, "utf8")).trimEnd()}\n`);
      const { health } = fails(await proceed(stateToken), "SESSION_NOT_HEALTHY").details;
      assert.equal(health.kind, kind);
      assert.equal(typeof health.reason.message, "string");
    }
  });

  test("w2: INTERNAL_ERROR that names a delay, and TIMEOUT", async () => {
    const { stateToken } = await fresh();
    const path = session();
    rmSync(path);
    mkdirSync(path);
    const told = fails(await proceed(stateToken), "INTERNAL_ERROR", "retryable_after_ms");
    assert.equal(told.retry.afterMs, 2000);
    assert.equal(told.details.kind, "session_store_error");
    rmSync(path, { recursive: true });
    spawnSync("mkfifo", [file("pipe")]);
    fails(await start("pipe"), "TIMEOUT", "retryable_immediate");
    chmodSync(file("pipe"), 0o600);
  });

  test("each of its codes was provoked", () => {
    const seen = new Set(server.records().map((record) => record.fault?.code));
    assert.deepEqual(Object.keys(workrail.codes).filter((code) => !seen.has(code)), []);
  });
});

test("w9: every case of a workflow's failure has its code", () => {
  const codes = {
    WorkflowNotFound: "NOT_FOUND", InvalidState: "VALIDATION_ERROR", InvalidLoop: "VALIDATION_ERROR",
    MissingContext: "PRECONDITION_FAILED", MaxIterationsExceeded: "PRECONDITION_FAILED", ConditionEvalFailed: "INTERNAL_ERROR",
  };
  for (const [kind, code] of Object.entries(codes)) assert.equal(workflowFailure({ kind, message: "m" }).code, code);
});

test("w12: the eight acknowledgement failures are read and written by kind", () => {
  const reason = { code: "EIO", message: "m" };
  const all = [
    { kind: "missing_node_or_run" }, { kind: "workflow_hash_mismatch" }, { kind: "missing_snapshot" }, { kind: "no_pending_step" },
    { kind: "advance_apply_failed", message: "m" }, { kind: "advance_next_failed", message: "m" },
    { kind: "session_store_error", error: reason }, { kind: "snapshot_store_error", error: reason },
  ];
  assert.equal(AckFailure.options.length, all.length);
  for (const one of all) {
    assert.deepEqual(AckFailure.parse(JSON.parse(JSON.stringify(one))), one);
    assert.equal(JSON.parse(ackFailure(one).fault.render()).details.kind, one.kind);
  }
  assert.ok(!AckFailure.safeParse({ kind: "something_else" }).success);
});
