"""One error contract for every MCP tool failure.

A contract is a file with codes, retry answers, messages and envelope shapes. Put a server under it:

.. code-block:: python

    from mcp.server.fastmcp import FastMCP
    from faultwire import with_contract

    server = with_contract(FastMCP("notes"), "standard")

Everything that decides is the native engine, the same as in Rust and TypeScript.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .alerts import Alerts
from .audit import AuditLog
from .contract import Contract, builtins, redact
from .errors import (
    AuditError,
    ContractError,
    EnvelopeError,
    FaultError,
    FaultwireError,
    InputError,
    InternalError,
    UnknownCodeError,
    UnknownContractError,
)
from .failure import Failure, is_failure
from .fault import Fault
from .reader import Reader, Verdict, verdict

if TYPE_CHECKING:
    from .client import CallFailed, call_tool
    from .tool_manifest import assert_manifest, manifest
    from .mcp import boundary_of, with_contract

__all__ = [
    "Alerts",
    "AuditError",
    "AuditLog",
    "CallFailed",
    "Contract",
    "ContractError",
    "EnvelopeError",
    "Failure",
    "Fault",
    "FaultError",
    "FaultwireError",
    "InputError",
    "InternalError",
    "Reader",
    "UnknownCodeError",
    "UnknownContractError",
    "Verdict",
    "assert_manifest",
    "boundary_of",
    "builtins",
    "call_tool",
    "is_failure",
    "manifest",
    "redact",
    "verdict",
    "with_contract",
]

#: What needs more than the engine is imported when it is used.
LATER = {
    "CallFailed": "client",
    "assert_manifest": "tool_manifest",
    "boundary_of": "mcp",
    "call_tool": "client",
    "manifest": "tool_manifest",
    "with_contract": "mcp",
}


def __getattr__(name: str) -> Any:
    module = LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value
