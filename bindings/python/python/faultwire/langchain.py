"""For agents of LangChain that use MCP tools (`langchain-mcp-adapters`): calls are sent again where
that is allowed, and the model reads what failed and what to do, in any contract that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .client import RETRIES
from .reader import Reader, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Iterable

    from .contract import Contract

__all__ = ["FollowContract", "words_of"]


class FollowContract:
    """An interceptor of tool calls.

    .. code-block:: python

        tools = await load_mcp_tools(session, tool_interceptors=[FollowContract(read_only={"search"})])

    A call that may have run is sent again only if its tool is named in ``read_only`` or
    ``idempotent`` (A7).
    """

    def __init__(
        self,
        *,
        read_only: Container[str] = (),
        idempotent: Container[str] = (),
        retries: int = RETRIES,
        contracts: Iterable[Contract] | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._read_only = read_only
        self._idempotent = idempotent
        self._retries = retries
        self._reader = Reader(contracts)
        self._sleep = sleep

    async def __call__(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        import anyio

        sleep = self._sleep or anyio.sleep
        attempt = 1
        while True:
            result = await handler(request)
            if not hasattr(result, "model_dump_json") or not hasattr(result, "content"):
                # Another interceptor has answered in LangChain's own form.
                return result
            verdict = self._reader.verdict(
                result,
                attempt=attempt,
                read_only=request.name in self._read_only,
                idempotent=request.name in self._idempotent,
                budget=max(0, self._retries - (attempt - 1)),
            )
            if verdict is None:
                return result
            if not verdict.retry or verdict.delay_ms is None:
                return told(result, verdict)
            await sleep(verdict.delay_ms / 1000)
            attempt += 1


def told(result: Any, verdict: Verdict) -> Any:
    """The same failure in words. What was beside the envelope stays."""
    if verdict.code is None:
        return result
    first = type(result.content[0]) if result.content else None
    if first is None or not hasattr(result.content[0], "text"):
        return result
    words = result.content[0].model_copy(update={"text": words_of(verdict)})
    return result.model_copy(update={"content": [words, *result.content[1:]]})


def words_of(verdict: Verdict) -> str:
    """What a model reads: the code, the server's words, and what to do.

    >>> from faultwire import Contract, verdict
    >>> fault = Contract.builtin("standard").fault({"code": "not_found", "message": "There is no note"})
    >>> print(words_of(verdict(fault.render("result"))))
    not_found: There is no note
    Check the name or path, and list what exists if in doubt.
    """
    next = verdict.fault.get("next") or verdict.action
    return f"{verdict.code}: {verdict.message}\n{next}" if verdict.message else f"{verdict.code}\n{next}"
