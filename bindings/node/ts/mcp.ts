/** `withContract`: a server of the official SDKs, with the boundary around it. */

import { Boundary, type Form } from "./boundary.js";
import { type Asked, OpenCall, TOOLS_CALL, current } from "./call.js";
import { inputError } from "./error.js";
import { isFailure } from "./failure.js";
import { GuardedHandlers, type Handler, type Request } from "./handlers.js";
import { type NativeStanding, native } from "./native.js";
import type { BoundaryOptions } from "./options.js";
import {
  type HighLevelServer,
  type LowLevelServer,
  isHighLevel,
  issuesFor,
  lowLevel,
  readContext,
  withSignal,
} from "./sdk.js";
import { issuesOf } from "./thrown.js";
import { ToolList } from "./tool-list.js";
import { guardTransport } from "./transport.js";
import type { LateSignal } from "./watch.js";

/** A server of the official SDKs. */
export type AnyServer = { connect(transport: never): Promise<void> };

/** Requests that last for as long as the client likes. */
const UNLIMITED: ReadonlySet<string> = new Set(["subscriptions/listen", "tasks/result"]);

const TOOLS_LIST = "tools/list";

const boundaries = new WeakMap<object, Boundary>();

/**
 * Puts a server under a contract. Whatever its handlers do, and whatever comes before them, a
 * failing request gets one envelope, which is recorded before it is sent. Successes pass untouched.
 *
 * ```ts
 * import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
 * import { withContract } from "faultwire";
 *
 * const server = withContract(new McpServer({ name: "notes", version: "1.0.0" }), {
 *   contract: "standard",
 * });
 * ```
 */
export function withContract<S extends AnyServer>(server: S, options: BoundaryOptions = {}): S {
  const low = lowLevel(server);
  if (boundaries.has(low)) throw inputError("this server is under a contract already", "wrap it once");
  const boundary = new Boundary(options, low._serverInfo?.name ?? "server");
  boundaries.set(low, boundary);
  boundaries.set(server, boundary);
  const guarded = new GuardedServer(boundary, low, isHighLevel(server));
  guarded.install();
  if (isHighLevel(server)) observeTools(server);
  else observeHandlers(low);
  return server;
}

/** The boundary of a server: its log, and what it has counted. */
export function boundaryOf(server: object): Boundary {
  const boundary = boundaries.get(server);
  if (boundary === undefined) {
    throw inputError("this server is under no contract", "wrap it in withContract");
  }
  return boundary;
}

class GuardedServer {
  readonly #boundary: Boundary;
  readonly #low: LowLevelServer;
  readonly #tools: ToolList;
  /** What a session may do, by its id; without an id, there is one. */
  readonly #standings = new Map<string | undefined, NativeStanding>();
  /** The SDK does not check the results of low-level handlers against output schemas. */
  readonly #checksOutput: boolean;

  constructor(boundary: Boundary, low: LowLevelServer, isHigh: boolean) {
    this.#boundary = boundary;
    this.#low = low;
    this.#tools = new ToolList(boundary);
    const { output = "warn" } = boundary.options;
    this.#checksOutput = output === "enforce" || (!isHigh && output === "warn");
  }

  install(): void {
    const low = this.#low;
    const guard = (method: string, handler: Handler | undefined): Handler =>
      this.#guarded(method, handler);
    const handlers = new GuardedHandlers(low._requestHandlers, guard, () => low.fallbackRequestHandler);
    low._requestHandlers = handlers;
    this.#tools.handler = () => handlers.bare(TOOLS_LIST);
    guardTransport(low, this.#boundary, this.#tools);
  }

  #guarded(method: string, handler: Handler | undefined): Handler {
    const isTool = method === TOOLS_CALL;
    const form: Form = isTool && handler !== undefined ? "result" : "error";
    const unlimited = UNLIMITED.has(method);
    return (request, context) => {
      const { signal, session } = readContext(context);
      const name = isTool ? request.params?.name : undefined;
      const tool = typeof name === "string" ? name : undefined;
      const asked = (): Asked => this.#asked(request, context);
      const call = new OpenCall(this.#boundary, method, asked, tool, this.#standing(session));
      const run = (inner: LateSignal): unknown => {
        if (handler === undefined) throw Object.assign(new Error("Method not found"), { code: -32601 });
        return this.#observed(call, request, () => handler(request, withSignal(context, inner)));
      };
      const guard = (): Promise<unknown> => {
        const readsResult = this.#checksOutput && this.#tools.hasOutputSchema(tool);
        return this.#boundary.guard(call, form, run, { signal, unlimited, readsResult });
      };
      return isTool && !this.#tools.isKnown ? this.#tools.known(context).then(guard) : guard();
    };
  }

  /** Sees what a handler returns that matters for the boundary itself. */
  #observed(call: OpenCall, request: Request, handler: () => unknown): unknown {
    if (call.method !== TOOLS_LIST) return handler();
    return Promise.resolve(handler()).then((page) => {
      this.#tools.listed(request, page);
      return page;
    });
  }

  #asked(request: Request, context: unknown): Asked {
    const { params } = request;
    const { request: id, client } = readContext(context);
    const { name, version } = client ?? this.#low.getClientVersion?.() ?? {};
    const trace = params?._meta?.["traceparent"];
    return {
      arguments: request.method === TOOLS_CALL ? params?.arguments : undefined,
      request: request.id ?? id,
      client: name === undefined ? undefined : version === undefined ? name : `${name}/${version}`,
      trace: typeof trace === "string" ? trace : undefined,
    };
  }

  #standing(session: string | undefined): NativeStanding {
    const known = this.#standings.get(session);
    if (known !== undefined) return known;
    const standing = new native.NativeStanding();
    this.#standings.set(session, standing);
    return standing;
  }
}

/** Sees what the tools of a `McpServer` do, before it makes a text of it. */
function observeTools(server: HighLevelServer): void {
  const execute = server.executeToolHandler.bind(server);
  server.executeToolHandler = (tool, args, context) =>
    noted(() => execute(tool, args, context));
  const validate = server.validateToolInput.bind(server);
  server.validateToolInput = async (tool, args, name) => {
    try {
      return await validate(tool, args, name);
    } catch (error) {
      const issues = issuesOf(await issuesFor(tool.inputSchema, args));
      const call = current.getStore();
      if (call !== undefined) call.inner = { did: "refused", error, issues };
      throw error;
    }
  };
}

/** Sees what the handlers of a low-level server do, from now on. */
function observeHandlers(low: LowLevelServer): void {
  const register = low.setRequestHandler;
  low.setRequestHandler = function (this: LowLevelServer, ...registered) {
    const handler = registered.at(-1);
    if (typeof handler !== "function") return register.apply(this, registered);
    const observed = (...given: unknown[]): unknown => noted(async () => await handler(...given));
    return register.apply(this, [...registered.slice(0, -1), observed]);
  };
}

function noted(handler: () => Promise<unknown>): Promise<unknown> {
  const call = current.getStore();
  if (call === undefined) return handler();
  const threw = (error: unknown): never => {
    call.inner = { did: "threw", error };
    throw error;
  };
  const returned = (value: unknown): unknown => {
    // A failure that is returned is meant as one that is thrown.
    if (isFailure(value)) return threw(value);
    call.inner = { did: "returned", value };
    return value;
  };
  return handler().then(returned, threw);
}
