"""Servers of `mcp` 1.x: the boundary is around each of their handlers."""

from __future__ import annotations

import sys
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import mcp.types as types
from mcp.shared.exceptions import McpError

from .call import CURRENT, OpenCall
from .sdk import answer_to, client_of, is_flow, protocol_error, text_of, trace_of, with_envelope
from .streams import PEER, Connection, ReadStream, WriteStream
from .watch import Raised, Returned

if TYPE_CHECKING:
    from .core import Answer, Boundary

__all__ = ["install"]

#: A tool that is not known is looked for in a new list, at most this often, in seconds.
LIST_AGAIN = 1.0
#: How long the server's own list may take, in seconds.
LIST_WITHIN = 5.0


class Enveloped(types.ErrorData):
    """An error whose data is an envelope, and that was recorded."""


class Handlers(dict[Any, Any]):
    """The handlers of a server. Those that the server is about to call have the boundary around."""

    boundary: Requests

    def get(self, kind: Any, default: Any = None) -> Any:
        handler = super().get(kind, default)
        return handler if handler is None else partial(self.boundary.handle, handler)


class Requests:
    """The boundary around the handlers of one server."""

    def __init__(self, boundary: Boundary, server: Any) -> None:
        self.boundary = boundary
        self._server = server
        self._listed = 0.0
        self._standings: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    async def handle(self, handler: Any, request: Any) -> Any:
        """Handles a request."""
        call = self._call(request)
        try:
            if call.is_tool:
                return await self._tool(handler, request, call)
            return await self._other(handler, request, call)
        except BaseException as error:
            # The client, or the end of the connection, took the call back.
            if not isinstance(error, Exception) and not call.is_settled:
                self.boundary.cancelled(call)
            raise

    def _call(self, request: Any) -> OpenCall:
        context = self._server.request_context
        is_tool = isinstance(request, types.CallToolRequest)
        client = context.session.client_params
        call = OpenCall(
            request.method,
            tool=request.params.name if is_tool else None,
            arguments=request.params.arguments if is_tool else None,
            request=context.request_id,
            client=client_of(client.clientInfo) if client is not None else None,
            trace=trace_of(context.meta),
            form="result" if is_tool else "error",
        )
        peer = PEER.get()
        if peer is not None:
            peer.adopt(call)
        else:
            call.standing = self._standings.setdefault(context.session, self.boundary.standing())
        return call

    async def _tool(self, handler: Any, request: Any, call: OpenCall) -> Any:
        boundary = self.boundary
        if call.tool is not None and not boundary.knows(call.tool):
            await self._learn()
        refused = await boundary.refusal(call)
        if refused is not None:
            return result_of(refused)
        ended = await boundary.run(call, lambda: handler(request), seconds=boundary.timeout)
        if isinstance(ended, Returned):
            if call.raised is None or call.raised[1] is not ended.value:
                answer = await boundary.returned(call, text_of(ended.value))
                return ended.value if answer is None else result_of(answer)
            ended = Raised(call.raised[0])
        if isinstance(ended, Raised):
            if is_flow(ended.error):
                raise ended.error
            held = protocol_error(ended.error)
            if held is not None:
                call.form = "error"
                answer = await answer_to(boundary, call, ended.error)
                raise McpError(Enveloped(**with_envelope(answer.body, held)))
            return result_of(await answer_to(boundary, call, ended.error))
        return result_of(await boundary.ended_badly(call, ended))

    async def _other(self, handler: Any, request: Any, call: OpenCall) -> Any:
        boundary = self.boundary
        ended = await boundary.run(call, lambda: handler(request), seconds=boundary.timeout)
        if isinstance(ended, Returned):
            if isinstance(request, types.ListToolsRequest):
                self._listed = time.monotonic()
                boundary.learn(text_of(ended.value))
            return ended.value
        if isinstance(ended, Raised):
            if is_flow(ended.error):
                raise ended.error
            held = protocol_error(ended.error)
            answer = await answer_to(boundary, call, ended.error)
            raise McpError(Enveloped(**(answer.body if held is None else with_envelope(answer.body, held))))
        raise McpError(Enveloped(**(await boundary.ended_badly(call, ended)).body))

    async def _learn(self) -> None:
        """Asks the server's own list of tools."""
        handler = dict.get(self._server.request_handlers, types.ListToolsRequest)
        if handler is None or time.monotonic() - self._listed < LIST_AGAIN:
            return
        self._listed = time.monotonic()

        async def pages() -> None:
            cursor: str | None = None
            seen: set[str | None] = set()
            while cursor not in seen:
                seen.add(cursor)
                params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
                page = await handler(types.ListToolsRequest(method="tools/list", params=params))
                self.boundary.learn(text_of(page))
                cursor = getattr(page.root, "nextCursor", None)
                if cursor is None:
                    return

        # A list that fails is the list's failure, not this call's.
        await self.boundary.run(OpenCall("tools/list"), pages, seconds=LIST_WITHIN)


def result_of(answer: Answer) -> types.ServerResult:
    return types.ServerResult(types.CallToolResult.model_validate(answer.body))


def install(server: Any, boundary: Boundary) -> None:
    """Puts the boundary around a low-level server, or around the one inside of a `FastMCP`."""
    low = getattr(server, "_mcp_server", server)
    handlers = Handlers(low.request_handlers)
    handlers.boundary = Requests(boundary, low)
    low.request_handlers = handlers
    keep_exceptions(low)
    keep_connections(low, boundary)
    # The class with decorators checks each result by the tool's own types.
    boundary.sdk_checks_output = low is not server


def keep_exceptions(low: Any) -> None:
    """The server makes texts of exceptions, while it handles them. They are kept for the boundary."""
    inner = getattr(low, "_make_error_result", None)
    if inner is None:
        # Without it, failures are classified by their texts.
        return

    def make_error_result(message: str) -> Any:
        result = inner(message)
        error, call = sys.exc_info()[1], CURRENT.get()
        if call is not None and error is not None:
            call.raised = (error, result)
        return result

    low._make_error_result = make_error_result


def keep_connections(low: Any, boundary: Boundary) -> None:
    """Each connection is a session, and its errors have envelopes."""
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
