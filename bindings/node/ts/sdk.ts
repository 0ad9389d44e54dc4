/** What is known of the official SDKs: `@modelcontextprotocol/sdk` 1.x and `…/server` 2.x. */

import { inputError } from "./error.js";
import type { Handler, Request } from "./handlers.js";
import type { LateSignal } from "./watch.js";

/** A low-level server. The names with an underscore are those of both SDKs. */
export interface LowLevelServer {
  _requestHandlers: Map<string, Handler>;
  _onrequest(request: Request, extra?: unknown): void;
  _serverInfo?: { name?: string };
  fallbackRequestHandler?: Handler;
  /** What it is connected to. */
  readonly transport?: Transport | undefined;
  setRequestHandler(...registered: unknown[]): void;
  getClientVersion?(): { name?: string; version?: string } | undefined;
  connect(transport: Transport): Promise<void>;
}

/** A high-level server. */
export interface HighLevelServer {
  server: LowLevelServer;
  executeToolHandler(tool: RegisteredTool, args: unknown, context: unknown): Promise<unknown>;
  validateToolInput(tool: RegisteredTool, args: unknown, name: string): Promise<unknown>;
}

export interface RegisteredTool {
  inputSchema?: unknown;
}

export interface Transport {
  sessionId?: string | undefined;
  send(message: Message, options?: unknown): Promise<void>;
}

/** A message to the client. */
export interface Message {
  id?: string | number;
  method?: string;
  error?: { code: number; message: string; data?: unknown };
}

/** The server that speaks the protocol. */
export function lowLevel(server: object): LowLevelServer {
  const inner = isHighLevel(server) ? server.server : (server as LowLevelServer);
  if (inner._requestHandlers instanceof Map && typeof inner._onrequest === "function") return inner;
  throw inputError(
    "withContract does not know this kind of server",
    "give it a McpServer or Server of @modelcontextprotocol/sdk 1.x or @modelcontextprotocol/server 2.x",
  );
}

/** Whether a server is a `McpServer`. */
export function isHighLevel(server: object): server is HighLevelServer {
  const { server: inner, executeToolHandler } = server as Partial<HighLevelServer>;
  return typeof inner === "object" && typeof executeToolHandler === "function";
}

/** The context of a request: flat in 1.x, below `mcpReq` in 2.x. */
interface Context {
  signal?: AbortSignal;
  sessionId?: string;
  requestId?: string | number;
  mcpReq?: { signal?: AbortSignal; id?: string | number; envelope?: Record<string, unknown> };
}

const CLIENT_INFO = "io.modelcontextprotocol/clientInfo";

/** What the context of a request says, in either version. */
export function readContext(context: unknown): {
  signal: AbortSignal | undefined;
  session: string | undefined;
  request: string | number | undefined;
  client: { name?: string; version?: string } | undefined;
} {
  const { signal, sessionId, requestId, mcpReq } = (context ?? {}) as Context;
  return {
    signal: signal ?? mcpReq?.signal,
    session: sessionId,
    request: requestId ?? mcpReq?.id,
    client: mcpReq?.envelope?.[CLIENT_INFO] as { name?: string } | undefined,
  };
}

/** The context for the handler, with the signal that also tells of the deadline. */
export function withSignal(context: unknown, late: LateSignal): unknown {
  const { mcpReq } = (context ?? {}) as Context;
  const looks = {
    get signal(): AbortSignal {
      return late.signal;
    },
  };
  const signal = Object.getOwnPropertyDescriptor(looks, "signal") as PropertyDescriptor;
  if (mcpReq === undefined) return Object.defineProperty({ ...(context as object) }, "signal", signal);
  return { ...(context as object), mcpReq: Object.defineProperty({ ...mcpReq }, "signal", signal) };
}

/** What both SDKs say if a handler's result is not one of `tools/call`. */
const UNUSABLE_RESULT = /^(?:MCP error -?\d+: )?Invalid tools\/call result: /;

/** Whether the SDK refused what the handler of `tools/call` returned. */
export function refusesResult(error: unknown): boolean {
  return error instanceof Error && UNUSABLE_RESULT.test(error.message);
}

/** A schema of any library that follows Standard Schema, as zod does. */
interface StandardSchema {
  "~standard": { validate(value: unknown): unknown };
}

/** The issues for which the schema of a tool refuses arguments; the SDKs only keep their text. */
export async function issuesFor(schema: unknown, args: unknown): Promise<unknown> {
  const standard = (schema as Partial<StandardSchema> | undefined)?.["~standard"];
  if (typeof standard?.validate !== "function") return undefined;
  try {
    return ((await standard.validate(args ?? {})) as { issues?: unknown }).issues;
  } catch {
    return undefined;
  }
}
