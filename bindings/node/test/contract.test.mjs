// Contracts, faults, errors, retries, alerts.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import * as faultwire from "faultwire";
import {
  Alerts, Contract, ContractError, EnvelopeError, Failure, FaultError, FaultwireError, InputError, Reader,
  UnknownCodeError, UnknownContractError, redact, verdict,
} from "faultwire";

const stamp = { nowMs: Date.UTC(2026, 0, 19, 15, 32, 10, 123), random: 7 };

describe("contracts", () => {
  test("all six are built in, and cannot be changed (k8)", () => {
    assert.deepEqual(Contract.builtins().sort(), ["context-resolve", "kaiza", "owlclaw", "standard", "tuitbot", "workrail"]);
    for (const name of Contract.builtins()) {
      const contract = Contract.builtin(name);
      assert.equal(contract.name, name);
      assert.throws(() => { contract.codes.NEW = {}; }, TypeError);
      assert.throws(() => { Object.values(contract.codes)[0].retryable = true; }, TypeError);
    }
    assert.equal(Object.keys(Contract.builtin("kaiza").codes).length, 35);
  });

  test("a4: every code is rendered on every surface and read back", () => {
    for (const name of Contract.builtins()) {
      const contract = Contract.builtin(name);
      for (const code of Object.keys(contract.codes)) {
        const fault = contract.fault({ code }, stamp);
        for (const surface of ["mcp", "http", "result"]) {
          for (const profile of contract.describe().profiles) {
            const text = fault.render({ surface, profile });
            assert.equal(contract.decode(text, { surface, profile }).code, code, `${name} ${surface} ${text}`);
          }
        }
      }
    }
  });

  test("c4: the same input has the same bytes", () => {
    const contract = Contract.builtin("owlclaw");
    const once = () => contract.fault({ code: "auth.forbidden", details: { a: 1 } }, stamp).render();
    assert.equal(once(), once());
    assert.match(once(), /"incident_id":"inc_20260119_/);
  });

  test("a mistake in a file has its line and column", () => {
    const wrong = () => Contract.parse("mine.toml", '[contract]\nname = "mine"\nversio = "1.0.0"\n');
    assert.throws(wrong, (error) => {
      assert.ok(error instanceof ContractError && error instanceof FaultwireError);
      assert.equal(error.file, "mine.toml");
      assert.ok(error.line >= 1 && error.column >= 1);
      assert.match(error.message, /versio/);
      return true;
    });
    const path = join(mkdtempSync(join(tmpdir(), "faultwire-")), "mine.toml");
    writeFileSync(path, "nonsense");
    assert.throws(() => Contract.load(path), ContractError);
    assert.throws(() => Contract.load("/no/such/file"), /ENOENT/);
  });

  test("a contract of one's own works like a built-in one", () => {
    const file = new URL("../contracts/standard.toml", import.meta.url);
    const loaded = Contract.load(fileURLToPath(file));
    assert.deepEqual(loaded.describe(), Contract.builtin("standard").describe());
    const text = readFileSync(file, "utf8").replace('name = "standard"', 'name = "harbour"').replaceAll('"server_crashed"', '"crane_crashed"');
    const own = Contract.parse("harbour.toml", text);
    const failure = new Failure(own, "crane_crashed", { retryAfterMs: 2000 });
    const result = JSON.parse(failure.fault.render({ surface: "result" }));
    assert.equal(new Reader([own]).verdict(result, { readOnly: true }).delayMs, 2000);
    assert.deepEqual([verdict(result, { contracts: [own] }).contract, verdict(result).contract], ["harbour", null]);
    assert.throws(() => new Failure(own, "server_crashed"), UnknownCodeError);
  });

  test("errors are of the kind that they are, with help", () => {
    const contract = Contract.builtin("standard");
    assert.throws(() => Contract.builtin("standart"), (e) => e instanceof UnknownContractError && e.help === 'did you mean "standard"?');
    assert.throws(() => contract.fault({ code: "timeouts" }), (e) => e instanceof UnknownCodeError && /did you mean "timeout"/.test(e.message));
    assert.throws(() => contract.fault({ code: "not_found", retry_after_ms: 5 }), FaultError);
    assert.throws(() => contract.decode("{}"), EnvelopeError);
    assert.throws(() => contract.fault({ code: "timeout", nonsense: 1 }), InputError);
    assert.throws(() => contract.fault({ code: "timeout" }).render({ surface: "paper" }), InputError);
  });

  test("retry, classify and redact are the engine's", () => {
    const contract = Contract.builtin("workrail");
    const envelope = contract.fault({ code: "TOKEN_SESSION_LOCKED", retry_after_ms: 2000 }).render();
    assert.deepEqual(contract.retry(envelope), {
      retry: true, delayMs: 2000, maxDelayMs: 2000, reason: "retryable", code: "TOKEN_SESSION_LOCKED",
      action: "Wait afterMs, then send the same call again.",
    });
    const line = '{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"429 Too Many Requests"}]}}';
    assert.equal(Contract.builtin("standard").classify(line).code, "rate_limited");
    assert.equal(redact("open /home/jane/x with password=hunter2"), "open [redacted:path] with password=[redacted]");
    assert.equal(redact("open /home/jane/x", { keep: ["paths"] }), "open /home/jane/x");
  });

  test("o7: alerts page on the sixth warning", () => {
    const alerts = new Alerts(Contract.builtin("owlclaw"));
    const pages = Array.from({ length: 7 }, (_, t) => alerts.observe({ t, client: "a", code: "governance.rate_limited" }));
    assert.deepEqual(pages.map((page) => page?.count), [undefined, undefined, undefined, undefined, undefined, 6, undefined]);
  });

  test("a7: a verdict needs a retryable code and a safe call", () => {
    const fault = Contract.builtin("standard").fault({ code: "timeout", outcome: "maybe_executed" });
    const result = JSON.parse(fault.render({ surface: "result" }));
    assert.equal(verdict(result).reason, "may_have_run");
    assert.equal(verdict(result, { readOnly: true }).retry, true);
    assert.equal(verdict(result, { readOnly: true, budget: 0 }).reason, "budget_spent");
    assert.equal(verdict({ content: [] }), undefined);
    assert.equal(new Reader([Contract.builtin("kaiza")]).verdict(result).contract, null);
  });

  test("both kinds of modules share one implementation", () => {
    const required = createRequire(import.meta.url)("faultwire");
    assert.equal(required.Contract, Contract);
    const own = (name) => !["default", "module.exports", "__esModule"].includes(name);
    assert.deepEqual(Object.keys(required).sort(), Object.keys(faultwire).filter(own).sort());
  });
});
