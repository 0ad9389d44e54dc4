// Failures over HTTP: Express, Hono and fetch, on real sockets.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";

import express from "express";
import { Contract, Failure, Problems } from "faultwire";
import { governanceRateLimited, protocolUnsupportedVersion } from "faultwire/owlclaw";
import { Hono } from "hono";

import { records, scratch } from "./lib/connect.mjs";

const owlclaw = Contract.builtin("owlclaw");
const fails = {
  "/limited": () => governanceRateLimited({ retryAfterMs: 1500, message: "Ten calls a minute" }),
  "/version": () => protocolUnsupportedVersion({ status: 426 }),
  "/forbidden": () => new Failure(owlclaw, "auth.forbidden", { trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }),
  "/error": () => new Error("password=hunter2 at /srv/app/x.js"),
  "/words": () => "only words",
};

async function listening(server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return [`http://127.0.0.1:${server.address().port}`, () => { server.closeAllConnections(); server.close(); }];
}

const FRONTS = {
  express: async (problems) => {
    const app = express();
    for (const [path, make] of Object.entries(fails)) app.get(path, async () => { throw make(); });
    app.post("/json", express.json(), (_request, response) => response.json({ ok: true }));
    app.get("/fine", (_request, response) => response.json({ ok: true }));
    app.use(problems.expressUnknown());
    app.use(problems.express());
    return await listening(createServer(app));
  },
  hono: async (problems) => {
    const app = new Hono();
    app.onError(problems.hono());
    app.notFound(problems.honoUnknown());
    // Hono gives only errors to its handler, as its types say.
    for (const [path, make] of Object.entries(fails)) app.get(path, () => { const made = make(); throw made instanceof Error ? made : new Error(made); });
    app.get("/fine", (context) => context.json({ ok: true }));
    return await served((request) => app.fetch(request));
  },
  fetch: async (problems) => {
    const handler = problems.fetch(async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/fine") return Response.json({ ok: true });
      if (pathname in fails) throw fails[pathname]();
      throw Object.assign(new Error("nothing there"), { status: 404 });
    });
    return await served(handler);
  },
};

/** A fetch handler on a socket. */
async function served(handler) {
  return await listening(createServer(async (incoming, outgoing) => {
    const response = await handler(new Request(`http://${incoming.headers.host}${incoming.url}`, { method: incoming.method, headers: incoming.headers }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(Buffer.from(await response.arrayBuffer()));
  }));
}

for (const [front, start] of Object.entries(FRONTS)) {
  test(`o2: problem details on ${front}, recorded first`, async () => {
    const audit = scratch();
    const [url, close] = await start(new Problems({ contract: owlclaw, audit }));
    const expected = {
      "/limited": [429, "governance.rate_limited"],
      "/version": [426, "protocol.unsupported_version"],
      "/forbidden": [403, "auth.forbidden"],
      "/error": [500, "internal.unexpected"],
      "/words": [500, "internal.unexpected"],
      "/nothing": [undefined, owlclaw.describe().conditions.unknown_method],
    };
    for (const [path, [status, code]] of Object.entries(expected)) {
      const response = await fetch(url + path);
      const text = await response.text();
      const body = JSON.parse(text);
      assert.equal(body.code, code, `${path} ${text}`);
      assert.equal(response.status, status ?? [owlclaw.row(code).status].flat()[0]);
      assert.equal(body.status, response.status);
      assert.match(response.headers.get("content-type"), /^application\/problem\+json/);
      assert.ok(!text.includes("hunter2") && !text.includes("/srv/app"));
      assert.equal(response.headers.get("retry-after"), path === "/limited" ? "2" : null);
      const record = records(audit).at(-1);
      assert.equal(record.fault.incident, body.incident_id);
      assert.equal(record.fault.method, `GET ${path}`);
      assert.equal(owlclaw.decode(text, { surface: "http" }).code, code);
    }
    assert.deepEqual(await (await fetch(`${url}/fine`)).json(), { ok: true });
    if (front === "express") {
      const broken = await fetch(`${url}/json`, { method: "POST", body: "{", headers: { "content-type": "application/json" } });
      assert.equal((await broken.json()).code, owlclaw.describe().conditions.invalid_arguments);
    }
    close();
  });
}

describe("one failure on two surfaces", () => {
  test("o5: code, category, retryable and incident are the same", () => {
    const { fault } = new Failure(owlclaw, "governance.rate_limited", { retryAfterMs: 2000 });
    const [mcp, http] = [JSON.parse(fault.render()).error, JSON.parse(fault.render({ surface: "http" }))];
    for (const key of ["code", "category", "retryable", "incident_id"]) assert.equal(mcp[key], http[key]);
  });

  test("o9: the incident is that of the trace", async () => {
    const problems = new Problems({ contract: owlclaw, audit: false });
    const request = new Request("http://localhost/x", { headers: { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" } });
    const [one, other] = await Promise.all([problems.response(new Error("a"), request), problems.response(new Error("b"), request)]);
    const [first, second] = [await one.json(), await other.json()];
    assert.equal(first.incident_id, second.incident_id);
  });

  test("a5: a handler that never ends is answered", async () => {
    const problems = new Problems({ contract: owlclaw, audit: false, deadlineMs: 50 });
    const response = await problems.fetch(() => new Promise(() => {}))(new Request("http://localhost/x"));
    assert.equal((await response.json()).code, owlclaw.describe().conditions.timeout);
  });
});
