/** The request handlers of a server, each with the boundary around it. */

/** A handler of a request, in either version of the SDK. */
export type Handler = (request: Request, context: unknown) => unknown;

/** A request, as far as all versions have it. */
export interface Request {
  id?: string | number;
  method: string;
  params?: { name?: unknown; arguments?: unknown; _meta?: Record<string, unknown>; cursor?: string };
}

/**
 * The map in which the SDK looks its handlers up. What it finds has the boundary around it, so it
 * does not matter when, or in which way, a handler was registered; where it would find nothing,
 * it finds a handler that fails.
 */
export class GuardedHandlers extends Map<string, Handler> {
  readonly #guard: (method: string, handler: Handler | undefined) => Handler;
  readonly #fallback: () => Handler | undefined;
  readonly #guarded = new WeakMap<Handler, Handler>();

  constructor(
    handlers: Map<string, Handler>,
    guard: (method: string, handler: Handler | undefined) => Handler,
    fallback: () => Handler | undefined,
  ) {
    super();
    this.#guard = guard;
    this.#fallback = fallback;
    for (const [method, handler] of handlers) super.set(method, handler);
  }

  override get(method: string): Handler {
    const handler = super.get(method) ?? this.#fallback();
    if (handler === undefined) return this.#guard(method, undefined);
    // A fallback serves several methods, and the call has to know which.
    if (!super.has(method)) return this.#guard(method, handler);
    const known = this.#guarded.get(handler);
    if (known !== undefined) return known;
    const guarded = this.#guard(method, handler);
    this.#guarded.set(handler, guarded);
    return guarded;
  }

  /** The handler itself. */
  bare(method: string): Handler | undefined {
    return super.get(method);
  }
}
