#!/usr/bin/env node
// Builds and packs the package, installs it into an empty project, and runs the tests there:
// test.mjs [--release] [--skip-build] [FILE…]
//
// The project is kept, so that what the tests depend on is installed once.

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = resolve(here, "../..");
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const packed = join(target, "node", "packed");
const project = join(target, "node", "project");

/** What the tests use, besides the package. */
const DEPENDENCIES = {
  "@modelcontextprotocol/client": "2.4.0",
  "@modelcontextprotocol/sdk": "1.32.2",
  "@modelcontextprotocol/server": "2.4.0",
  "@types/express": "5.0.6",
  "@types/node": "20.19.43",
  ai: "7.0.173",
  express: "5.3.0",
  hono: "4.13.19",
  typescript: "7.0.2",
  zod: "4.6.7",
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { release: { type: "boolean" }, "skip-build": { type: "boolean" } },
});

const started = performance.now();
const stages = [];
if (!values["skip-build"]) {
  stage("build", () => run(process.execPath, [join(here, "scripts/build.mjs"), ...(values.release ? ["--release"] : [])], here));
}
stage("install", install);
const files = positionals.length > 0 ? positionals : allTests();
const failed = stage("test", () => spawnSync(process.execPath, ["--test", "--test-concurrency=2", ...files], { cwd: project, stdio: "inherit" }).status);
for (const line of [...stages, `all ${seconds(started)}`]) console.log(line);
process.exitCode = failed ?? 1;

function install() {
  mkdirSync(project, { recursive: true });
  const manifest = JSON.stringify({ private: true, type: "module", dependencies: DEPENDENCIES });
  const file = join(project, "package.json");
  if (!existsSync(file) || readFileSync(file, "utf8") !== manifest) {
    writeFileSync(file, manifest);
    rmSync(join(project, "node_modules"), { recursive: true, force: true });
    npm("install");
  }
  // The same version has new content: npm would take it from its cache.
  for (const name of ["faultwire", "@faultwire"]) rmSync(join(project, "node_modules", name), { recursive: true, force: true });
  const files = readdirSync(packed).map((name) => join(packed, name));
  npm("install", "--no-save", "--offline", "--prefer-offline", ...files);
  for (const part of ["test", "examples", "bench", "README.md"]) {
    rmSync(join(project, part), { recursive: true, force: true });
    if (existsSync(join(here, part))) cpSync(join(here, part), join(project, part), { recursive: true });
  }
  cpSync(join(root, "contracts"), join(project, "contracts"), { recursive: true });
  compileExamples();
}

function npm(...args) {
  run("npm", [...args, "--no-package-lock", "--no-audit", "--no-fund", "--silent"], project);
}

function compileExamples() {
  const compiler = join(project, "node_modules/.bin/tsc");
  if (existsSync(join(project, "examples/tsconfig.json"))) run(compiler, ["-p", "examples"], project);
}

function allTests() {
  const tests = readdirSync(join(project, "test")).filter((file) => file.endsWith(".test.mjs"));
  return tests.map((file) => join("test", file));
}

function stage(name, work) {
  const since = performance.now();
  const result = work();
  stages.push(`${name} ${seconds(since)}`);
  return result;
}

function seconds(since) {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

function run(program, args, cwd) {
  execFileSync(program, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
}
