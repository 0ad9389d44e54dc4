"""Failures in the order of time, and the pages that they raise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ._json import compact
from ._native import _engine, call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .contract import Contract

__all__ = ["Alerts"]


class Alerts:
    """The alert engine of a contract (O7).

    >>> from faultwire import Alerts, Contract
    >>> alerts = Alerts(Contract.builtin("owlclaw"))
    >>> alerts.observe({"t": 0, "client": "desktop", "code": "auth.forbidden"})
    {'t': 0, 'level': 'critical', 'client': 'desktop', 'code': 'auth.forbidden', 'count': 1}
    >>> alerts.observe({"t": 1, "client": "desktop", "code": "runtime.timeout"}) is None
    True
    """

    __slots__ = ("_native",)

    def __init__(self, contract: Contract, capacity: int | None = None) -> None:
        self._native = call(_engine.Alerts, contract._native, capacity)

    def observe(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """Takes an event, ``{"t": SECONDS, "client": …, "code": …}``; the page that it raises."""
        page = call(self._native.observe, compact(event))
        return None if page is None else dict(json.loads(page))

    @property
    def forgotten(self) -> int:
        """How many pairs of client and code were forgotten early."""
        count: int = self._native.forgotten
        return count
