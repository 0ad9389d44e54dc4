// The example server of KAIZA: each of its codes, by the condition that brings it about.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { AuditLog, Contract, verdict } from "faultwire";

import { connect, records, scratch } from "./lib/connect.mjs";
import { SYSTEM_ERROR_CODES, SystemError } from "../examples/kaiza/system-error.mjs";

const kaiza = Contract.builtin("kaiza");
const PROGRAM = "examples/kaiza/server.mjs";
const sha256 = (text) => createHash("sha256").update(text).digest("hex");

/** A workspace with plans and files. */
function workspace() {
  const root = scratch("kaiza");
  const put = (path, text) => { mkdirSync(join(root, path, ".."), { recursive: true }); writeFileSync(join(root, path), text); };
  const plan = (name, status, scope) => { const text = JSON.stringify({ status, scope }); put(`docs/plans/${name}.json`, text); return sha256(text); };
  const plans = { good: plan("good", "APPROVED", ["src"]), draft: plan("draft", "DRAFT", ["src"]) };
  put("docs/plans/broken.json", "no plan");
  plans.broken = sha256("no plan");
  put("src/a.txt", "one\ntwo\nthree\n");
  put("src/binary.dat", Buffer.from([0xff, 0xfe]));
  put("src/fixed.txt", "fixed");
  chmodSync(join(root, "src/fixed.txt"), 0o444);
  mkdirSync(join(root, "src/dir"));
  symlinkSync("/etc", join(root, "etc"));
  return { root, plans };
}

