"""The streams of a connection. What the SDK answers by itself, before a handler or instead of one,
passes here: unknown methods, requests that it cannot read, requests before the handshake.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .call import OpenCall

if TYPE_CHECKING:
    from types import TracebackType

    from .core import Boundary

__all__ = ["PEER", "Connection", "ReadStream", "WriteStream"]

#: The connection that the running code serves.
PEER: ContextVar[Connection | None] = ContextVar("faultwire_peer", default=None)


class Connection:
    """A connection of a client: its session (K12), and its requests without an answer."""

    __slots__ = ("client", "open", "standing")

    def __init__(self, boundary: Boundary) -> None:
        self.standing = boundary.standing()
        self.client: str | None = None
        #: By their ids as texts, because some SDKs confuse 1 and "1": the request as it came, or the
        #: call that it is.
        self.open: dict[str, Any] = {}

    def adopt(self, call: OpenCall) -> None:
        """A request has reached its handler: more is known of it now."""
        call.standing, self.client = self.standing, call.client
        known = self.open.get(str(call.request))
        if known is not None:
            call.is_cancelled = isinstance(known, OpenCall) and known.is_cancelled
            self.open[str(call.request)] = call

    def call_of(self, id: Any) -> OpenCall | None:
        """The call under an id."""
        known = self.open.get(str(id))
        if known is None or isinstance(known, OpenCall):
            return known
        params = known.params if isinstance(known.params, dict) else {}
        call = OpenCall(
            known.method, tool=tool_in(params), arguments=params.get("arguments"), request=known.id, form="error"
        )
        self.open[str(id)] = call
        return call


class ReadStream:
    """What the client sends."""

    def __init__(self, inner: Any, connection: Connection) -> None:
        self._inner = inner
        self._connection = connection

    def __aiter__(self) -> ReadStream:
        return self

    async def __anext__(self) -> Any:
        item = await self._inner.__anext__()
        self._note(item)
        return item

    async def receive(self) -> Any:
        """The next message."""
        item = await self._inner.receive()
        self._note(item)
        return item

    def _note(self, item: Any) -> None:
        message = message_of(item)
        method, id = getattr(message, "method", None), getattr(message, "id", None)
        if method == "notifications/cancelled":
            params = getattr(message, "params", None)
            call = self._connection.call_of(params.get("requestId")) if isinstance(params, dict) else None
            if call is not None:
                call.is_cancelled = True
        elif method is not None and id is not None:
            self._connection.open[str(id)] = message

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> ReadStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return await self._inner.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name == "last_context" and value is not None:
            # A request is handled in the context of the one who sent it; there it is of this connection.
            value = value.copy()
            value.run(PEER.set, self._connection)
        return value


class WriteStream:
    """What the client gets."""

    def __init__(self, inner: Any, connection: Connection, boundary: Boundary, ours: type[Any]) -> None:
        self._inner = inner
        self._connection = connection
        self._boundary = boundary
        #: The class of errors that have an envelope already.
        self._ours = ours

    async def send(self, item: Any) -> None:
        """Sends a message. An error that is not ours becomes an envelope, recorded first."""
        message = message_of(item)
        error = getattr(message, "error", None)
        id = getattr(message, "id", None)
        if id is not None and (error is not None or getattr(message, "result", None) is not None):
            call = None if error is None or isinstance(error, self._ours) else self._connection.call_of(id)
            self._connection.open.pop(str(id), None)
            if call is not None:
                message.error = await self._told(call, error)
        await self._inner.send(item)

    async def _told(self, call: OpenCall, error: Any) -> Any:
        if call.is_settled:
            return error
        call.standing, call.form = self._connection.standing, "error"
        call.client = call.client or self._connection.client
        boundary = self._boundary
        if call.is_cancelled:
            answer = await boundary.failed(call, "cancelled", "Cancelled by the client")
        else:
            answer = await boundary.refused(call, error.code, error.message, error.data)
        return self._ours(**{**answer.body, "code": error.code or answer.body["code"]})

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> WriteStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return await self._inner.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def message_of(item: Any) -> Any:
    """The JSON-RPC message in what an SDK passes through its streams."""
    message = getattr(item, "message", None)
    return getattr(message, "root", message)


def tool_in(params: dict[str, Any]) -> str | None:
    name = params.get("name")
    return name if isinstance(name, str) else None
