"""A call that is not answered yet, and what is known of it."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Any

from .._json import compact, lossy

__all__ = ["OpenCall", "current_call"]

#: The call that the running code belongs to: of a handler, and of every task and thread that it starts.
CURRENT: ContextVar[OpenCall | None] = ContextVar("faultwire_call", default=None)


class OpenCall:
    """A call that is not answered yet."""

    __slots__ = (
        "_standing",
        "arguments",
        "client",
        "form",
        "is_cancelled",
        "is_settled",
        "method",
        "raised",
        "request",
        "session",
        "since",
        "tool",
        "trace",
        "turn",
    )

    def __init__(
        self,
        method: str,
        *,
        tool: str | None = None,
        arguments: Any = None,
        request: str | int | None = None,
        client: str | None = None,
        trace: str | None = None,
        standing: Any = None,
        form: str = "result",
    ) -> None:
        self.method = method
        self.tool = tool
        self.arguments = arguments
        self.request = request
        self.client = client
        self.trace = trace
        self.standing = standing
        #: In which form a failure is answered: ``result``, ``modern``, ``error``, ``http``.
        self.form = form
        self.since = time.perf_counter()
        self.session: Any = None
        #: What a handler raised and its SDK made a text of, with what the SDK made.
        self.raised: tuple[BaseException, Any] | None = None
        self.is_cancelled = False
        #: Whether its one failure is on its way to the log.
        self.is_settled = False

    @property
    def standing(self) -> Any:
        """The session of its client, if that is known."""
        return self._standing

    @standing.setter
    def standing(self, standing: Any) -> None:
        self._standing = standing
        #: Which session of the client it belongs to: one that is over locks no other.
        self.turn: int | None = None if standing is None else standing.turn

    @property
    def is_tool(self) -> bool:
        return self.method == "tools/call"

    def facts(self) -> str:
        """As the engine reads it."""
        facts: dict[str, Any] = {
            "method": self.method,
            "tool": self.tool,
            "arguments": self.arguments,
            "request": self.request,
            "client": self.client,
            "trace": self.trace,
            "turn": self.turn,
            "elapsed_ms": int((time.perf_counter() - self.since) * 1000),
        }
        if self.session:
            facts["session"] = dict(self.session)
        told = {name: fact for name, fact in facts.items() if fact is not None}
        try:
            return compact(told)
        except (TypeError, ValueError, RecursionError):
            return compact(lossy(told))


def current_call() -> OpenCall | None:
    """The call that the running code belongs to, if it belongs to one."""
    return CURRENT.get()
