"""A server that works at the third try: `flaky.py CONTRACT AUDIT OPTIONS`."""

from __future__ import annotations

import sys
from collections import Counter

from faultwire import standard, with_contract

try:
    from mcp.server.mcpserver import MCPServer as High
    from mcp_types import ToolAnnotations
except ImportError:
    from mcp.server.fastmcp import FastMCP as High  # type: ignore[no-redef]
    from mcp.types import ToolAnnotations  # type: ignore[assignment,no-redef]

server = High("flaky")
seen: Counter[str] = Counter()


@server.tool(annotations=ToolAnnotations(**{"readOnlyHint": True}))
def twice(key: str) -> str:
    seen[key] += 1
    if seen[key] < 3:
        raise standard.unavailable("not yet", retry_after_ms=1000)
    return "the third time"


@server.tool()
def never() -> str:
    raise standard.unavailable("never", retry_after_ms=10)


@server.tool(annotations=ToolAnnotations(**{"readOnlyHint": True}))
def gone() -> str:
    raise standard.not_found("There is no note of this day")


@server.tool()
def fine() -> str:
    return "fine"


@server.resource("note://never")
def note() -> str:
    raise standard.quota_exceeded("no more notes")


with_contract(server, sys.argv[1], audit=sys.argv[2])
server.run()
