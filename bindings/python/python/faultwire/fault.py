"""Faults: failures that a contract has accepted."""

from __future__ import annotations

import json
from typing import Any

from ._native import call

__all__ = ["Fault"]


class Fault:
    """A failure that its contract has accepted: redacted, bounded, stamped. It never changes.

    >>> from faultwire import Contract
    >>> fault = Contract.builtin("owlclaw").fault({"code": "governance.rate_limited", "retry_after_ms": 2000})
    >>> fault.status
    429
    >>> fault.report()["retry"]
    'backoff'
    """

    __slots__ = ("_native",)

    def __init__(self, native: Any) -> None:
        self._native = native

    def render(
        self,
        surface: str = "mcp",
        *,
        profile: str | None = None,
        has_output_schema: bool = False,
        modern: bool = False,
    ) -> str:
        """The exact text of the envelope: ``mcp``, ``http``, or ``result`` for a whole MCP result."""
        text: str = call(self._native.render, surface, profile, has_output_schema, modern)
        return text

    def report(self) -> dict[str, Any]:
        """What a client may know of it."""
        report: dict[str, Any] = json.loads(self._native.report())
        return report

    @property
    def code(self) -> str:
        """Its code."""
        code: str = self.report()["code"]
        return code

    @property
    def status(self) -> int:
        """The HTTP status."""
        status: int = self._native.status
        return status

    def __repr__(self) -> str:
        return f"<Fault {self.code}>"
