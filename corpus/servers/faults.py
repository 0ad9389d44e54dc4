"""A server of one tool a fault, on a Python SDK: python faults.py mcp1|mcp2|fastmcp|masked.

It runs in a venv that holds that SDK. See corpus/README.md.
"""

import asyncio
import json
import os
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

FLAVOUR = sys.argv[1]
DOCUMENTS = json.loads(Path(__file__).with_name("documents.json").read_text())

if FLAVOUR == "mcp1":
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError
    from mcp.shared.exceptions import McpError
    from mcp.types import CallToolResult, ErrorData, TextContent
elif FLAVOUR == "mcp2":
    from mcp.server import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.shared.exceptions import MCPError
    from mcp.types import CallToolResult, TextContent
else:
    from fastmcp import FastMCP as Server
    from fastmcp.exceptions import ToolError
    from fastmcp.tools import ToolResult
    from mcp.shared.exceptions import MCPError

server = Server("faults", mask_error_details=True) if FLAVOUR == "masked" else Server("faults")


def error_result(text: str | None, value: dict[str, Any] | None = None) -> Any:
    """A result with isError, in the words of the SDK in use."""
    if FLAVOUR in ("fastmcp", "masked"):
        return ToolResult(content=text or [], structured_content=value, is_error=True)
    content = [TextContent(type="text", text=text)] if text else []
    if FLAVOUR == "mcp1":
        return CallToolResult(content=content, structuredContent=value, isError=True)
    return CallToolResult(content=content, structured_content=value, is_error=True)


def protocol_error(code: int, message: str, data: Any) -> Exception:
    """A JSON-RPC error, in the words of the SDK in use."""
    if FLAVOUR == "mcp1":
        return McpError(ErrorData(code=code, message=message, data=data))
    return MCPError(code, message, data)


def returns(name: str, value: Any) -> None:
    """Add a tool that returns the value as text."""

    def tool() -> str:
        return value if isinstance(value, str) else json.dumps(value)

    plain(name, tool)


def raises(name: str, error: BaseException | type[BaseException]) -> None:
    """Add a tool that raises the error."""

    def tool() -> str:
        raise error

    plain(name, tool)


def reports(name: str, text: str) -> None:
    """Add a tool that fails in the way that the SDK offers for it."""
    raises(name, ToolError(text))


def wire_name(name: str) -> str:
    """The name without vowels: a reply that names its tool must not give the answer away."""
    return re.sub("[aeiou]", "", name)


def plain(name: str, tool: Any) -> None:
    """Add a tool without an output schema."""
    if FLAVOUR in ("fastmcp", "masked"):
        server.tool(name=wire_name(name), output_schema=None)(tool)
    else:
        server.tool(name=wire_name(name), structured_output=False)(tool)


class Value(BaseModel):
    """The structured result of some tools."""

    value: int


class OddError(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")


@server.tool(name=wire_name("ok_structured"))
def ok_structured() -> Value:
    return Value(value=42)


@server.tool(name=wire_name("add"))
def add(a: int, b: int) -> int:
    return a + b


@server.tool(name=wire_name("choose"))
def choose(level: Literal["low", "high"]) -> str:
    return level


@server.tool(name=wire_name("output_mismatch"))
def output_mismatch() -> Value:
    return {"value": "not a number"}  # type: ignore[return-value]


@server.tool(name=wire_name("output_missing"))
def output_missing() -> Value:
    return None  # type: ignore[return-value]


def timeout_real() -> str:
    return urllib.request.urlopen(os.environ["HANG_URL"], timeout=0.2).read().decode()


async def timeout_bare() -> str:
    async with asyncio.timeout(0.05):
        await asyncio.sleep(1)
    return "late"


def connection_refused() -> str:
    return urllib.request.urlopen("http://127.0.0.1:18643/").read().decode()


def upstream_down() -> str:
    return urllib.request.urlopen(os.environ["HANG_URL"].replace("/hang", "/503")).read().decode()


def file_not_found() -> str:
    return Path("/tmp/demo-corpus/missing.txt").read_text()


def permission_denied() -> str:
    return Path("/tmp/demo-corpus/locked.txt").read_text()


def print_to_stdout() -> str:
    print("debug: entering the tool", flush=True)
    return "done"


async def sleep() -> str:
    await asyncio.sleep(1.5)
    return "woke up"


def error_structured() -> Any:
    return error_result('{"code":"OUT_OF_STOCK"}', {"code": "OUT_OF_STOCK", "retryable": False})


def error_structured_only() -> Any:
    return error_result(None, {"reason": "the store is empty"})


def error_empty() -> Any:
    return error_result(None)


for function in (
    timeout_real, timeout_bare, connection_refused, upstream_down, file_not_found, permission_denied,
    print_to_stdout, sleep, error_structured, error_structured_only, error_empty,
):  # fmt: skip
    plain(function.__name__, function)

returns("ok_text", "The answer is 42.")
returns("ok_empty_text", "")
returns("ok_empty_list", [])
returns("ok_null_error", {"ok": True, "error": None, "data": {"id": 7}})
returns("ok_zero_errors", "0 errors, 0 warnings. All 12 checks passed.")
returns("ok_markdown", DOCUMENTS["markdown"])
returns("ok_nested_errors", DOCUMENTS["nested"])
returns("ok_log", DOCUMENTS["log"])
returns("soft_ok_false", {"ok": False, "code": "E17", "message": "The job was rejected"})
returns("soft_success_false", {"success": False, "error": "The record is incomplete"})
returns("soft_status_error", {"status": "error", "message": "The index is broken"})
returns("soft_error_text", "Error: could not write the report")
returns("soft_error_tag", "<error>The page could not be read</error>")
returns("soft_failed_text", "Failed to save the document: the disk is full")
returns("soft_unauthorized", {"success": False, "error": "401 Unauthorized: invalid API key"})
returns("soft_rate_limited", "Error: 429 Too Many Requests. Retry after 20 seconds.")
returns("soft_timeout", {"ok": False, "error": "Request timed out after 30000 ms"})

raises("throw_secret", RuntimeError("Query on postgres://admin:hunter2@127.0.0.1:5432/app failed, key sk-test-4f9a8b7c6d5e"))
raises("throw_empty", RuntimeError())
raises("throw_odd", OddError())
raises("throw_key_error", KeyError("customer_id"))
raises("throw_system_exit", SystemExit(3))
reports("timeout_text", "Request timed out after 5000 ms")
reports("rate_limited", "429 Too Many Requests: rate limit exceeded, retry after 30 s")
reports("unauthorized", "401 Unauthorized: the access token has expired")
reports("forbidden", "403 Forbidden: the role viewer may not delete projects")
reports("budget", "402 Payment Required: monthly budget of 10.00 USD exceeded")
reports("locked", "database is locked")
reports("version_conflict", "409 Conflict: expected version 4, found version 5")
reports("not_ready", "The index is still loading, try again later: service is not ready")
raises("unauthorized_raw", RuntimeError("401 Unauthorized: the access token has expired"))
raises("coded_error", protocol_error(-32001, "Request timed out", {"timeout": 60000}))
raises("coded_domain", protocol_error(4007, "Customer 7 has open invoices", {"open": 3}))

if FLAVOUR in ("fastmcp", "masked"):
    server.run(show_banner=False)
else:
    server.run()