describe("the KAIZA example", () => {
  let place;
  let server;
  before(async () => {
    place = workspace();
    const audit = scratch("audit");
    server = await connect("v2", PROGRAM, { AUDIT: audit }, [place.root, audit]);
  });
  after(() => server.close());

  const call = async (tool, args = {}) => {
    const result = await server.call(tool, args);
    return result.isError ? JSON.parse(result.content[0].text) : { error_code: "ok", ...result };
  };
  const begin = async (role = "WINDSURF") => { await server.call("end_session"); await server.call("begin_session", { role }); };
  const now = (path) => sha256(readFileSync(join(place.root, path)));
  const write = (path, more = {}) => ["write_file", { path, content: "x", plan_hash: place.plans.good, phase_id: "PHASE_5A", ...more }];
  const patch = (text) => ["apply_patch", { path: "src/a.txt", previous_hash: now("src/a.txt"), plan_hash: place.plans.good, patch: text }];

  /** code → [role, tool and arguments]. */
  const CASES = {
    MISSING_REQUIRED_FIELD: ["WINDSURF", () => ["read_file", {}]],
    INVALID_INPUT_TYPE: ["WINDSURF", () => ["read_file", { path: 5 }]],
    INVALID_INPUT_VALUE: ["WINDSURF", () => ["read_audit_log", { last: 1000 }]],
    INVALID_INPUT_FORMAT: ["WINDSURF", () => write("src/b.txt", { plan_hash: "xyz" })],
    ROLE_MISMATCH: ["WINDSURF", () => ["begin_session", { role: "ANTIGRAVITY" }]],
    UNAUTHORIZED_ACTION: ["ANTIGRAVITY", () => write("src/b.txt")],
    PATH_TRAVERSAL_BLOCKED: ["WINDSURF", () => ["read_file", { path: "../x" }]],
    OUTSIDE_WORKSPACE: ["WINDSURF", () => ["read_file", { path: "etc/hostname" }]],
    INVALID_PATH: ["WINDSURF", () => ["read_file", { path: "." }]],
    PATH_NOT_FOUND: ["WINDSURF", () => ["read_file", { path: "no/such/file" }]],
    FILE_NOT_FOUND: ["WINDSURF", () => ["read_file", { path: "src/none.txt" }]],
    FILE_READ_FAILED: ["WINDSURF", () => ["read_file", { path: "src/binary.dat" }]],
    FILE_ALREADY_EXISTS: ["WINDSURF", () => write("src/a.txt")],
    FILE_WRITE_FAILED: ["WINDSURF", () => write("src/dir")],
    INSUFFICIENT_PERMISSIONS: ["WINDSURF", () => write("src/fixed.txt", { previous_hash: now("src/fixed.txt") })],
    HASH_MISMATCH: ["WINDSURF", () => write("src/a.txt", { previous_hash: "0" })],
    PATCH_INVALID: ["WINDSURF", () => patch("nonsense")],
    PATCH_APPLY_FAILED: ["WINDSURF", () => patch("@@ -1,1 +1,1 @@\n-zero\n+one\n")],
    PLAN_NOT_FOUND: ["WINDSURF", () => write("src/b.txt", { plan_hash: "0".repeat(64) })],
    PLAN_NOT_APPROVED: ["WINDSURF", () => write("src/b.txt", { plan_hash: place.plans.draft })],
    PLAN_ENFORCEMENT_FAILED: ["WINDSURF", () => write("src/b.txt", { plan_hash: place.plans.broken })],
    PLAN_SCOPE_VIOLATION: ["WINDSURF", () => write("other.txt")],
    POLICY_VIOLATION: ["WINDSURF", () => write("src/key.txt", { content: "-----BEGIN PRIVATE KEY-----" })],
    RUST_POLICY_VIOLATION: ["WINDSURF", () => write("src/b.rs", { content: "unsafe { }" })],
    PREFLIGHT_FAILED: ["WINDSURF", () => write("src/b.json", { content: "{" })],
  };

  test("k12: no call before begin_session", async () => {
    assert.equal((await call(...write("src/b.txt"))).error_code, "SESSION_NOT_INITIALIZED");
  });

  for (const [code, [role, asked]] of Object.entries(CASES)) {
    test(`k9: ${code}`, async () => {
      await begin(role);
      const told = await call(...asked());
      assert.equal(told.error_code, code, JSON.stringify(told));
      assert.equal(Object.keys(told).length, 11);
      assert.equal(told.role, role);
      assert.match(told.session_id, /^[0-9a-f-]{36}$/);
      const record = server.records().at(-1);
      assert.equal(record.fault.code, code);
      assert.equal(record.fault.tool, told.tool_name);
    });
  }

  test("phase and plan are kept in envelope and record", async () => {
    await begin();
    const told = await call(...write("src/a.txt"));
    assert.deepEqual([told.phase_id, told.plan_hash], ["PHASE_5A", place.plans.good]);
    const { session } = server.records().at(-1).fault;
    assert.deepEqual([session.phase, session.plan_hash], ["PHASE_5A", place.plans.good]);
  });

  test("what is allowed is done", async () => {
    await begin();
    assert.equal((await call(...write("src/new.txt"))).error_code, "ok");
    assert.equal((await call(...patch("@@ -2,1 +2,1 @@\n-two\n+TWO\n"))).error_code, "ok");
    assert.equal(readFileSync(join(place.root, "src/a.txt"), "utf8"), "one\nTWO\nthree\n");
  });

  test("k12: SESSION_LOCKED until it is begun again; reports and reading stay allowed", async () => {
    await begin();
    await call(...write("src/key.txt", { content: "-----BEGIN PRIVATE KEY-----" }));
    assert.equal((await call(...write("src/c.txt"))).error_code, "SESSION_LOCKED");
    assert.equal((await call("read_file", { path: "src/a.txt" })).error_code, "ok");
    assert.equal((await call("write_file", { path: "docs/reports/why.md", content: "why" }).catch((e) => e)).error_code, "PATH_NOT_FOUND");
    mkdirSync(join(place.root, "docs/reports"));
    assert.equal((await call("write_file", { path: "docs/reports/why.md", content: "why" })).error_code, "ok");
    await begin();
    assert.equal((await call(...write("src/c.txt"))).error_code, "ok");
  });

  test("k11: the client learns the action of a code", async () => {
    await server.call("end_session");
    const result = await server.call(...write("src/b.txt"));
    assert.match(verdict(result).action, /begin_session/);
  });

  test("k6: INVARIANT_VIOLATION for a log that was changed", async () => {
    await begin();
    const file = join(server.audit, "audit-log.jsonl");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace("PATH_NOT_FOUND", "PATH_NOT_FOUNT"));
    const told = await call("read_audit_log", { last: 1 });
    assert.deepEqual([told.error_code, told.invariant_id], ["INVARIANT_VIOLATION", "AUDIT_LOG_INTACT"]);
    const grown = readFileSync(file, "utf8");
    writeFileSync(file, grown.replace("PATH_NOT_FOUNT", "PATH_NOT_FOUND"));
  });

  test("SESSION_INITIALIZATION_FAILED without a workspace, then UNKNOWN_TOOL_FAILURE for a call that hangs", async () => {
    await server.call("end_session");
    renameSync(place.root, `${place.root}-moved`);
    assert.equal((await call("begin_session", { role: "WINDSURF" })).error_code, "SESSION_INITIALIZATION_FAILED");
    renameSync(`${place.root}-moved`, place.root);
    await begin();
    assert.equal(kaiza.describe().conditions.timeout, "UNKNOWN_TOOL_FAILURE");
    spawnSync("mkfifo", [join(place.root, "docs/plans/pipe.json")]);
    assert.equal((await call(...write("src/hang.txt"))).error_code, "UNKNOWN_TOOL_FAILURE");
    rmSync(join(place.root, "docs/plans/pipe.json"));
  });

  test("AUDIT_LOG_FAILED: nothing is answered that is not recorded", async () => {
    renameSync(join(server.audit, "audit-log.jsonl"), join(server.audit, "gone"));
    assert.equal((await call("read_file", { path: "src/none.txt" })).error_code, "AUDIT_LOG_FAILED");
  });
});

