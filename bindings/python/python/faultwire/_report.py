"""Reports of failures as the text that the engine reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._json import compact, lossy, strict, unfit
from ._native import call

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["report_text"]


def report_text(native: Any, report: Mapping[str, Any]) -> str:
    """The text of a report. Details that are not JSON make it the contract's internal failure, with
    the original message and what is wrong with the details (W5).
    """
    try:
        return compact(report)
    except (TypeError, ValueError, RecursionError):
        pass
    told = dict(report)
    for member in ("details", "data"):
        told[member] = strict(told.get(member))
    why = unfit(told["details"])
    del told["details"]
    if not why:
        # Another member is not JSON, such as a cause: these are made for people, not compared.
        return compact({**lossy(told), "details": strict(report.get("details"))})
    text: str = call(native.without_details, compact(lossy(told)), why)
    return text

