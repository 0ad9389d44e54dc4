"""A server with decorators that fails in every way: `high.py CONTRACT AUDIT OPTIONS`.

It is made with the SDK that is installed: mcp 1.x, mcp 2.x or fastmcp.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import sys
import threading
import time
from typing import Annotated, Any

from pydantic import BaseModel, Field, field_validator

from faultwire import Contract, Failure, boundary_of, with_contract

try:
    from fastmcp import FastMCP as High

    KIND = "fastmcp"
except ImportError:
    try:
        from mcp.server.mcpserver import MCPServer as High  # type: ignore[no-redef]

        KIND = "mcp2"
    except ImportError:
        from mcp.server.fastmcp import FastMCP as High  # type: ignore[no-redef]

        KIND = "mcp1"

if KIND == "mcp1":
    from mcp.shared.exceptions import McpError
    from mcp.types import CallToolResult, ErrorData, TextContent, ToolAnnotations

    def rpc_error(code: int, message: str) -> Exception:
        return McpError(ErrorData(code=code, message=message))

    def failed(text: str) -> Any:
        return CallToolResult(content=[TextContent(type="text", text=text)], isError=True)
else:
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, TextContent, ToolAnnotations

    def rpc_error(code: int, message: str) -> Exception:
        return MCPError(code=code, message=message)

    def failed(text: str) -> Any:
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


NAME, AUDIT, OPTIONS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
CONTRACT = Contract.load(NAME) if NAME.endswith(".toml") else Contract.builtin(NAME)
SECRET = "password=hunter2"

server = High("failing")
read_only = ToolAnnotations(**{"readOnlyHint": True})


class Point(BaseModel):
    x: int
    y: int


class Shape(BaseModel):
    name: str
    corners: list[Point]

    @field_validator("name")
    @classmethod
    def named(cls, name: str) -> str:
        if name == "nobody":
            raise ValueError("nobody is no name")
        return name


@server.tool()
def ok(text: str) -> str:
    return text


@server.tool()
def pid() -> str:
    return str(os.getpid())


@server.tool(annotations=read_only)
async def fail(code: str, message: str | None = None, retry_after_ms: int | None = None) -> str:
    raise Failure(CONTRACT, code, message, retry_after_ms=retry_after_ms)


@server.tool()
async def deep(code: str) -> str:
    async def inner() -> None:
        try:
            raise KeyError("the innermost")
        except KeyError as error:
            raise Failure(CONTRACT, code, "from deep below", details={"depth": 3}) from error

    await asyncio.gather(asyncio.create_task(inner()))
    return "never"


@server.tool()
async def group(code: str) -> str:
    import anyio

    async def one() -> None:
        raise Failure(CONTRACT, code, "in a group")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(anyio.sleep, 5)
    return "never"


@server.tool()
def thread(code: str) -> str:
    raise Failure(CONTRACT, code, "in a thread or not")


@server.tool()
def enoent() -> str:
    return open("/srv/nowhere/notes.txt").read()


@server.tool()
async def boom() -> str:
    raise RuntimeError(f"the frobnicator broke, {SECRET}")


@server.tool()
async def odd(code: str) -> str:
    raise Exception({"code": code, "message": "an object was raised"})


@server.tool()
async def empty() -> str:
    raise ValueError


@server.tool()
async def exits() -> str:
    sys.exit(3)


@server.tool()
async def hangs() -> str:
    await asyncio.sleep(3600)
    return "never"


@server.tool()
async def stubborn() -> str:
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            pass
    return "too late"


@server.tool()
async def blocks(seconds: float) -> str:
    time.sleep(seconds)
    raise RuntimeError("blocked the loop and failed")


@server.tool()
async def cancels_itself() -> str:
    raise asyncio.CancelledError


LATER: set[asyncio.Task[None]] = set()


@server.tool()
async def background() -> str:
    async def later() -> None:
        await asyncio.sleep(0.05)
        raise RuntimeError("failed in the background")

    task = asyncio.create_task(later())
    LATER.add(task)
    task.add_done_callback(LATER.discard)
    return "started"


@server.tool()
async def stray() -> str:
    async def later() -> None:
        raise RuntimeError("failed without a call")

    contextvars.Context().run(lambda: asyncio.get_running_loop().create_task(later()))
    return "started"


@server.tool()
async def stray_thread() -> str:
    def later() -> None:
        raise RuntimeError("failed in a thread")

    threading.Thread(target=later).start()
    return "started"


@server.tool()
async def after_answer() -> str:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        raise RuntimeError("failed after its answer") from None
    return "never"


@server.tool(structured_output=False) if KIND != "fastmcp" else server.tool(output_schema=None)
async def says_error(text: str) -> Any:
    return failed(text)


@server.tool()
async def rpc() -> str:
    raise rpc_error(-32603, "429 Too Many Requests, retry in 5s")


@server.tool()
async def typed(count: int, shape: Shape, ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5) -> str:
    return f"{count} {shape.name} {ratio}"


@server.tool()
async def forbidden_output() -> Point:
    return {"x": "far", "y": 2}  # type: ignore[return-value]


@server.tool()
async def begin_session() -> str:
    return "begun"


@server.tool()
async def end_session() -> str:
    return "ended"


@server.tool()
async def read_notes() -> str:
    return "notes"


@server.tool()
async def write_file(path: str) -> str:
    return f"wrote {path}"


@server.resource("note://today")
def today() -> str:
    raise Failure(CONTRACT, CONTRACT.describe()["fallback"], "no note today")


@server.prompt()
def greeting(name: str) -> str:
    raise RuntimeError("no greeting")


@server.tool()
async def counters() -> dict[str, int]:
    boundary = boundary_of(server)
    return {"undeclared": boundary.undeclared, "mismatched": boundary.mismatched}


if "sessions" not in OPTIONS.pop("with", ["sessions"]):
    remove = server.local_provider.remove_tool if KIND == "fastmcp" else server.remove_tool
    for name in ("begin_session", "end_session"):
        remove(name)

with_contract(server, CONTRACT, audit=AUDIT or False, **OPTIONS)
if KIND == "fastmcp":
    server.run(show_banner=False)
else:
    server.run()
