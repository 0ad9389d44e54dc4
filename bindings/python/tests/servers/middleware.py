"""A server of fastmcp with the boundary as a middleware: `middleware.py CONTRACT AUDIT OPTIONS`."""

from __future__ import annotations

import sys

from fastmcp import FastMCP

from faultwire import standard
from faultwire.fastmcp import ContractMiddleware

server = FastMCP("middle", middleware=[ContractMiddleware(sys.argv[1], audit=sys.argv[2])], mask_error_details=True)


@server.tool
def typed_failure() -> str:
    raise standard.conflict("somebody else was faster")


@server.tool
def boom() -> str:
    raise RuntimeError("password=hunter2")


@server.tool
def fine(count: int) -> int:
    return count


@server.resource("note://today")
def today() -> str:
    raise standard.quota_exceeded("no more notes")


server.run(show_banner=False)
