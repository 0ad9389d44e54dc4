// What is packed, and what happens on a platform that it is not for.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Contract } from "faultwire";

import { scratch } from "./lib/connect.mjs";

const modules = fileURLToPath(new URL("../node_modules", import.meta.url));
const manifest = JSON.parse(readFileSync(join(modules, "faultwire/package.json"), "utf8"));

describe("the package", () => {
  test("nothing runs or is downloaded when it is installed", () => {
    assert.equal(manifest.scripts, undefined);
    assert.equal(manifest.dependencies, undefined);
    assert.ok(Object.keys(manifest.peerDependencies).every((name) => manifest.peerDependenciesMeta[name].optional));
    assert.deepEqual(manifest.optionalDependencies, { "@faultwire/linux-x64-gnu": manifest.version });
  });

  test("each entry exists, with its types", () => {
    for (const entry of Object.values(manifest.exports)) {
      if (typeof entry === "string") continue;
      for (const { types, default: code } of Object.values(entry)) {
        for (const name of Contract.builtins()) {
          for (const file of [types, code]) assert.ok(existsSync(join(modules, "faultwire", file.replace("*", name))), file);
        }
      }
    }
    const packed = readdirSync(join(modules, "faultwire"));
    assert.deepEqual(packed.sort(), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "dist", "package.json"]);
  });

  test("the module of a contract has a constructor for each code", async () => {
    for (const name of Contract.builtins()) {
      const module = await import(`faultwire/${name}`);
      const rows = Contract.builtin(name).codes;
      assert.deepEqual(Object.keys(module.codes), Object.keys(rows));
      const made = Object.values(module).filter((one) => typeof one === "function" && !/^(isFault|match)$/.test(one.name));
      assert.deepEqual(made.map((make) => make().code).sort(), Object.keys(rows).sort());
      for (const [code, known] of Object.entries(module.codes)) {
        const { category, retryable, message, action } = rows[code];
        assert.deepEqual({ ...known, status: undefined, retry: undefined }, { category, retryable, message, action, status: undefined, retry: undefined });
      }
    }
  });

  const imported = (script, cwd = modules) => spawnSync(process.execPath, ["-e", script], { encoding: "utf8", cwd });

  test("an unsupported platform is a clear error at import", () => {
    const { status, stderr } = imported('Object.defineProperty(process, "platform", { value: "sunos" }); require("faultwire")');
    assert.equal(status, 1);
    assert.match(stderr, /Error: faultwire does not support sunos-x64; it supports linux-x64, linux-arm64/);
  });

  test("so is a native package that was left out", () => {
    const project = scratch("project");
    mkdirSync(join(project, "node_modules"));
    cpSync(join(modules, "faultwire"), join(project, "node_modules/faultwire"), { recursive: true });
    const { status, stderr } = imported('require("faultwire")', project);
    assert.equal(status, 1);
    assert.match(stderr, /faultwire found no native package for linux-x64\. Install without --omit=optional/);
    assert.match(stderr, /@faultwire\/linux-x64-gnu: Cannot find module/);
  });
});
