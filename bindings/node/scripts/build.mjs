#!/usr/bin/env node
// Builds the package and packs it: build.mjs [--release] [--out DIRECTORY]
//
// The packed files are what the tests install, and what is published.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = resolve(here, "../..");
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const tools = join(target, "node", "tools");
const stage = join(target, "node", "stage");
const TOOLS = ["typescript@7.0.2", "@types/node@20.19.43"];
const PLATFORM = "linux-x64-gnu";

const { values } = parseArgs({
  options: { release: { type: "boolean" }, out: { type: "string" }, "skip-cargo": { type: "boolean" } },
});
const profile = values.release ? "release" : "debug";
const out = resolve(values.out ?? join(target, "node", "packed"));

rmSync(stage, { recursive: true, force: true });
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
stageNative();
stageScript();
for (const part of [PLATFORM, "faultwire"]) {
  run("npm", ["pack", "--silent", "--pack-destination", out], join(stage, part));
}
for (const file of readdirSync(out)) console.log(join(out, file));

function stageNative() {
  if (!values["skip-cargo"]) {
    run("cargo", ["build", "-p", "faultwire-node", ...(values.release ? ["--release"] : [])], root);
  }
  const to = join(stage, PLATFORM);
  cpSync(join(here, "npm", PLATFORM), to, { recursive: true });
  const addon = join(to, "faultwire.node");
  cpSync(join(target, profile, "libfaultwire_node.so"), addon);
  run("strip", ["--strip-debug", addon], to);
  licences(to);
}

function stageScript() {
  const to = join(stage, "faultwire");
  const dist = join(to, "dist");
  if (!TOOLS.every(isInstalled)) {
    mkdirSync(tools, { recursive: true });
    writeFileSync(join(tools, "package.json"), '{"private":true}');
    run("npm", ["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent", ...TOOLS], tools);
  }
  const types = join(tools, "node_modules", "@types");
  const compiler = join(tools, "node_modules", ".bin", "tsc");
  run(compiler, ["-p", here, "--outDir", dist, "--typeRoots", types], here);
  for (const entry of ["index", "ai", ...contracts(dist)]) asModule(dist, entry);
  for (const file of ["package.json", "README.md"]) cpSync(join(here, file), join(to, file));
  licences(to);
}

function isInstalled(tool) {
  const at = tool.lastIndexOf("@");
  const file = join(tools, "node_modules", tool.slice(0, at), "package.json");
  return existsSync(file) && JSON.parse(readFileSync(file, "utf8")).version === tool.slice(at + 1);
}

function contracts(dist) {
  const files = readdirSync(join(dist, "contracts")).filter((file) => file.endsWith(".js"));
  return files.map((file) => `contracts/${file.slice(0, -3)}`);
}

// Both kinds of modules share one implementation, so that there is one of everything in a process.
function asModule(dist, entry) {
  const name = `./${entry.split("/").at(-1)}.js`;
  writeFileSync(join(dist, `${entry}.mjs`), `export * from "${name}";\n`);
  writeFileSync(join(dist, `${entry}.d.mts`), `export * from "${name}";\n`);
}

function licences(to) {
  for (const file of ["LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(root, file), join(to, file));
}

function run(program, args, cwd) {
  execFileSync(program, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
}
