/** Calls of tools that follow the contract's answer: wait, send again, or give up and say why. */

import type { Contract, RetryContext } from "./contract.js";
import { Reader, type Verdict } from "./reader.js";
import { isProtocolError, plain } from "./thrown.js";

/** A client of the official SDKs, 1.x or 2.x, which take different arguments. */
export interface AnyClient {
  callTool(...args: any[]): Promise<unknown>;
  listTools(...args: any[]): Promise<{ tools: ListedTool[]; nextCursor?: string | undefined }>;
}

interface ListedTool {
  name: string;
  annotations?: { readOnlyHint?: boolean | undefined; idempotentHint?: boolean | undefined } | undefined;
}

/** The call of a tool. */
export interface ToolCall {
  name: string;
  arguments?: Record<string, unknown> | undefined;
  _meta?: Record<string, unknown> | undefined;
}

export interface CallOptions {
  /** How often a call is sent again; three times by default. */
  retries?: number | undefined;
  /** A wait that would be longer than this is not begun; 60 seconds by default. */
  maxWaitMs?: number | undefined;
  /** The contracts that are known; all built-in ones by default. */
  contracts?: readonly Contract[] | undefined;
  /** Whether the tool only reads, or may run twice. By default its annotations say so. */
  readOnly?: boolean | undefined;
  idempotent?: boolean | undefined;
  /** Ends the wait, too. */
  signal?: AbortSignal | undefined;
  /** Options for the client's own `callTool`. */
  request?: Record<string, unknown> | undefined;
  /** Told before each wait. */
  onRetry?: ((verdict: Verdict, attempt: number) => void) | undefined;
}

/** The tool failed, and the call is not sent again. */
export class ToolCallError extends Error {
  override name = "ToolCallError";
  /** What the server said, and why the call is not sent again. */
  readonly verdict: Verdict;
  /** How often it was sent. */
  readonly attempts: number;
  /** The result or error, as it came. */
  readonly reply: unknown;

  constructor(tool: string, verdict: Verdict, attempts: number, reply: unknown) {
    super(describe(tool, verdict, attempts));
    this.verdict = verdict;
    this.attempts = attempts;
    this.reply = reply;
  }

  get code(): string | null {
    return this.verdict.code;
  }
}

const RETRIES = 3;
const LONGEST_WAIT_MS = 60_000;

/**
 * Calls a tool through a client of the official SDKs. A failure that may be retried is waited for
 * and sent again (A7); any other is a `ToolCallError`.
 *
 * ```ts
 * import { Client } from "@modelcontextprotocol/sdk/client/index.js";
 * import { ToolCallError, callTool } from "faultwire";
 *
 * async function forecast(client: Client) {
 *   try {
 *     return await callTool(client, { name: "forecast", arguments: { city: "Oslo" } });
 *   } catch (error) {
 *     if (!(error instanceof ToolCallError)) throw error;
 *     return `${error.code}: ${error.verdict.action}`;
 *   }
 * }
 * ```
 */
export async function callTool<C extends AnyClient>(
  client: C,
  call: ToolCall,
  options: CallOptions = {},
): Promise<Awaited<ReturnType<C["callTool"]>>> {
  const { retries = RETRIES, maxWaitMs = LONGEST_WAIT_MS, signal } = options;
  const reader = readerOf(options.contracts);
  for (let attempt = 1; ; attempt += 1) {
    const reply = await send(client, call, options);
    const first = reader.verdict(reply.read);
    if (first === undefined) return reply.value as Awaited<ReturnType<C["callTool"]>>;
    const safety = await safetyOf(client, call.name, options);
    const context: RetryContext = { attempt, budget: Math.max(0, retries - attempt + 1), ...safety };
    const verdict = reader.verdict(reply.read, context) ?? first;
    const waits = verdict.delayMs ?? 0;
    if (!verdict.retry || waits > maxWaitMs) {
      throw new ToolCallError(call.name, verdict, attempt, reply.value);
    }
    options.onRetry?.(verdict, attempt);
    await wait(waits, signal);
  }
}

/** What came back: as it is, and as the reader reads it. */
interface Reply {
  value: unknown;
  read: unknown;
}

async function send(client: AnyClient, call: ToolCall, options: CallOptions): Promise<Reply> {
  const request = { ...options.request, ...(options.signal ? { signal: options.signal } : {}) };
  try {
    // The 1.x client takes the schema of the result in between.
    const args = isFirst(client) ? [call, undefined, request] : [call, request];
    const value = await client.callTool(...args);
    return { value, read: value };
  } catch (error) {
    if (!isProtocolError(error) || isLocal(error)) throw error;
    const { code, message, data } = error;
    return { value: error, read: { code, message: plain(message), data } };
  }
}

/** A client of 1.x: the second parameter of its `callTool` has a default, and does not count. */
function isFirst(client: AnyClient): boolean {
  return client.callTool.length === 1;
}

/** The numbers with which the 1.x client tells of its own troubles; no server has answered. */
const LOCAL_CODES: ReadonlySet<number> = new Set([-32000, -32001]);
/** What both clients say of a success that they refuse themselves. */
const LOCAL_WORDS = /output ?schema|structured content/i;

/** Whether the client itself failed. What servers say of a failure under a contract has data. */
function isLocal({ code, message, data }: { code: number; message: string; data?: unknown }): boolean {
  if (typeof data === "object" && data !== null && "error" in data) return false;
  return LOCAL_CODES.has(code) || (data === undefined && LOCAL_WORDS.test(message));
}

const readers = new WeakMap<readonly Contract[], Reader>();
let builtin: Reader | undefined;

function readerOf(contracts: readonly Contract[] | undefined): Reader {
  if (contracts === undefined) return (builtin ??= new Reader());
  const known = readers.get(contracts) ?? new Reader(contracts);
  readers.set(contracts, known);
  return known;
}

/** The tools of each client, as it listed them. */
const lists = new WeakMap<AnyClient, Map<string, ListedTool>>();

async function safetyOf(
  client: AnyClient,
  name: string,
  options: CallOptions,
): Promise<{ readOnly: boolean; idempotent: boolean }> {
  const { readOnly, idempotent } = options;
  if (readOnly !== undefined || idempotent !== undefined) {
    return { readOnly: readOnly ?? false, idempotent: idempotent ?? false };
  }
  const known = lists.get(client) ?? (await listed(client));
  lists.set(client, known);
  const hints = known.get(name)?.annotations;
  return { readOnly: hints?.readOnlyHint === true, idempotent: hints?.idempotentHint === true };
}

async function listed(client: AnyClient): Promise<Map<string, ListedTool>> {
  const known = new Map<string, ListedTool>();
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    for (const tool of page.tools) known.set(tool.name, tool);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return known;
}

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      signal?.removeEventListener("abort", cancel);
      resolve();
    };
    const timer = setTimeout(end, ms);
    const cancel = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    if (signal?.aborted) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
  });
}

function describe(tool: string, verdict: Verdict, attempts: number): string {
  const { code, message, reason, action } = verdict;
  const times = attempts === 1 ? "once" : `${attempts} times`;
  const said = [code, message].filter((part) => part !== null).join(": ");
  return `${tool} failed, called ${times} (${reason}): ${said || "no reason given"}. ${action}`.trim();
}
