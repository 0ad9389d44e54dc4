// Benchmarks, with the packed artefact: scripts/bench.mjs installs it and runs this.

import { execFileSync } from "node:child_process";

import { AuditLog, Contract } from "faultwire";

import { connect, scratch } from "../test/lib/connect.mjs";

const ROUNDS = 15;
const CALLS = 200;
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const ratio = (a, b) => `${(a / b).toFixed(3)} x`;

await calls("v1", "test/servers/v1.mjs");
await calls("modern", "test/servers/v2.mjs");
render();
await stall();
imports();

/** A call over stdio, a process on each side, with and without the boundary, in turns. */
async function calls(kind, program) {
  const bare = await connect(kind, program, { BARE: "1" });
  const guarded = await connect(kind, program, {});
  for (const tool of ["success", "throws_error"]) {
    const times = { bare: [], guarded: [] };
    const sides = { bare, guarded };
    for (let round = -2; round < ROUNDS; round += 1) {
      for (const [side, server] of Object.entries(sides)) {
        const since = performance.now();
        for (let n = 0; n < CALLS; n += 1) await server.call(tool);
        if (round >= 0) times[side].push(((performance.now() - since) / CALLS) * 1000);
      }
    }
    const [a, b] = [median(times.bare), median(times.guarded)];
    console.log(`${program} ${tool}: ${a.toFixed(0)} us bare, ${b.toFixed(0)} us with the boundary, ${ratio(b, a)}, ${(b - a).toFixed(0)} us more`);
  }
  await bare.close();
  await guarded.close();
  const log = AuditLog.open(scratch());
  const fault = Contract.builtin("standard").fault({ code: "timeout" });
  const syncs = [];
  for (let n = 0; n < 100; n += 1) {
    const since = performance.now();
    await log.append(fault);
    syncs.push((performance.now() - since) * 1000);
  }
  log.close();
  console.log(`one durable record: ${median(syncs).toFixed(0)} us`);
}

/** An envelope from a native fault, and from a plain object, beside JSON.stringify. */
function render() {
  const contract = Contract.builtin("standard");
  const report = { code: "rate_limited", message: "Ten calls a minute are enough", retry_after_ms: 2000, details: { limit: 10, window: "1m" } };
  const fault = contract.fault(report);
  const plain = JSON.parse(fault.render());
  const time = (work) => {
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const since = performance.now();
      for (let n = 0; n < 20_000; n += 1) work();
      rounds.push(((performance.now() - since) / 20_000) * 1e6);
    }
    return median(rounds);
  };
  const stringify = time(() => JSON.stringify(plain));
  const native = time(() => fault.render());
  const object = time(() => contract.fault(report).render());
  console.log(`JSON.stringify ${stringify.toFixed(0)} ns; render ${native.toFixed(0)} ns, ${ratio(native, stringify)}; from a plain object ${object.toFixed(0)} ns, ${ratio(object, stringify)}`);
}

/** The longest stall of the event loop while 64 failures are recorded. */
async function stall() {
  const log = AuditLog.open(scratch());
  const fault = Contract.builtin("standard").fault({ code: "timeout" });
  await log.append(fault);
  const longest = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    let open = true;
    let most = 0;
    let last = performance.now();
    const turn = () => {
      const now = performance.now();
      most = Math.max(most, now - last);
      last = now;
      if (open) setImmediate(turn);
    };
    setImmediate(turn);
    await new Promise((resolve) => setTimeout(resolve, 5));
    most = 0;
    await Promise.all(Array.from({ length: 64 }, () => log.append(fault)));
    open = false;
    longest.push(most);
  }
  log.close();
  console.log(`longest stall while 64 failures are recorded: ${median(longest).toFixed(2)} ms (worst of ${ROUNDS}: ${Math.max(...longest).toFixed(2)} ms)`);
}

/** A process that imports the package, beside an empty one. */
function imports() {
  const time = (script) => {
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const since = performance.now();
      execFileSync(process.execPath, ["--input-type=module", "-e", script]);
      rounds.push(performance.now() - since);
    }
    return median(rounds);
  };
  const [empty, imported, used] = [time(""), time('import "faultwire"'), time('import { Contract } from "faultwire"; Contract.builtin("standard")')];
  console.log(`empty process ${empty.toFixed(0)} ms; import ${(imported - empty).toFixed(1)} ms more; import and load standard ${(used - empty).toFixed(1)} ms more`);
}

