"""Servers of `mcp` 2.x: the boundary is a middleware of theirs, around everything else."""

from __future__ import annotations

import time
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import SERVER_INFO_META_KEY, ErrorData
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .call import CURRENT, OpenCall
from .sdk import answer_to, client_of, is_flow, protocol_error, text_of, trace_of, with_envelope
from .streams import PEER, Connection, ReadStream, WriteStream, tool_in
from .watch import Raised, Returned

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from .core import Answer, Boundary

__all__ = ["install"]

#: A tool that is not known is looked for in a new list, at most this often, in seconds.
LIST_AGAIN = 1.0
#: How long the server's own list may take, in seconds.
LIST_WITHIN = 5.0
#: It goes on for as long as the client listens.
ENDLESS = "subscriptions/listen"


class Enveloped(ErrorData):
    """An error whose data is an envelope, and that was recorded."""


class EnvelopedError(MCPError):
    """The same, raised."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body["code"], body["message"], body["data"])
        self.error = Enveloped(**body)


class Middleware:
    """The boundary, as the SDK calls it."""

    def __init__(self, boundary: Boundary, server: Any) -> None:
        self.boundary = boundary
        self._server = server
        self._listed = 0.0
        self._standings: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            return await self._notification(ctx, call_next)
        call = self._call(ctx)
        try:
            if call.is_tool:
                return await self._tool(ctx, call, call_next)
            return await self._other(ctx, call, call_next)
        except BaseException as error:
            # The client, or the end of the connection, took the call back.
            if not isinstance(error, Exception) and not call.is_settled:
                self.boundary.cancelled(call)
            raise

    def _call(self, ctx: ServerRequestContext[Any, Any]) -> OpenCall:
        params = ctx.params if ctx.params is not None else {}
        is_tool = ctx.method == "tools/call"
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        client = ctx.session.client_params
        call = OpenCall(
            ctx.method,
            tool=tool_in(dict(params)) if is_tool else None,
            arguments=params.get("arguments") if is_tool else None,
            request=ctx.request_id,
            client=client_of(client.client_info) if client is not None else None,
            trace=trace_of(params.get("_meta")),
            form=("modern" if is_modern else "result") if is_tool else "error",
        )
        peer = PEER.get()
        if peer is not None:
            peer.adopt(call)
        else:
            # Over HTTP a session is a connection of the SDK; in the modern era there is none.
            connection = getattr(ctx.session, "_connection", None)
            if connection is not None:
                call.standing = self._standings.setdefault(connection, self.boundary.standing())
        return call

    async def _tool(self, ctx: ServerRequestContext[Any, Any], call: OpenCall, call_next: CallNext) -> HandlerResult:
        boundary = self.boundary
        if call.tool is not None and not boundary.knows(call.tool):
            await self._learn(ctx)
        refused = await boundary.refusal(call)
        if refused is not None:
            return self._stamped(call, refused)
        ended = await boundary.run(call, lambda: call_next(ctx), seconds=boundary.timeout)
        if isinstance(ended, Returned):
            raised = self._raised(call, ended.value)
            if raised is None:
                answer = await boundary.returned(call, text_of(ended.value))
                return ended.value if answer is None else self._stamped(call, answer)
            ended = Raised(raised)
        if isinstance(ended, Raised):
            if is_flow(ended.error):
                raise ended.error
            held = protocol_error(ended.error)
            if held is not None:
                call.form = "error"
                answer = await answer_to(boundary, call, ended.error)
                raise EnvelopedError(with_envelope(answer.body, held))
            return self._stamped(call, await answer_to(boundary, call, ended.error))
        return self._stamped(call, await boundary.ended_badly(call, ended))

    def _raised(self, call: OpenCall, result: Any) -> BaseException | None:
        """What the handler raised, if the SDK made this result of it."""
        if call.raised is None or not isinstance(result, dict) or result.get("isError") is not True:
            return None
        error, text = call.raised
        content = result.get("content") or [{}]
        return error if content[0].get("text") == text else None

    def _stamped(self, call: OpenCall, answer: Answer) -> dict[str, Any]:
        """A result of the modern era says which server it is of."""
        body: dict[str, Any] = answer.body
        if call.form == "modern":
            meta = body.setdefault("_meta", {})
            meta.setdefault(SERVER_INFO_META_KEY, self._server.server_info_stamp)
        return body

    async def _other(self, ctx: ServerRequestContext[Any, Any], call: OpenCall, call_next: CallNext) -> HandlerResult:
        boundary = self.boundary
        seconds = None if ctx.method == ENDLESS else boundary.timeout
        ended = await boundary.run(call, lambda: call_next(ctx), seconds=seconds)
        if isinstance(ended, Returned):
            if ctx.method == "tools/list":
                self._listed = time.monotonic()
                boundary.learn(text_of(ended.value))
            return ended.value
        if isinstance(ended, Raised):
            if is_flow(ended.error):
                raise ended.error
            held = protocol_error(ended.error)
            answer = await answer_to(boundary, call, ended.error)
            raise EnvelopedError(answer.body if held is None else with_envelope(answer.body, held))
        raise EnvelopedError((await boundary.ended_badly(call, ended)).body)

    async def _notification(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            return await call_next(ctx)
        except Exception as error:
            self.boundary.left_behind(error, OpenCall(ctx.method))
            raise

    async def _learn(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Asks the server's own list of tools."""
        entry = self._server.get_request_handler("tools/list")
        if entry is None or time.monotonic() - self._listed < LIST_AGAIN:
            return
        self._listed = time.monotonic()

        async def pages() -> None:
            cursor: str | None = None
            seen: set[str | None] = set()
            while cursor not in seen:
                seen.add(cursor)
                params = {} if cursor is None else {"cursor": cursor}
                page = await entry.handler(
                    replace(ctx, method="tools/list", params=params), entry.params_type.model_validate(params)
                )
                self.boundary.learn(text_of(page))
                cursor = page.get("nextCursor") if isinstance(page, dict) else page.next_cursor
                if cursor is None:
                    return

        # A list that fails is the list's failure, not this call's.
        await self.boundary.run(OpenCall("tools/list"), pages, seconds=LIST_WITHIN)


