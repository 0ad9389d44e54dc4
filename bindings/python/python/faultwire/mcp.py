"""The boundary for servers of the official SDK, `mcp` 1.x and 2.x, and of `fastmcp`."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from .boundary.core import Boundary
from .boundary.settings import Options
from .errors import InputError

if TYPE_CHECKING:
    import os
    from typing_extensions import Unpack

    from .contract import Contract

__all__ = ["boundary_of", "with_contract"]

S = TypeVar("S")

BOUNDARIES: weakref.WeakKeyDictionary[Any, Boundary] = weakref.WeakKeyDictionary()


def with_contract(
    server: S, contract: Contract | str | os.PathLike[str] = "standard", **options: Unpack[Options]
) -> S:
    """Puts a server under a contract: whatever its handlers do, each failure is recorded and then
    sent as one envelope. Successes pass as they are. The server is changed, and returned.

    The server is a `FastMCP`, an `MCPServer`, or a low-level `Server`; the contract is one, the name
    of a built-in one, or the path of a file. For the options see `faultwire.boundary.Options`.

    .. code-block:: python

        server = with_contract(FastMCP("notes"), "standard")
    """
    if server in BOUNDARIES:
        raise InputError("this server has a boundary already", help="call with_contract once for each server")
    install = installer_of(server)
    name = getattr(server, "name", None)
    boundary = Boundary(contract, name=name if isinstance(name, str) else "server", options=options)
    install(server, boundary)
    BOUNDARIES[server] = boundary
    return server


def boundary_of(server: Any) -> Boundary:
    """The boundary of a server: its contract, its log, its counters."""
    boundary = BOUNDARIES.get(server)
    if boundary is None:
        raise InputError("this server has no boundary", help="call with_contract first")
    return boundary


def installer_of(server: Any) -> Any:
    """The function that knows this kind of server."""
    if type(server).__module__.partition(".")[0] == "fastmcp" or hasattr(server, "add_middleware"):
        from .fastmcp import install as for_fastmcp

        return for_fastmcp
    low = getattr(server, "_lowlevel_server", server)
    if hasattr(low, "middleware") and hasattr(low, "get_request_handler"):
        from .boundary.mcp2 import install as for_mcp2

        return for_mcp2
    low = getattr(server, "_mcp_server", server)
    if isinstance(getattr(low, "request_handlers", None), dict):
        from .boundary.mcp1 import install as for_mcp1

        return for_mcp1
    raise InputError(
        f"{type(server).__module__}.{type(server).__qualname__} is no MCP server that is known",
        help="give a FastMCP, an MCPServer, or a low-level Server of mcp 1.x or 2.x",
    )