describe("k15: the startup of the KAIZA example", () => {
  const program = fileURLToPath(new URL(`../${PROGRAM}`, import.meta.url));
  const start = (...args) => {
    const { status, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8", input: "" });
    return [status, JSON.parse(stderr.trim().split("\n").at(-1))];
  };
  const CASES = {
    BOOTSTRAP_FAILURE: () => ["/no/such/workspace", scratch("audit")],
    SELF_AUDIT_FAILURE: () => { const audit = scratch("audit"); appendFileSync(join(audit, "audit-log.jsonl"), "no record\n"); return [workspace().root, audit]; },
    AUDIT_LOCK_FAILED: () => { const audit = scratch("audit"); AuditLog.open(audit); return [workspace().root, audit]; },
  };
  for (const [code, args] of Object.entries(CASES)) {
    test(`${code} is printed as an envelope, and the status is not zero`, () => {
      const [status, told] = start(...args());
      assert.equal(status, 1);
      assert.equal(told.error_code, code);
      assert.equal(told.tool_name, "startup");
      assert.deepEqual([told.session_id, told.workspace_root, told.role], [null, null, null]);
    });
  }
});

test("k3: SystemError refuses a code that is not registered", () => {
  assert.equal(Object.keys(SYSTEM_ERROR_CODES).length, 35);
  assert.throws(() => SystemError.toolFailure("NO_CODE"), /has no code "NO_CODE"/);
  const told = JSON.parse(SystemError.toEnvelope(SystemError.fromUnknown("words", { error_code: "FILE_READ_FAILED", tool_name: "t" })));
  assert.deepEqual([told.error_code, told.human_message, told.tool_name, told.cause], ["FILE_READ_FAILED", "words", "t", "words"]);
});

test("records are kept under the name of the document", () => {
  const directory = scratch();
  AuditLog.open(directory).close();
  assert.equal(records(directory)[0].type, "segment");
});
