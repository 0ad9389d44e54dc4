// Runs operations of the engine that are read from stdin, one JSON object a line, and prints one
// line each: scripts/vectors compares them with those of other languages.

import { createInterface } from "node:readline";

import { AuditLog, Contract, FaultwireError } from "faultwire";

const log = AuditLog.open(process.argv[2]);

/** The names of the engine for what this package calls otherwise. */
const snaked = (object) =>
  Object.fromEntries(
    Object.entries(object).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );

const ENTRY = { request: "request", client: "client" };

function run({ op, contract: name, text, report, call, surface, profile, keep, now_ms, random }) {
  const contract = Contract.builtin(name);
  const stamp = { nowMs: now_ms, random };
  const named = { ...(surface ? { surface } : {}), ...(profile ? { profile } : {}) };
  switch (op) {
    case "render":
      return contract.fault(report, stamp).render(named);
    case "entry": {
      const facts = Object.fromEntries(Object.entries(call).filter(([key]) => key in ENTRY));
      return log.entry(contract.fault(report, stamp), facts);
    }
    case "decode":
      return contract.decode(text, named);
    case "classify":
      return contract.classify(text, call ? { call } : {});
    case "retry":
      return snaked(
        contract.retry(text, { attempt: call.attempt, readOnly: call.read_only }, stamp),
      );
    default:
      return contract.redact(text, { keep });
  }
}

let out = "";
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  try {
    out += `${JSON.stringify({ ok: run(JSON.parse(line)) })}\n`;
  } catch (error) {
    if (!(error instanceof FaultwireError)) throw error;
    out += `${JSON.stringify({ error: { kind: error.kind, what: error.what } })}\n`;
  }
}
process.stdout.write(out);
log.close();