def install(server: Any, boundary: Boundary) -> None:
    """Puts the boundary around a low-level server, or around the one inside of an `MCPServer` or of a
    `FastMCP`.
    """
    low = getattr(server, "_lowlevel_server", None) or getattr(server, "_mcp_server", server)
    middleware = Middleware(boundary, low)
    chain = low.middleware
    # Traces show what the client gets.
    first = 1 if chain and type(chain[0]).__name__ == "OpenTelemetryMiddleware" else 0
    chain.insert(first, middleware)
    if low is not server:
        keep_exceptions(server)
    # The class with decorators makes each result by the tool's own types.
    boundary.sdk_checks_output = hasattr(server, "_lowlevel_server")
    keep_connections(low, boundary)


def keep_exceptions(server: Any) -> None:
    """The class with decorators makes texts of exceptions. They are kept for the boundary."""
    inner = server.call_tool

    async def call_tool(*arguments: Any, **options: Any) -> Any:
        try:
            return await inner(*arguments, **options)
        except Exception as error:
            call = CURRENT.get()
            if call is not None:
                call.raised = (error, str(error))
            raise

    server.call_tool = call_tool


def keep_connections(low: Any, boundary: Boundary) -> None:
    """Each connection over streams is a session, and its errors have envelopes."""
    inner = low.run

    async def run(read_stream: Any, write_stream: Any, *arguments: Any, **options: Any) -> None:
        connection = Connection(boundary)
        token = PEER.set(connection)
        try:
            await inner(
                ReadStream(read_stream, connection),
                WriteStream(write_stream, connection, boundary, Enveloped),
                *arguments,
                **options,
            )
        finally:
            PEER.reset(token)

    low.run = run
