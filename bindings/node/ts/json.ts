/** Values as JSON: strictly for details, leniently for what was thrown. */

/** A JSON value. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json };

/** The text of a value, well formed, so that the engine can read it. */
export function textOf(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) return "null";
  return text.includes("\\ud") ? text.replace(LONE_SURROGATE, "\\ufffd") : text;
}

/** JSON.stringify writes a surrogate without its other half as an escape, and a pair never so. */
const LONE_SURROGATE = /(?<=(?<!\\)(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

/** Deeper details are refused before they end the stack. */
const DEEPEST_DETAILS = 128;

/** Why a value is not JSON, with the place of each part (W5). `undefined` members are left out. */
export function unfit(value: unknown): string[] {
  const found: string[] = [];
  walk(value, "$", [], found);
  return found;
}

function walk(value: unknown, path: string, above: object[], found: string[]): void {
  const kind = misfit(value);
  if (kind !== undefined) {
    found.push(`${path}: ${kind} is no JSON value`);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  if (above.includes(value)) {
    found.push(`${path}: a value that contains itself is no JSON value`);
    return;
  }
  if (above.length >= DEEPEST_DETAILS) {
    found.push(`details are nested deeper than ${DEEPEST_DETAILS} levels`);
    return;
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") {
    return walk((value as { toJSON(): unknown }).toJSON(), path, [...above, value], found);
  }
  const inner = [...above, value];
  if (Array.isArray(value)) {
    value.forEach((item, at) => walk(item ?? null, `${path}[${at}]`, inner, found));
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) walk(member, `${path}.${key}`, inner, found);
  }
}

function misfit(value: unknown): string | undefined {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : String(value);
    case "bigint":
      return "a BigInt";
    case "function":
    case "symbol":
    case "undefined":
      return `a value of type ${typeof value}`;
    default:
      return undefined;
  }
}

/** What is kept of a value that was thrown. */
const LIMITS = { depth: 8, members: 64, nodes: 1024 };

/** A value of any kind as JSON. What is no JSON is described; nothing is read without a limit. */
export function lenient(value: unknown): Json {
  return describe(value, LIMITS.depth, { nodes: LIMITS.nodes, above: [] });
}

interface Budget {
  nodes: number;
  above: object[];
}

function describe(value: unknown, depth: number, budget: Budget): Json {
  budget.nodes -= 1;
  if (value === undefined || value === null) return null;
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "function") return `[function ${value.name}]`;
  if (typeof value !== "object") return String(value);
  if (budget.above.includes(value)) return "[circular]";
  if (depth === 0 || budget.nodes <= 0) return "[truncated]";
  const inner = { ...budget, above: [...budget.above, value] };
  try {
    return members(value, depth - 1, inner);
  } catch {
    // A getter or a proxy that throws must not replace the failure that it belongs to.
    return "[unreadable]";
  } finally {
    budget.nodes = inner.nodes;
  }
}

function members(value: object, depth: number, budget: Budget): Json {
  if (value instanceof Error) return describeError(value, depth, budget);
  if (Array.isArray(value)) {
    return value.slice(0, LIMITS.members).map((item) => describe(item, depth, budget));
  }
  const own = (value as { toJSON?: unknown }).toJSON;
  if (typeof own === "function") return describe(own.call(value), depth, budget);
  const entries = Object.entries(value).slice(0, LIMITS.members);
  const known = entries.filter(([, member]) => member !== undefined && typeof member !== "function");
  return Object.fromEntries(known.map(([key, member]) => [key, describe(member, depth, budget)]));
}

/** An error as K4 has it: message, code, name, and its own cause. */
function describeError(error: Error, depth: number, budget: Budget): Json {
  const { message, name, cause } = error;
  const { code } = error as { code?: unknown };
  const all = error instanceof AggregateError ? error.errors : undefined;
  return {
    message: String(message),
    code: typeof code === "string" || typeof code === "number" ? code : null,
    name: String(name),
    ...(cause === undefined ? {} : { cause: describe(cause, depth, budget) }),
    ...(all === undefined ? {} : { errors: describe(all, depth, budget) }),
  };
}
