"""A low-level server: `low.py CONTRACT AUDIT OPTIONS`. Made with mcp 1.x or 2.x."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from faultwire import Contract, Failure, with_contract

NAME, AUDIT, OPTIONS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
CONTRACT = Contract.builtin(NAME)

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "minimum": 1}},
    "required": ["path", "lines"],
    "additionalProperties": False,
}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "read", "inputSchema": SCHEMA},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "boom", "inputSchema": {"type": "object"}},
    {"name": "count", "inputSchema": {"type": "object"}, "outputSchema": OUTPUT},
    {"name": "wrong", "inputSchema": {"type": "object"}},
]


def run(tool: str, arguments: dict[str, Any]) -> Any:
    if tool == "read":
        return "read it"
    if tool == "fail":
        raise Failure(CONTRACT, arguments["code"], "said by the handler")
    if tool == "boom":
        raise RuntimeError("boom, password=hunter2")
    if tool == "count":
        return {"n": arguments.get("n")}
    if tool == "wrong":
        return object()
    raise ValueError(f"Unknown tool: {tool}")


try:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in TOOLS])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        made = run(params.name, params.arguments or {})
        if isinstance(made, dict):
            return types.CallToolResult(content=[], structured_content=made)
        if not isinstance(made, str):
            return made
        return types.CallToolResult(content=[types.TextContent(type="text", text=made)])

    server: Any = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
except ImportError:
    import mcp.types as types1
    from mcp.server.lowlevel import Server as Server1

    server = Server1("low")

    @server.list_tools()
    async def list_tools1() -> list[types1.Tool]:
        return [types1.Tool.model_validate(tool) for tool in TOOLS]

    @server.call_tool()
    async def call_tool1(name: str, arguments: dict[str, Any]) -> Any:
        made = run(name, arguments)
        return [types1.TextContent(type="text", text=made)] if isinstance(made, str) else made


with_contract(server, CONTRACT, audit=AUDIT or False, **OPTIONS)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
