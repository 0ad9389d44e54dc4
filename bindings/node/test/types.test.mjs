// Typed codes: right programs compile, and wrong ones do not, for the right reason.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { before, describe, test } from "node:test";

const project = fileURLToPath(new URL("..", import.meta.url));
const directory = join(project, "types");

/** What the compiler must say of each program; nothing of those that are right. */
const PROGRAMS = {
  constructors: ['rateLimited({ retryAfterMs: 5, message: "x" }); notFound(); notFound({ details: { a: [1] } });', []],
  delay_on_a_code_that_is_never_retried: ["notFound({ retryAfterMs: 5 });", [/TS2353: .*'retryAfterMs' does not exist in type 'Facts'/]],
  unknown_constructor: ["errors.notFount();", [/TS2551: Property 'notFount' does not exist.*Did you mean 'notFound'/]],
  unknown_code_in_a_guard: ['declare const e: unknown; errors.isFault(e, "not_fount");', [/TS2345: Argument of type '"not_fount"' is not assignable/]],
  positional_options: ['notFound("message");', [/TS2559|TS2345/]],
  kind_that_the_row_lists: ['workrail.timeout({ retry: "never" }); workrail.internalError({ retry: "after", retryAfterMs: 9 });', []],
  kind_that_the_row_does_not_list: ['workrail.timeout({ retry: "backoff" });', [/TS2322: Type '"backoff"' is not assignable to type '(?:"\w+" \| )+/]],
  status_that_the_row_lists: ["owlclaw.protocolUnsupportedVersion({ status: 426 });", []],
  status_that_the_row_does_not_list: ["owlclaw.protocolUnsupportedVersion({ status: 404 });", [/TS2322: Type '404' is not assignable to type '400 \| 426/]],
  data_that_the_row_keeps: ["tuitbot.threadPartialFailure({ data: [1] });", []],
  data_that_the_row_does_not_keep: ["tuitbot.xRateLimited({ data: [1] });", [/TS2353: .*'data' does not exist/]],
  guard_narrows: ['declare const e: unknown; if (errors.isFault(e, "timeout")) { const code: "timeout" = e.code; code.length; }', []],
  guard_narrows_to_no_other: ['declare const e: unknown; if (errors.isFault(e, "timeout")) { const code: "locked" = e.code; code.length; }', [/TS2322: Type '"timeout"' is not assignable to type '"locked"'/]],
  match_with_a_rest: ["declare const f: Failure<errors.Code>; const n: number = errors.match(f, { timeout: () => 1, _: () => 2 }); n.toFixed();", []],
  match_that_misses_a_case: ["declare const f: Failure<errors.Code>; errors.match(f, { timeout: () => 1 });", [/TS2769|TS2345/, /missing/]],
  match_with_a_case_of_no_code: ["declare const f: Failure<errors.Code>; errors.match(f, { timeouts: () => 1, _: () => 2 });", [/TS2769|TS2561/, /timeouts/]],
  constants: ['const status: 404 = errors.codes.not_found.status; const retryable: false = errors.codes.not_found.retryable; status.toFixed(); String(retryable);', []],
  constants_are_constant: ["errors.codes.not_found.status = 500;", [/TS2540: Cannot assign to 'status'/]],
  with_contract: ['import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"; const s: McpServer = withContract(new McpServer({ name: "n", version: "1" }), { contract: errors.contract, deadlineMs: 5 }); s.close();', []],
  with_contract_v2: ['import { McpServer, Server } from "@modelcontextprotocol/server"; withContract(new McpServer({ name: "n", version: "1" })); withContract(new Server({ name: "n", version: "1" }));', []],
  with_contract_of_something_else: ["withContract({});", [/TS2345|TS2741/]],
  wrong_option: ['import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"; withContract(new McpServer({ name: "n", version: "1" }), { deadline: 5 });', [/TS2353: .*'deadline' does not exist in type 'BoundaryOptions'|TS2561: .*'deadline'/]],
  call_tool: ['import { Client } from "@modelcontextprotocol/sdk/client/index.js"; import { Client as Two } from "@modelcontextprotocol/client"; declare const a: Client; declare const b: Two; callTool(a, { name: "x" }).then((r) => r.content); callTool(b, { name: "x" }).then((r) => r.isError);', []],
  http: ['import express from "express"; import { Hono } from "hono"; const p = new Problems({ audit: false }); express().use(p.expressUnknown()).use(p.express()); new Hono().onError(p.hono()); new Hono().notFound(p.honoUnknown());', []],
};

const HEAD = `import * as errors from "faultwire/standard";
import { notFound, rateLimited } from "faultwire/standard";
import * as workrail from "faultwire/workrail";
import * as owlclaw from "faultwire/owlclaw";
import * as tuitbot from "faultwire/tuitbot";
import { type Failure, Problems, callTool, withContract } from "faultwire";
void [errors, notFound, rateLimited, workrail, owlclaw, tuitbot, Problems, callTool, withContract]; void (0 as unknown as Failure);
`;

describe("typed codes", () => {
  const found = new Map();
  before(() => {
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    for (const [name, [program]] of Object.entries(PROGRAMS)) writeFileSync(join(directory, `${name}.ts`), HEAD + program);
    writeFileSync(join(directory, "cjs.cts"), 'import { Contract } from "faultwire"; import { notFound } from "faultwire/standard"; notFound({}).code.length; Contract.builtin("standard").name.length;');
    const compilerOptions = { strict: true, noEmit: true, module: "nodenext", target: "es2023", skipLibCheck: true, types: ["node"] };
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts", "*.cts"] }));
    const { stdout } = spawnSync(join(project, "node_modules/.bin/tsc"), ["-p", directory, "--pretty", "false"], { encoding: "utf8", cwd: project });
    let current;
    for (const line of stdout.split("\n").filter(Boolean)) {
      current = /^(?:types\/)?(\w+)\.c?ts\(/.exec(line)?.[1] ?? current;
      found.set(current, `${found.get(current) ?? ""}${line}\n`);
    }
  });

  for (const [name, [, expected]] of Object.entries(PROGRAMS)) {
    test(`k3: ${name.replaceAll("_", " ")}`, () => {
      const said = found.get(name) ?? "";
      if (expected.length === 0) assert.equal(said, "");
      for (const words of expected) assert.match(said, words);
    });
  }

  test("the declarations are sound by themselves", () => {
    const alone = join(directory, "alone");
    mkdirSync(alone);
    const entries = ["faultwire", "faultwire/ai", "faultwire/standard", "faultwire/context-resolve"];
    writeFileSync(join(alone, "all.ts"), entries.map((entry) => `import "${entry}";`).join("\n"));
    const compilerOptions = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, module: "nodenext", target: "es2023", skipLibCheck: false, types: ["node"] };
    writeFileSync(join(alone, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const { stdout } = spawnSync(join(project, "node_modules/.bin/tsc"), ["-p", alone, "--pretty", "false"], { encoding: "utf8", cwd: project });
    assert.equal(stdout, "");
  });

  test("a CommonJS module has the types, too", () => {
    assert.equal(found.get("cjs"), undefined);
  });
});
