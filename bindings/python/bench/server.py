"""The server of `calls.py`: with an argument, that is the log of its boundary."""

from __future__ import annotations

import logging
import sys

try:
    from mcp.server.mcpserver import MCPServer as High
except ImportError:
    from mcp.server.fastmcp import FastMCP as High  # type: ignore[no-redef]

logging.disable()
server = High("bench")


@server.tool()
async def fine(text: str) -> str:
    return text


@server.tool()
async def broken(text: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", "notes.md")


if len(sys.argv) > 1:
    from faultwire import with_contract

    with_contract(server, "standard", audit=sys.argv[1])
server.run()
