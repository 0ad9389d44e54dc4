"""Calls of tools that follow the answer: whether to call again, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .reader import Reader, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from .contract import Contract

__all__ = ["CallFailed", "call_tool"]

#: How often a call is sent again.
RETRIES = 3


class CallFailed(Exception):
    """A call failed, and sending it again is of no use, or not allowed. ``verdict`` says why."""

    def __init__(self, tool: str, verdict: Verdict, attempts: int, result: Any) -> None:
        self.tool = tool
        self.verdict = verdict
        #: How often it was sent.
        self.attempts = attempts
        #: The last answer: the SDK's result, or its exception.
        self.result = result
        tried = "" if attempts == 1 else f" after {attempts} attempts"
        code = verdict.code or "an unknown failure"
        super().__init__(f"{tool} failed with {code}{tried} ({verdict.reason}): {verdict.message}\n{verdict.action}")

    @property
    def code(self) -> str | None:
        """The code, where there is one."""
        return self.verdict.code


async def call_tool(
    session: Any,
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    read_only: bool | None = None,
    idempotent: bool | None = None,
    trust_annotations: bool = False,
    retries: int = RETRIES,
    contracts: Iterable[Contract] | None = None,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    **options: Any,
) -> Any:
    """Calls a tool over a session of `mcp` 1.x or 2.x, or a client of `fastmcp`, and waits and calls
    again as the answer allows (A7).

    A call that may have run is sent again only if the tool is ``read_only`` or ``idempotent``: say
    so, or trust what the server says of its tools. Returns the SDK's own result, or raises
    `CallFailed`. Failures of the connection are raised as they are. Other options go to the session.
    """
    if sleep is None:
        import anyio

        sleep = anyio.sleep
    reader = Reader(contracts)
    send = getattr(session, "call_tool_mcp", session.call_tool)
    attempt = 1
    while True:
        answer: Any
        try:
            answer = await send(name, dict(arguments or {}), **options)
        except Exception as error:
            if not is_rpc_error(error):
                raise
            answer = error
        if read_only is None and idempotent is None and trust_annotations and attempt == 1:
            if reader.verdict(answer) is None:
                return answer
            read_only, idempotent = await hints_of(session, name)
        verdict = reader.verdict(
            answer,
            attempt=attempt,
            read_only=bool(read_only),
            idempotent=bool(idempotent),
            budget=max(0, retries - (attempt - 1)),
        )
        if verdict is None:
            return answer
        if not verdict.retry or verdict.delay_ms is None:
            raise CallFailed(name, verdict, attempt, answer) from (answer if isinstance(answer, Exception) else None)
        await sleep(verdict.delay_ms / 1000)
        attempt += 1


def is_rpc_error(error: BaseException) -> bool:
    """Whether the server sent it."""
    held = getattr(error, "error", None)
    return hasattr(held, "code") and hasattr(held, "message")


async def hints_of(session: Any, name: str) -> tuple[bool, bool]:
    """What the server says of a tool: whether it only reads, and whether it may run twice."""
    listed = await session.list_tools()
    for tool in getattr(listed, "tools", listed):
        if tool.name == name and tool.annotations is not None:
            hints = tool.annotations.model_dump(by_alias=True)
            return bool(hints.get("readOnlyHint")), bool(hints.get("idempotentHint"))
    return False, False
