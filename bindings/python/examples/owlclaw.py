"""OwlClaw as a server: one capability, both as an HTTP API and over MCP, with the same rules and the
same failures.

    python owlclaw.py PORT CLIENTS SUPPLIER AUDIT

CLIENTS is a JSON file of tokens and what they are allowed; SUPPLIER is the URL that is asked for
prices. `POST /v1/quote` and `/mcp` are served on PORT.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2 as httpx
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from faultwire import AuditLog, Failure, owlclaw, with_contract
from faultwire.starlette import ProblemDetails

#: The deadline of a call, in seconds.
DEADLINE = 2.0
#: The versions of the capability.
VERSIONS = ["v1", "v2"]
#: The protocol versions that can be asked for by header.
PROTOCOLS = ["2025-06-18", "2025-11-25", "2026-07-28"]


class Wanted(BaseModel):
    """What shall be shipped."""

    tons: int = Field(gt=0)
    #: The version of this capability that is meant.
    version: str | None = None


class Quote(BaseModel):
    """What it costs."""

    tons: int
    price: float


class Terms(BaseModel):
    """What a client is allowed."""

    #: The version that the client has agreed to.
    version: str
    capabilities: list[str]
    per_minute: int
    #: How many calls are paid for.
    budget: int


class Client:
    """A client, and what it has used."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.used = 0
        # A bucket of tokens, filled with `per_minute`.
        self._tokens = float(terms.per_minute)
        self._since = time.monotonic()

    def may(self, capability: str, version: str | None) -> None:
        """Raises unless the client may use a capability now, in this version."""
        if capability not in self.terms.capabilities:
            raise owlclaw.auth_forbidden()
        if version is not None and version not in VERSIONS:
            raise owlclaw.protocol_unsupported_version(details={"supported_versions": VERSIONS})
        if version is not None and version != self.terms.version:
            raise owlclaw.protocol_version_conflict(f"This client has agreed to {self.terms.version}")
        self._take()
        if self.used >= self.terms.budget:
            raise owlclaw.governance_budget_exceeded()
        self.used += 1

    def _take(self) -> None:
        now, rate = time.monotonic(), self.terms.per_minute / 60
        self._tokens = min(self.terms.per_minute, self._tokens + (now - self._since) * rate)
        self._since = now
        if self._tokens < 1:
            wait = (1 - self._tokens) / rate
            raise owlclaw.governance_rate_limited(retry_after_ms=math.ceil(wait * 1000))
        self._tokens -= 1


class Capability:
    """The capability, for both protocols."""

    def __init__(self, clients: Path, supplier: str) -> None:
        terms = json.loads(clients.read_text())
        self._clients = {token: Client(Terms.model_validate(one)) for token, one in terms.items()}
        self._supplier = supplier.rstrip("/")
        self._http = httpx.AsyncClient(timeout=None)

    def who(self, headers: Mapping[str, str]) -> Client:
        """The client whose token it is."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        client = self._clients.get(token) if scheme == "Bearer" else None
        if client is None:
            raise owlclaw.auth_unauthorized()
        return client

    async def quote(self, headers: Mapping[str, str], wanted: Wanted) -> Quote:
        """What a load costs, as the supplier says."""
        self.who(headers).may("quote", wanted.version)
        try:
            # The boundary notices a supplier that takes too long.
            answer = await self._http.get(f"{self._supplier}/{wanted.tons}")
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise owlclaw.dependency_unavailable("The supplier is away") from error
        # A supplier that sends no price has changed its API.
        try:
            price = float(answer.text)
        except ValueError as error:
            raise owlclaw.internal_unexpected("The supplier sent no price") from error
        if not math.isfinite(price) or price < 0:
            raise owlclaw.internal_unexpected("The supplier sent a price that cannot be")
        return Quote(tons=wanted.tons, price=price)


def api(capability: Capability) -> Route:
    """The capability over HTTP."""

    async def quote(request: Request) -> JSONResponse:
        try:
            wanted = Wanted.model_validate(await request.json())
        except ValidationError as error:
            issues = [{"path": ".".join(map(str, one["loc"])), "message": one["msg"]} for one in error.errors()]
            raise owlclaw.protocol_version_conflict("The load is not valid", details={"issues": issues}) from error
        made = await capability.quote(request.headers, wanted)
        return JSONResponse(made.model_dump())

    return Route("/v1/quote", quote, methods=["POST"])


def mcp(capability: Capability, log: AuditLog) -> MCPServer:
    """The capability over MCP."""
    server = MCPServer("owlclaw")

    @server.tool(description="Says what it costs to ship a load", annotations=ToolAnnotations(read_only_hint=True))
    async def quote(ctx: Context, tons: int, version: str | None = None) -> Quote:
        return await capability.quote(headers_of(ctx.request_context), Wanted(tons=tons, version=version))

    async def known_clients(ctx: Any, call_next: Any) -> Any:
        # Unknown clients do not get a session.
        if ctx.method in ("initialize", "server/discover"):
            capability.who(headers_of(ctx))
        return await call_next(ctx)

    server.middleware.append(known_clients)
    return with_contract(server, "owlclaw", audit=log, timeout=DEADLINE)


def headers_of(ctx: Any) -> Mapping[str, str]:
    """The headers that a request over MCP came with."""
    request = ctx.request
    if not isinstance(request, Request):
        raise owlclaw.internal_unexpected("This request did not come over HTTP")
    return request.headers


class Versioned:
    """A client that names a protocol by header can be told to take another one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        named = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        if named and named not in PROTOCOLS:
            raise owlclaw.protocol_unsupported_version(status=426, details={"supported_versions": PROTOCOLS})
        await self.app(scope, receive, send)


def app(capability: Capability, log: AuditLog) -> Starlette:
    """Both of them."""
    server = mcp(capability, log)
    over_mcp = server.streamable_http_app()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with server.session_manager.run():
            yield

    made = Starlette(routes=[api(capability), Mount("/", app=over_mcp)], lifespan=lifespan)
    made.add_middleware(Versioned)
    # Around everything else. Failures of MCP were answered by its own boundary.
    made.add_middleware(ProblemDetails, contract="owlclaw", audit=log, timeout=DEADLINE)
    return made


def main() -> None:
    """Opens the log, then serves."""
    if len(sys.argv) != 5:
        sys.exit("usage: owlclaw.py PORT CLIENTS SUPPLIER AUDIT")
    port, clients, supplier, audit = sys.argv[1:]
    try:
        log = AuditLog.open(audit)
        capability = Capability(Path(clients), supplier)
    except Exception as error:
        # A server that cannot start says why, under its contract.
        failure = Failure.startup_failure(owlclaw.contract, "internal.unexpected", message=str(error), cause=error)
        sys.exit(failure.fault().render())
    with log:
        config = uvicorn.Config(app(capability, log), host="127.0.0.1", port=int(port), log_level="warning")
        server = uvicorn.Server(config)
        socket = config.bind_socket()
        print(f"http://127.0.0.1:{socket.getsockname()[1]}", flush=True)
        server.run(sockets=[socket])


if __name__ == "__main__":
    main()
