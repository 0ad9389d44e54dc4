"""The boundary for servers of `fastmcp` 4.x: `with_contract`, or a middleware among others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp.server.middleware import Middleware as FastMCPMiddleware
from fastmcp.tools.base import ToolResult
from mcp_types import CallToolResult

from .boundary.core import Boundary
from .boundary.mcp2 import Middleware, install
from .boundary.settings import Options

if TYPE_CHECKING:
    import os

    from typing_extensions import Unpack

    from .contract import Contract

__all__ = ["ContractMiddleware", "install"]


class ContractMiddleware(FastMCPMiddleware):
    """The boundary as a middleware of a `FastMCP`. Put it first: it answers for what is inside.

    .. code-block:: python

        server = FastMCP("notes", middleware=[ContractMiddleware("standard")])

    `with_contract(server)` is around everything, what the SDK answers by itself included.
    """

    def __init__(
        self,
        contract: Contract | str | os.PathLike[str] = "standard",
        *,
        name: str = "server",
        **options: Unpack[Options],
    ) -> None:
        self.boundary = Boundary(contract, name=name, options=options)
        self._inner: Middleware | None = None

    async def __call__(self, context: Any, call_next: Any) -> Any:
        known = context.fastmcp_context
        wrapped = known.request_context if known is not None else None
        if wrapped is None or context.type != "request":
            return await call_next(context)
        # The SDK's own context has the raw request.
        request = wrapped._srctx
        if self._inner is None:
            self._inner = Middleware(self.boundary, known.fastmcp._mcp_server)
        kept: list[Any] = []

        async def next_one(_: Any) -> Any:
            made = await call_next(context)
            kept.append(made)
            if request.method == "tools/list":
                return {"tools": [tool.to_mcp_tool().model_dump(by_alias=True, exclude_none=True) for tool in made]}
            return result_of(made) if isinstance(made, ToolResult) else made

        answer = await self._inner(request, next_one)
        if isinstance(answer, dict) and request.method == "tools/call":
            return CallToolResult.model_validate(answer)
        # A success goes on as the object that it was.
        return kept[0]


def result_of(made: ToolResult) -> CallToolResult:
    """A tool's result as its client would see it."""
    return CallToolResult.model_validate(
        {
            "content": [block.model_dump(by_alias=True) for block in made.content],
            "structuredContent": made.structured_content,
            "isError": made.is_error,
        }
    )
