#!/usr/bin/env node
// Builds for release, installs the packed artefact, and runs the benchmarks there. With --calls N,
// it runs N failing calls instead and looks for leaks.

import { execFileSync } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const target = process.env.CARGO_TARGET_DIR ?? resolve(here, "../../target");
const project = join(target, "node", "project");

const { values } = parseArgs({ options: { calls: { type: "string" }, "skip-build": { type: "boolean" } } });
const flags = values["skip-build"] ? ["--skip-build"] : ["--release"];
const run = (args, env = {}, cwd = project) =>
  execFileSync(process.execPath, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });

// One short test: everything is installed on its way.
run([join(here, "scripts/test.mjs"), ...flags, "test/contract.test.mjs"], {}, here);
if (values.calls) run(["--test", "test/leak.test.mjs"], { FAILING_CALLS: values.calls });
else run(["bench/run.mjs"]);
