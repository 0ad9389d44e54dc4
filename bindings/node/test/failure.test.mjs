// Failures: typed, of unknown errors, of invariants, of tools, of the startup.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  Contract, Failure, UnknownCodeError, fromUnknown, invariantViolation, isFailure, startupFailure, toolFailure,
} from "faultwire";
import { isFault, match, rateLimited, timeout } from "faultwire/standard";

const kaiza = Contract.builtin("kaiza");
const envelope = (failure) => JSON.parse(failure.fault.render());

describe("failures", () => {
  test("k3: an unregistered code cannot be constructed", () => {
    assert.throws(() => new Failure(kaiza, "NO_SUCH_CODE"), UnknownCodeError);
    assert.throws(() => toolFailure(kaiza, "FILE_NOT_FOUNT"), /did you mean "FILE_NOT_FOUND"/);
    assert.throws(() => new Failure(kaiza, "FILE_NOT_FOUND", { retryAfterMs: 5 }), /cannot have retry_after_ms/);
  });

  test("k1 k5: the envelope has its eleven fields, in their order", () => {
    const failure = toolFailure(kaiza, "INVALID_PATH", { tool: "write_file" });
    assert.deepEqual(Object.keys(envelope(failure)), [
      "error_code", "human_message", "role", "session_id", "workspace_root", "tool_name",
      "invariant_id", "phase_id", "plan_hash", "cause", "timestamp",
    ]);
    assert.match(envelope(failure).timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test("k4: a cause is normalised, bounded and safe", () => {
    const cycle = { name: "cycle" };
    cycle.self = cycle;
    const deep = new Error("1", { cause: new Error("2", { cause: new Error("3", { cause: new Error("4") }) }) });
    const causes = [[new TypeError("bad"), { message: "bad", code: null, name: "TypeError" }], ["words", "words"], [{ a: 1 }, { a: 1 }], [undefined, null]];
    for (const [cause, expected] of causes) {
      assert.deepEqual(envelope(toolFailure(kaiza, "INTERNAL_ERROR", { cause })).cause, expected);
    }
    for (const cause of [cycle, deep, 10n, Symbol("s"), () => 1, new Map([[1, 2]]), { get x() { throw new Error(); } }]) {
      assert.ok(JSON.stringify(envelope(toolFailure(kaiza, "INTERNAL_ERROR", { cause }))).length < 8192);
    }
  });

  test("k6: none of the four ways drops a field", () => {
    const facts = {
      message: "words", cause: new Error("why"), session: { id: "s", role: "WINDSURF", workspaceRoot: "/w", phase: "P", planHash: "h" },
    };
    const check = (failure, code, more = {}) => {
      const { error_code, human_message, session_id, role, phase_id, plan_hash, cause, ...rest } = envelope(failure);
      assert.deepEqual({ error_code, human_message, session_id, role, phase_id, plan_hash }, { error_code: code, human_message: "words", session_id: "s", role: "WINDSURF", phase_id: "P", plan_hash: "h" });
      assert.equal(cause.message, "why");
      for (const [key, value] of Object.entries(more)) assert.equal(rest[key], value);
    };
    check(fromUnknown(kaiza, new Error("raw"), { ...facts, code: "FILE_READ_FAILED", tool: "t" }), "FILE_READ_FAILED", { tool_name: "t" });
    check(invariantViolation(kaiza, "MANDATORY_DIAGNOSTICS", facts), "INVARIANT_VIOLATION", { invariant_id: "MANDATORY_DIAGNOSTICS" });
    check(toolFailure(kaiza, "PLAN_NOT_FOUND", { ...facts, tool: "t" }), "PLAN_NOT_FOUND", { tool_name: "t" });
    check(startupFailure(kaiza, "BOOTSTRAP_FAILURE", facts), "BOOTSTRAP_FAILURE", { tool_name: "startup" });
  });

  test("k7: the own code, the context's, the fallback; never an empty message", () => {
    assert.equal(fromUnknown(kaiza, Object.assign(new Error("x"), { code: "FILE_NOT_FOUND" }), { code: "INVALID_PATH" }).code, "FILE_NOT_FOUND");
    assert.equal(fromUnknown(kaiza, Object.assign(new Error("x"), { code: "ENOENT" }), { code: "INVALID_PATH" }).code, "INVALID_PATH");
    assert.equal(fromUnknown(kaiza, { error_code: "HASH_MISMATCH" }).code, "HASH_MISMATCH");
    for (const nothing of [undefined, null, "", {}, new Error("")]) {
      const failure = fromUnknown(kaiza, nothing);
      assert.equal(failure.code, "INTERNAL_ERROR");
      assert.equal(envelope(failure).human_message, kaiza.row("INTERNAL_ERROR").message);
    }
  });

  test("w5: details that are no JSON become an internal failure that says so", () => {
    const workrail = Contract.builtin("workrail");
    const cycle = [];
    cycle.push(cycle);
    for (const details of [{ n: Number.NaN }, { n: [1, Number.POSITIVE_INFINITY] }, { f() {} }, { n: 1n }, cycle, { s: Symbol("x") }]) {
      const failure = new Failure(workrail, "NOT_FOUND", { message: "No such workflow", details });
      const told = envelope(failure);
      assert.equal(told.code, "INTERNAL_ERROR");
      assert.equal(told.message, "Error details validation failed");
      assert.equal(told.details.originalError, "No such workflow");
      assert.equal(told.details.validationErrors.length, 1);
    }
    const fine = new Failure(workrail, "NOT_FOUND", { details: { a: [1, null, { b: "ü" }], left: undefined, date: new Date(0) } });
    assert.deepEqual(envelope(fine).details, { a: [1, null, { b: "ü" }], date: "1970-01-01T00:00:00.000Z" });
  });

  test("w6: a suggestion has at most 512 bytes", () => {
    const told = envelope(new Failure(Contract.builtin("workrail"), "NOT_FOUND", { suggestion: "ü".repeat(400) }));
    assert.ok(Buffer.byteLength(told.suggestion) <= 512);
    assert.ok(told.suggestion.endsWith("..."));
  });

  test("the constructors of a module, its guards and match", () => {
    const failure = rateLimited({ retryAfterMs: 2000, message: "slowly" });
    assert.ok(failure instanceof Failure && failure instanceof Error && isFailure(failure));
    assert.equal(failure.message, "slowly");
    assert.equal(failure.retryAfterMs, 2000);
    assert.ok(isFault(failure) && isFault(failure, "rate_limited", "timeout") && !isFault(failure, "timeout"));
    assert.ok(!isFault(toolFailure(kaiza, "INTERNAL_ERROR")) && !isFault(new Error()) && !isFault(undefined));
    assert.equal(match(failure, { rate_limited: (f) => f.code, _: () => "other" }), "rate_limited");
    assert.equal(match(timeout(), { rate_limited: () => "limit", _: () => "other" }), "other");
  });

  test("what is logged or inspected of a failure shows nothing private", () => {
    const failure = new Failure(Contract.builtin("standard"), "internal", { message: "password=hunter2", cause: new Error("private") });
    assert.ok(!JSON.stringify(failure).includes("hunter2"));
    assert.equal(failure.cause.message, "private");
    assert.match(failure.stack, /failure\.test\.mjs/);
  });
});
