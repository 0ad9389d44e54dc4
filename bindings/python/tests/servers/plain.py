"""A server without a boundary, to compare with."""

from __future__ import annotations

try:
    from fastmcp import FastMCP as High

    ARGUMENTS = {"show_banner": False}
except ImportError:
    ARGUMENTS = {}
    try:
        from mcp.server.mcpserver import MCPServer as High  # type: ignore[no-redef]
    except ImportError:
        from mcp.server.fastmcp import FastMCP as High  # type: ignore[no-redef]

server = High("failing")


@server.tool()
def ok(text: str) -> str:
    return text


server.run(**ARGUMENTS)
