// Tools that fail in every way, and the options of their servers.

import { Contract, Failure } from "faultwire";

export const contract = Contract.builtin(process.env.CONTRACT ?? "standard");

const codes = Object.keys(contract.codes);
export const typed = { code: codes[0], wrapped: codes[1] };

/** A secret that must not reach a client in any failure. */
export const SECRET = "sk-abcdefghij0123456789abcdefghij";

export const options = {
  contract,
  audit: process.env.AUDIT === "none" ? false : process.env.AUDIT,
  deadlines: { never: 300, progress: 300 },
  arguments: process.env.ARGUMENTS,
  output: process.env.OUTPUT,
  profile: process.env.PROFILE,
  meta: process.env.META ? JSON.parse(process.env.META) : undefined,
  strict: false,
};

const text = (words) => ({ content: [{ type: "text", text: words }] });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** name → [handler, output schema, input shape]. `notify` sends a progress notification. */
export const tools = (z) => ({
  success: [() => text("all is well")],
  structured: [() => ({ ...text('{"n":1}'), structuredContent: { n: 1 } }), { n: z.number() }],
  echo: [({ words }) => text(words), undefined, { words: z.string().min(2), times: z.number().int().optional() }],
  throws_error: [() => { throw new Error(`disk exploded, key ${SECRET}`); }],
  throws_enoent: [() => { throw Object.assign(new Error("ENOENT: no such file, open 'a.md'"), { code: "ENOENT", errno: -2 }); }],
  throws_cause: [() => { throw new Error("outer", { cause: new Error("inner", { cause: "root" }) }); }],
  throws_string: [() => { throw "only words"; }],
  throws_object: [() => { throw { error_code: typed.wrapped, message: "an object" }; }],
  throws_undefined: [() => { throw undefined; }],
  throws_null: [() => { throw null; }],
  throws_hostile: [() => { throw new Proxy({}, { get() { throw new Error("no"); }, ownKeys() { throw new Error("no"); } }); }],
  throws_lonely: [() => { throw new Error("half a pair \ud800 here"); }],
  throws_typed: [async () => { await sleep(1); throw new Failure(contract, typed.code, { message: "typed words", cause: new Error("private") }); }],
  returns_typed: [() => new Failure(contract, typed.code, { message: "typed words" })],
  rejects: [() => Promise.reject(new Error("rejected"))],
  fetch_fails: [() => fetch("http://127.0.0.1:1/")],
  throws_rpc: [() => { throw Object.assign(new Error("MCP error -32603: it broke"), { code: -32603, data: { part: "x" } }); }],
  never: [() => new Promise(() => {})],
  is_error: [() => ({ ...text("it did not work"), isError: true })],
  is_error_429: [() => ({ ...text("429 Too Many Requests, retry in 5s"), isError: true })],
  soft: [() => text('{"ok":false,"error":"Something failed"}')],
  returns_undefined: [() => undefined],
  returns_words: [() => "no result"],
  returns_bigint: [() => ({ ...text("x"), _meta: { n: 1n } })],
  returns_cycle: [() => { const meta = {}; meta.self = meta; return { ...text("x"), _meta: meta }; }],
  bad_output: [() => ({ ...text("{}"), structuredContent: { n: "no number" } }), { n: z.number() }],
  zod_inside: [() => { z.object({ deep: z.object({ n: z.number() }) }).parse({ deep: { n: "x" } }); }],
  background: [() => { void sleep(5).then(() => { throw new Error("the task failed"); }); return text("started"); }],
  callback: [() => { setTimeout(() => { throw new Error("the callback failed"); }, 5); return text("started"); }],
  blocks: [() => { const until = Date.now() + 200; while (Date.now() < until); throw new Error("after a block"); }],
  waits: [async (_args, { signal }) => { await new Promise((resolve) => signal.addEventListener("abort", resolve)); return text("too late"); }],
  progress: [async (_args, { notify }) => { for (let n = 0; n < 5; n += 1) { await sleep(120); await notify(n); } return text("done"); }],
});
