/** Failures as HTTP responses: the contract's own form, which for most is Problem Details (RFC 9457). */

import { type Answer, Boundary } from "./boundary.js";
import { OpenCall } from "./call.js";
import { Failure, isFailure } from "./failure.js";
import type { BoundaryOptions } from "./options.js";
import type { AnyFacts } from "./report.js";
import { type Told, told } from "./thrown.js";

/** Options of a boundary for HTTP. */
export type ProblemOptions = Pick<
  BoundaryOptions,
  "contract" | "audit" | "deadlineMs" | "profile" | "session" | "meta" | "keep" | "name"
>;

/** A response that tells of a failure. */
export interface Problem {
  status: number;
  headers: Record<string, string>;
  body: string;
  code: string;
  incident: string | null;
}

/** What is known of a request. */
export interface Requested {
  method: string;
  path: string;
  trace?: string | undefined;
}

/** The condition of an error that a framework made of a request, by its status. */
const CONDITIONS: readonly (readonly [least: number, most: number, condition: string])[] = [
  [401, 401, "unauthorized"],
  [403, 403, "forbidden"],
  [404, 405, "unknown_method"],
  [408, 408, "timeout"],
  [429, 429, "rate_limited"],
  [400, 499, "invalid_arguments"],
  [502, 503, "upstream_unreachable"],
  [504, 504, "timeout"],
];

/**
 * Answers failures of HTTP handlers under a contract: recorded first, then sent.
 *
 * ```ts
 * import { Problems } from "faultwire";
 *
 * const problems = new Problems({ contract: "owlclaw", audit: false });
 * const handler = problems.fetch(async (request) => {
 *   if (!request.headers.has("authorization")) throw problems.failure("auth.forbidden");
 *   return Response.json({ ok: true });
 * });
 * ```
 */
export class Problems {
  readonly boundary: Boundary;

  constructor(options: ProblemOptions = {}) {
    this.boundary = new Boundary(options, "http");
  }

  /** A failure of the contract, to be thrown. */
  failure<C extends string>(code: C, facts: AnyFacts = {}): Failure<C> {
    return new Failure(this.boundary.contract, code, facts);
  }

  /** Records what a handler threw, and gives the response for it. */
  async problem(error: unknown, requested: Requested): Promise<Problem> {
    const call = this.#call(requested);
    return asProblem((await this.boundary.fail(call, ofHttp(error), "http")) as Answer);
  }

  #call({ method, path, trace }: Requested): OpenCall {
    return new OpenCall(this.boundary, `${method} ${path}`, () => ({ trace }));
  }

  /** A `Response` for what a handler threw. */
  async response(error: unknown, request: Request): Promise<Response> {
    return responded(await this.problem(error, requestedOf(request)));
  }

  /** A fetch handler whose failures are answered; one that never ends is, too. */
  fetch<A extends unknown[]>(
    handler: (request: Request, ...rest: A) => Response | Promise<Response>,
  ): (request: Request, ...rest: A) => Promise<Response> {
    return async (request, ...rest) => {
      const call = this.#call(requestedOf(request));
      const run = async (): Promise<Response> => await handler(request, ...rest);
      const { signal } = request;
      const ended = await this.boundary.guard(call, "http", run, { signal, told: ofHttp });
      return ended instanceof Response ? ended : responded(asProblem(ended as Answer));
    };
  }

  /** The error handler of an Express application, to be the last that it uses. */
  express(): (error: unknown, request: ExpressRequest, response: ExpressResponse, next: Next) => void {
    return (error, request, response, next) => {
      if (response.headersSent) return next(error);
      const path = request.originalUrl.split("?")[0] ?? "";
      const trace = request.get("traceparent");
      this.problem(error, { method: request.method, path, trace }).then(({ status, headers, body }) => {
        response.status(status).set(headers).end(body);
      }, next);
    };
  }

  /** A middleware of Express for paths that nothing has answered, to be used after all routes. */
  expressUnknown(): (request: ExpressRequest, response: ExpressResponse, next: Next) => void {
    return (request, _response, next) => next(unknownPath(request.method, request.originalUrl));
  }

  /** The handler for `app.onError` of Hono. */
  hono(): (error: unknown, context: HonoContext) => Promise<Response> {
    return async (error, context) => await this.response(error, context.req.raw);
  }

  /** The handler for `app.notFound` of Hono. */
  honoUnknown(): (context: HonoContext) => Promise<Response> {
    return async ({ req: { raw } }) =>
      await this.response(unknownPath(raw.method, new URL(raw.url).pathname), raw);
  }
}

/** A request of Express, as far as it is read. */
export interface ExpressRequest {
  method: string;
  originalUrl: string;
  get(name: string): string | undefined;
}

/** A response of Express, as far as it is written. */
export interface ExpressResponse {
  headersSent: boolean;
  status(status: number): this;
  set(headers: Record<string, string>): this;
  end(body: string): unknown;
}

type Next = (error?: unknown) => void;

/** A context of Hono, as far as it is read. */
export interface HonoContext {
  req: { raw: Request };
}

function unknownPath(method: string, path: string): Error {
  return Object.assign(new Error(`There is no ${method} ${path.split("?")[0]}`), { status: 404 });
}

function statusOf(error: unknown): number | undefined {
  if (isFailure(error) || !(error instanceof Error)) return undefined;
  const { status, statusCode } = error as { status?: unknown; statusCode?: unknown };
  const known = typeof status === "number" ? status : statusCode;
  return typeof known === "number" && known >= 400 && known < 600 ? known : undefined;
}

function ofHttp(error: unknown): Told {
  const status = statusOf(error);
  const row = CONDITIONS.find(([least, most]) => status !== undefined && status >= least && status <= most);
  // Only what the request brought about has a condition of its own; all else is read as usual.
  if (row === undefined) return told(error);
  return { how: row[2], what: (error as Error).message };
}

function asProblem({ answer, status = 500, headers = {}, code, incident }: Answer): Problem {
  return { status, headers, body: String(answer), code, incident };
}

function responded({ status, headers, body }: Problem): Response {
  return new Response(body, { status, headers });
}

function requestedOf(request: Request): Requested {
  const trace = request.headers.get("traceparent") ?? undefined;
  return { method: request.method, path: new URL(request.url).pathname, trace };
}
