"""Failures of an HTTP API as Problem Details (RFC 9457), for Starlette, FastAPI and any ASGI app."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ._json import compact
from .boundary.call import OpenCall
from .boundary.core import Boundary
from .boundary.settings import Options
from .boundary.watch import Raised, Returned

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, MutableMapping

    from typing_extensions import Unpack

    from .boundary.core import Answer
    from .contract import Contract

    Message = MutableMapping[str, Any]
    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

__all__ = ["ProblemDetails"]

#: How much of a response that is no envelope is read.
MOST = 64 * 1024

#: Headers of a response that belong to its body.
OF_THE_BODY = {b"content-type", b"content-length", b"content-encoding", b"transfer-encoding", b"retry-after"}


class ProblemDetails:
    """Answers every failure of an app under a contract: failures that are raised, other exceptions,
    timeouts, and the framework's own refusals. Each is recorded first.

    .. code-block:: python

        app = Starlette(routes=routes)
        app.add_middleware(ProblemDetails, contract="owlclaw", audit="audit")
    """

    def __init__(
        self,
        app: Any,
        contract: Contract | str | os.PathLike[str] = "standard",
        *,
        name: str = "http",
        **options: Unpack[Options],
    ) -> None:
        self.app = app
        self.boundary = Boundary(contract, name=name, options=options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        call = self._call(scope)
        response = Response(send)
        ended = await self._run(scope, receive, response, call)
        answer = await self._answer(call, ended, response)
        if answer is not None:
            await self._send(answer, response, send)

    async def _run(self, scope: Scope, receive: Receive, response: Response, call: OpenCall) -> Any:
        try:
            return await self.boundary.run(
                call,
                lambda: self.app(scope, receive, response.send),
                seconds=self.boundary.timeout,
                begun=lambda: response.is_sent,
            )
        except BaseException as error:
            if not isinstance(error, Exception) and not call.is_settled:
                self.boundary.cancelled(call)
            raise

    def _call(self, scope: Scope) -> OpenCall:
        headers = dict(scope.get("headers", ()))
        trace = headers.get(b"traceparent")
        return OpenCall(
            f"{scope.get('method', 'GET')} {scope.get('path', '/')}",
            trace=trace.decode("latin-1") if trace is not None else None,
            form="http",
        )

    async def _answer(self, call: OpenCall, ended: Any, response: Response) -> Answer | None:
        boundary = self.boundary
        if isinstance(ended, Returned):
            if response.is_held and response.is_rpc():
                # An MCP server below has its own boundary, and its clients read JSON-RPC.
                await response.release()
            return await self._refused(call, response) if response.is_held else None
        if response.is_sent:
            # The client has the head of a response already: no envelope fits behind it.
            if isinstance(ended, Raised):
                boundary.left_behind(ended.error, call)
                raise ended.error
            boundary.cancelled(call)
            return None
        return await boundary.ended_badly(call, ended)

    async def _refused(self, call: OpenCall, response: Response) -> Answer:
        """The answer instead of the framework's: FastAPI lists what is wrong with each field."""
        issues = response.issues()
        if issues is not None:
            told: dict[str, Any] = {"name": "RequestValidationError", "message": "The request is not valid", "issues": issues}
            return await self.boundary.failed(call, "threw", compact(told))
        told = {"status": response.status, "message": response.words(), "retry_after": response.header(b"retry-after")}
        return await self.boundary.failed(call, "responded", compact(told))

    async def _send(self, answer: Answer, response: Response, send: Send) -> None:
        body = str(answer.body).encode()
        headers = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        headers.append((b"content-length", str(len(body)).encode()))
        # Headers that others set are kept: Allow, cookies, a challenge.
        ours = {name for name, _ in headers} | OF_THE_BODY
        headers += [(name, value) for name, value in response.headers if name.lower() not in ours]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Response:
    """What the app sends. A failing response is held back; every other one passes at once."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_held = False
        self.is_sent = False
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        """Takes a message of the app."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
            self.is_held = self.status >= 400
        if self.is_held:
            if message["type"] == "http.response.body" and len(self._body) < MOST:
                self._body += message.get("body", b"")[: MOST - len(self._body)]
            return
        self.is_sent = True
        await self._send(message)

    def is_rpc(self) -> bool:
        told = self.json()
        return isinstance(told, dict) and "jsonrpc" in told

    async def release(self) -> None:
        """Sends what was held back."""
        self.is_held = False
        await self._send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await self._send({"type": "http.response.body", "body": bytes(self._body)})

    def header(self, name: bytes) -> str | None:
        return next((value.decode("latin-1") for known, value in self.headers if known.lower() == name), None)

    def json(self) -> Any:
        try:
            return json.loads(bytes(self._body))
        except ValueError:
            return None

    def issues(self) -> list[dict[str, Any]] | None:
        """The fields that FastAPI has found fault with."""
        told = self.json()
        detail = told.get("detail") if isinstance(told, dict) else None
        if self.status != 422 or not isinstance(detail, list):
            return None
        return [
            {"path": [str(part) for part in issue["loc"][1:]], "message": issue["msg"], "type": issue.get("type", "")}
            for issue in detail
            if isinstance(issue, dict) and "loc" in issue and "msg" in issue
        ] or None

    def words(self) -> str:
        """What the response says."""
        from http import HTTPStatus

        told = self.json()
        detail = told.get("detail") if isinstance(told, dict) else None
        words = detail if isinstance(detail, str) else bytes(self._body).decode(errors="replace").strip()
        if words:
            return words
        return HTTPStatus(self.status).phrase if self.status in set(HTTPStatus) else "Failed"
