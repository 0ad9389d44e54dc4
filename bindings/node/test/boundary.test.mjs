// Every way in which a handler can fail, through official clients and real processes.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Contract } from "faultwire";

import { connect, eventually } from "./lib/connect.mjs";

const SECRET = "sk-abcdefghij0123456789abcdefghij";
const PAIRS = [
  ["v1", "test/servers/v1.mjs"],
  ["v1", "test/servers/v1-low.mjs"],
  ["v2", "test/servers/v2.mjs"],
  ["modern", "test/servers/v2-low.mjs"],
];
const isLow = (program) => program.includes("-low");

/** What a server without a boundary would send. */
const said = (text) => JSON.stringify({ jsonrpc: "2.0", id: 1, result: { isError: true, content: [{ type: "text", text }] } });

/** The code that a tool's failure must have, by what the contract says of a condition. */
const WAYS = {
  throws_error: (c) => c.fallback,
  // A contract may have a rule of its own for it.
  throws_enoent: (c) => Contract.builtin(c.name).classify(said("ENOENT: no such file, open 'a.md'")).code,
  throws_cause: (c) => c.fallback,
  throws_string: (c) => c.fallback,
  throws_object: (c) => c.codes[1].id,
  throws_undefined: (c) => c.fallback,
  throws_null: (c) => c.fallback,
  throws_hostile: (c) => c.fallback,
  throws_lonely: (c) => c.fallback,
  throws_typed: (c) => c.codes[0].id,
  returns_typed: (c) => c.codes[0].id,
  rejects: (c) => c.fallback,
  fetch_fails: (c) => c.conditions.upstream_unreachable,
  throws_rpc: (c) => Contract.builtin(c.name).classify('{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it broke"}}').code,
  never: (c) => c.conditions.timeout,
  is_error: (c) => c.conditions.tool_error,
  is_error_429: (c) => c.conditions.rate_limited,
  soft: (c) => c.conditions.soft_failure,
  returns_undefined: (c) => c.conditions.upstream_protocol,
  returns_words: (c) => c.conditions.upstream_protocol,
  returns_bigint: (c) => c.conditions.upstream_protocol,
  returns_cycle: (c) => c.conditions.upstream_protocol,
  blocks: (c) => c.fallback,
  no_such_tool: (c) => c.conditions.unknown_tool,
};

for (const name of Contract.builtins()) {
  for (const [kind, program] of PAIRS) {
    describe(`${name}: ${program} with client ${kind}`, () => everyWay(name, kind, program));
  }
}
for (const [kind, program] of [["v2", "test/servers/v1.mjs"], ["v1", "test/servers/v2.mjs"]]) {
  describe(`standard: ${program} with client ${kind}`, () => everyWay("standard", kind, program));
}

