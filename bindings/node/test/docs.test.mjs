// The documentation: its quick start works, its programs run, the examples of the API compile.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { connect, records } from "./lib/connect.mjs";

const project = fileURLToPath(new URL("..", import.meta.url));
const directory = join(project, "docs");

/** The fenced blocks of a text: their info string, and what is in them. */
const blocks = (text) => [...text.matchAll(/^```([^\n]+)\n(.*?)^```$/gms)].map(([, info, body]) => ({ info, body }));
const readme = blocks(readFileSync(join(project, "README.md"), "utf8"));

/** The examples in the declarations of the package. */
const dist = join(project, "node_modules/faultwire/dist");
const declared = readdirSync(dist).filter((file) => file.endsWith(".d.ts")).flatMap((file) => {
  const text = readFileSync(join(dist, file), "utf8").replace(/^ *\* ?/gm, "");
  return blocks(text).map((block, at) => ({ ...block, name: `${file.slice(0, -5)}-${at}` }));
});

before(() => {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
});

test("the quick start of the README works when it is pasted", async () => {
  const file = readme.find((block) => block.info.includes("file=server.mjs"));
  writeFileSync(join(directory, "server.mjs"), file.body);
  process.chdir(directory);
  const server = await connect("v1", "docs/server.mjs");
  const result = await server.call("read_note", { name: "today" });
  await server.close();
  const answer = readme.find((block) => block.info.includes("answer=read_note")).body.trim();
  assert.equal(result.content[0].text.replace(/inc_\w+/, "inc_…"), answer);
  const record = records(join(directory, "audit")).at(-1);
  assert.match(record.fault.cause.message, /ENOENT/);
  assert.match(record.private.stack, /server\.mjs/);
});

describe("the programs of the README", () => {
  for (const [at, { info, body }] of readme.entries()) {
    if (!info.endsWith(" run")) continue;
    test(`block ${at} prints what its comments say`, () => {
      const file = join(directory, `readme-${at}.mjs`);
      writeFileSync(file, body);
      const said = execFileSync(process.execPath, [file], { encoding: "utf8", cwd: directory });
      const expected = [...body.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, words]) => words);
      assert.deepEqual(said.trim().split("\n"), expected);
    });
  }
});

test("the other programs, and the examples of the API, compile", () => {
  const checked = readme.filter(({ info }) => info === "ts check").map(({ body }, at) => [`readme-${at}`, body]);
  const examples = declared.filter(({ info }) => info === "ts").map(({ name, body }) => [name, body]);
  assert.ok(checked.length > 2 && examples.length > 6, `${checked.length} and ${examples.length}`);
  for (const [name, body] of [...checked, ...examples]) writeFileSync(join(directory, `${name}.ts`), body);
  const compilerOptions = { strict: true, noEmit: true, module: "nodenext", target: "es2023", skipLibCheck: true, types: ["node"] };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const { stdout } = spawnSync(join(project, "node_modules/.bin/tsc"), ["-p", directory, "--pretty", "false"], { encoding: "utf8" });
  assert.equal(stdout, "");
});

describe("the examples of the API print what their comments say", () => {
  for (const { info, name, body } of declared) {
    const expected = [...body.matchAll(/console\.log\(.*\);(?: |\n)\/\/ (.*)$/gm)].map(([, words]) => words);
    if (info !== "ts" || expected.length === 0) continue;
    test(name, () => {
      const file = join(directory, `${name}.mjs`);
      writeFileSync(file, body);
      const said = execFileSync(process.execPath, [file], { encoding: "utf8", cwd: directory });
      assert.deepEqual(said.trim().split("\n"), expected);
    });
  }
});
