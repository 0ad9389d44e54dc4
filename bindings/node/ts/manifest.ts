/** What each tool of a server needs and may answer (T6). */

import { readFileSync, writeFileSync } from "node:fs";

import type { Contract } from "./contract.js";
import { boundaryOf } from "./mcp.js";
import type { ToolFacts } from "./options.js";
import { lowLevel } from "./sdk.js";

/** What a boundary answers for any tool, by the names of conditions. */
const OF_THE_BOUNDARY = [
  "invalid_arguments",
  "timeout",
  "cancelled",
  "panic",
  "audit_failed",
  "internal",
];
/** The same where the contract has rules for sessions. */
const OF_SESSIONS = ["not_ready", "locked"];

/** A manifest, with its members in their order. */
export interface Manifest {
  contract: string;
  contract_version: string;
  tools: Record<string, unknown>[];
}

/** A tool, as `tools/list` has it. */
interface Listed {
  name: string;
  annotations?: { readOnlyHint?: boolean };
}

/**
 * The manifest of a server that is under a contract: its registered tools, with what the option
 * `tools` says of them. It is sorted, and the same every time.
 */
export async function manifest(server: object): Promise<Manifest> {
  const boundary = boundaryOf(server);
  const { contract } = boundary;
  const declared = boundary.options.tools ?? {};
  const listed = await tools(server);
  const wrong = mistakes(contract, declared, listed);
  if (wrong.length > 0) throw new Error(`the manifest has mistakes:\n${wrong.join("\n")}`);
  const names = Object.keys(declared).sort();
  const requirements = [...new Set(names.flatMap((name) => declared[name]?.requires ?? []))].sort();
  const codes = ownCodes(contract, boundary.native.hasSessions);
  return {
    contract: contract.name,
    contract_version: contract.version,
    tools: names.map((name) => row(name, declared[name] as ToolFacts, contract, requirements, codes)),
  };
}

/** Fails unless the committed manifest matches the server; `FAULTWIRE_UPDATE=1` writes the file. */
export async function assertManifest(server: object, path: string): Promise<void> {
  const now = `${JSON.stringify(await manifest(server), undefined, 2)}\n`;
  if (process.env["FAULTWIRE_UPDATE"] === "1") {
    writeFileSync(path, now);
    return;
  }
  const why = drift(committed(path), now);
  if (why === undefined) return;
  throw new Error(`${path}: ${why}\nIf that is what you want, run it with FAULTWIRE_UPDATE=1`);
}

async function tools(server: object): Promise<Listed[]> {
  const handler = lowLevel(server)._requestHandlers.get("tools/list");
  const request = { jsonrpc: "2.0", id: 0, method: "tools/list", params: {} };
  const { tools: listed } = (await handler?.(request, {})) as { tools: Listed[] };
  return listed;
}

function mistakes(
  contract: Contract,
  declared: Readonly<Record<string, ToolFacts>>,
  listed: Listed[],
): string[] {
  const { profiles } = contract.describe();
  const registered = new Set(listed.map((tool) => tool.name));
  const missing = listed.filter((tool) => !Object.hasOwn(declared, tool.name));
  const gone = Object.keys(declared).filter((name) => !registered.has(name));
  const strange = Object.entries(declared).flatMap(([name, facts]) =>
    (facts.profiles ?? [])
      .filter((profile) => !profiles.includes(profile))
      .map((profile) => `${name}: ${profile} is not a profile of ${profiles.join(", ")}`),
  );
  const changing = listed.filter(
    (tool) => tool.annotations?.readOnlyHint === true && declared[tool.name]?.mutation === true,
  );
  return [
    ...missing.map((tool) => `${tool.name} is registered, but the option tools does not declare it`),
    ...gone.map((name) => `${name} is declared, but not registered`),
    ...strange,
    ...changing.map((tool) => `${tool.name} is a mutation, but its annotations say that it only reads`),
  ];
}

function row(
  name: string,
  facts: ToolFacts,
  contract: Contract,
  requirements: string[],
  ofTheBoundary: string[],
): Record<string, unknown> {
  const { category = "tool", mutation = false, requires = [], codes } = facts;
  const all = contract.describe().profiles;
  const needs = requirements.map((one) => [`requires_${one}`, requires.includes(one)] as const);
  return {
    name,
    category,
    mutation,
    ...Object.fromEntries(needs),
    profiles: all.filter((profile) => facts.profiles?.includes(profile) ?? true),
    possible_error_codes: [...new Set([...codes, ...ofTheBoundary])].sort(),
  };
}

/** The codes that the boundary itself may answer with, for any tool. */
function ownCodes(contract: Contract, hasSessions: boolean): string[] {
  const { conditions, fallback } = contract.describe();
  const own = [...OF_THE_BOUNDARY, ...(hasSessions ? OF_SESSIONS : [])];
  const named = Object.entries(conditions).filter(([name]) => own.includes(name.split(".")[0] ?? ""));
  return [fallback, ...named.map(([, code]) => code)];
}

function committed(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function drift(before: string | undefined, now: string): string | undefined {
  if (before === undefined) return "the file does not exist";
  if (before === now) return undefined;
  const [old, fresh] = [new Set(before.split("\n")), new Set(now.split("\n"))];
  const gone = [...old].filter((line) => !fresh.has(line)).map((line) => `- ${line.trim()}`);
  const added = [...fresh].filter((line) => !old.has(line)).map((line) => `+ ${line.trim()}`);
  return ["the file does not match the tools", ...gone, ...added].join("\n");
}