function everyWay(name, kind, program) {
  const contract = Contract.builtin(name);
  const known = contract.describe();
  let server;
  before(async () => { server = await connect(kind, program, { CONTRACT: name }); });
  after(async () => { await server.close(); });

  /** The one failure that the call came to, and the one record of it. */
  async function fails(tool, given) {
    const seen = server.records().length;
    const result = await server.call(tool, given);
    assert.equal(result.isError, true, JSON.stringify(result));
    const [block] = result.content;
    assert.ok(!JSON.stringify(result).includes(SECRET), "a secret reached the client");
    assert.ok(!JSON.stringify(result).includes("node_modules"), "a stack reached the client");
    const report = contract.decode(block.text);
    const written = server.records().slice(seen).filter((record) => record.type === "fault");
    assert.equal(written.length, 1, `${written.length} records`);
    const [{ fault, call }] = written;
    assert.equal(fault.code, report.code);
    assert.equal(fault.tool, tool);
    assert.ok(call.request !== undefined, "the request's id is recorded");
    assert.match(call.client, /^test-client\/9\.9\.9$/);
    assert.ok(!JSON.stringify(written).includes(SECRET), "a secret reached the log");
    return { result, report, record: written[0] };
  }

  for (const [tool, expected] of Object.entries(WAYS)) {
    test(`a5 k9: ${tool} becomes one recorded envelope`, async () => {
      const { report } = await fails(tool);
      assert.equal(report.code, expected(known));
    });
  }

  test("the words of an unknown tool are those of both SDKs", async () => {
    const { record } = await fails("sucess");
    if (known.text.message !== "canonical") assert.equal(record.fault.message, "Tool sucess not found");
    if (name === "standard") assert.match(record.fault.next, /Call success if you meant that/);
  });

  test("a8: a success is the SDK's own", async () => {
    const { content, isError } = await server.call("success");
    if (known.success) assert.equal(JSON.parse(content[0].text).data, "all is well");
    else assert.deepEqual(content, [{ type: "text", text: "all is well" }]);
    assert.ok(!isError);
    const { structuredContent } = await server.call("structured");
    assert.deepEqual(structuredContent, { n: 1 });
  });

  test("w4: arguments that the SDK refuses have an issue for each field", async () => {
    if (isLow(program)) {
      // The SDK does not look at the arguments of low-level handlers, and neither do we.
      const result = await server.call("echo", { words: "ok", times: "x" });
      assert.ok(!result.isError);
      return;
    }
    const { report, record } = await fails("echo", { words: "x", times: 1.5 });
    const allowed = Object.entries(known.conditions).filter(([name]) => name.startsWith("invalid_arguments"));
    assert.ok(allowed.some(([, code]) => code === report.code), report.code);
    const issues = record.fault.details.validationIssues;
    assert.deepEqual(issues.map((issue) => issue.path).sort(), ["times", "words"]);
    assert.ok(issues.every((issue) => issue.message.length > 0));
    const missing = await fails("echo", {});
    assert.equal(missing.report.code, known.conditions["invalid_arguments.missing"] ?? known.conditions.invalid_arguments);
  });

  test("w4: a validator that throws inside a handler is told by field, too", async () => {
    const { record } = await fails("zod_inside");
    assert.deepEqual(record.fault.details.validationIssues.map((issue) => issue.path), ["deep.n"]);
  });

  test("k4: the chain of causes is recorded, and the stack is private", async () => {
    const { record } = await fails("throws_cause");
    const { cause } = record.fault;
    assert.equal(cause.message, "outer");
    assert.equal(cause.cause.message, "inner");
    assert.equal(cause.cause.cause, "root");
    assert.match(record.private.stack, /Error: outer/);
  });

  test("a result that the output schema forbids", async () => {
    const seen = server.records().length;
    if (!isLow(program)) {
      const { report } = await fails("bad_output");
      assert.equal(report.code, known.conditions.upstream_protocol);
      return;
    }
    // The low-level SDK lets it pass; the client refuses it, and the log knows.
    await server.call("bad_output").catch(() => undefined);
    const events = () => server.records().slice(seen).filter((record) => record.name === "output_mismatch");
    await eventually(() => events().length === 1, "an event");
  });

  test("a call that the client takes back is recorded, and the handler is told", async () => {
    const seen = server.records().length;
    const stop = new AbortController();
    const call = server.call("waits", {}, { signal: stop.signal });
    setTimeout(() => stop.abort(), 100);
    await assert.rejects(call);
    const written = () => server.records().slice(seen);
    const record = await eventually(() => written().find((one) => one.type === "fault"), "a record");
    assert.equal(record.fault.code, known.conditions.cancelled);
    await eventually(() => written().find((one) => one.name === "late_answer"), "the late answer");
  });

  test("a task that fails after its call is recorded with the call's facts", async () => {
    for (const [tool, words] of [["background", "the task failed"], ["callback", "the callback failed"]]) {
      const seen = server.records().length;
      const result = await server.call(tool);
      assert.ok(!result.isError, JSON.stringify(result));
      const written = () => server.records().slice(seen).find((record) => record.type === "fault");
      const record = await eventually(written, "a record");
      assert.equal(record.fault.tool, tool);
      assert.equal(record.fault.cause.message, words);
      assert.ok(record.call.request !== undefined);
    }
    assert.ok(!(await server.call("success")).isError, "the server goes on");
  });

  test("progress starts the deadline again", async () => {
    const ticks = [];
    const result = await server.call("progress", {}, { onprogress: (tick) => ticks.push(tick) });
    assert.ok(!result.isError, JSON.stringify(result));
    // The client drops the last one if the result comes with it.
    assert.ok(ticks.length >= 4, `${ticks.length} ticks`);
  });

  test("an unknown method, and a method that fails, have the envelope as data", async () => {
    const seen = server.records().length;
    const error = await asked(server, { method: "nothing/like/this" });
    assert.equal(error.code, -32601);
    assert.equal(contract.decode(JSON.stringify(error.data)).code, known.conditions.unknown_method);
    assert.equal(server.records().slice(seen).length, 1);
    if (!isLow(program)) return;
    const prompt = await asked(server, { method: "prompts/get", params: { name: "x" } });
    assert.equal(contract.decode(JSON.stringify(prompt.data)).code.length > 0, true);
    assert.equal(server.records().slice(seen).length, 2);
  });

  test("tools/call without a name is told as that", async () => {
    const seen = server.records().length;
    const reply = await asked(server, { method: "tools/call", params: { arguments: {} } });
    const { code } = contract.decode(reply.content[0].text);
    assert.equal(code, known.conditions.invalid_arguments);
    const [{ fault }, ...more] = server.records().slice(seen);
    assert.equal(fault.message, contract.describe().text.message === "canonical" ? contract.row(code).message : "tools/call needs the name of a tool, and arguments that are an object");
    assert.deepEqual(more, []);
  });
}

const anything = {
  "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) },
  parse: (value) => value,
  safeParse: (value) => ({ success: true, data: value }),
};

/** A request that the client has no function for; its error, or its result. */
async function asked(server, request) {
  try {
    return await server.client.request(request, anything);
  } catch (error) {
    return error;
  }
}
