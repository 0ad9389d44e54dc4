// Official clients over stdio, with a real process at the other end.

import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Client as ClientV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";

const info = { name: "test-client", version: "9.9.9" };
const makers = {
  v1: () => [new ClientV1(info), StdioV1],
  v2: () => [new ClientV2(info), StdioV2],
  modern: () => [new ClientV2(info, { versionNegotiation: { mode: "auto" } }), StdioV2],
};

/** A new directory for a log. */
export const scratch = (name = "log") => mkdtempSync(join(tmpdir(), `faultwire-${name}-`));

/** Starts a program of a directory beside this one, and connects a client of that kind. */
export async function connect(kind, program, env = {}, args = []) {
  const audit = env.AUDIT ?? scratch();
  const [client, Stdio] = makers[kind]();
  const command = process.execPath;
  const file = fileURLToPath(new URL(`../../${program}`, import.meta.url));
  const known = { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: "test" };
  const transport = new Stdio({
    command,
    args: [file, ...args],
    env: { ...known, ...env, AUDIT: audit },
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk) => { stderr += chunk; });
  await client.connect(transport);
  const call = async (name, given = {}, options) =>
    kind === "v1"
      ? await client.callTool({ name, arguments: given }, CallToolResultSchema, options)
      : await client.callTool({ name, arguments: given }, options);
  return { client, transport, call, audit, records: () => records(audit), stderr: () => stderr, close: () => client.close() };
}

/** The records of failures and events in a log. */
export function records(audit) {
  const lines = readFileSync(join(audit, "audit-log.jsonl"), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

/** Waits until a condition holds. */
export async function eventually(holds, what, ms = 5000) {
  const until = Date.now() + ms;
  for (;;) {
    const value = holds();
    if (value) return value;
    if (Date.now() > until) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
