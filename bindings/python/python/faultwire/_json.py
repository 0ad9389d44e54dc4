"""Python values as the JSON text that the engine reads."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["compact", "lossy", "strict", "unfit"]

# A deeper value is not JSON that anybody means; the engine's own bounds are lower.
DEEPEST = 128


def compact(value: Any) -> str:
    """The text of a value that is JSON already.

    Unpaired surrogates, as in names of files that are not UTF-8, are replaced: no JSON has them.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def strict(value: Any) -> Any:
    """Objects with ``model_dump`` (pydantic) as JSON; everything else as it is."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) and not isinstance(value, type) else value


def unfit(value: Any) -> list[str]:
    """Everything in a value that is not JSON (W5).

    >>> unfit({"ratio": float("nan"), "when": object()})
    ['$.ratio: NaN is no JSON number', '$.when: object is not JSON']
    """
    found: list[str] = []
    walk(value, "$", 0, found)
    return found


def walk(value: Any, path: str, depth: int, found: list[str]) -> None:
    if depth > DEEPEST:
        found.append(f"details are nested deeper than {DEEPEST} levels")
        return
    if value is None or isinstance(value, (str, bool, int)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            name = "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
            found.append(f"{path}: {name} is no JSON number")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(key, str):
                walk(inner, f"{path}.{key}", depth + 1, found)
            else:
                found.append(f"{path}: a key is {type(key).__name__}, and JSON has only strings")
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            walk(inner, f"{path}[{index}]", depth + 1, found)
    else:
        found.append(f"{path}: {type(value).__name__} is not JSON")


def lossy(value: Any, depth: int = 0) -> Any:
    """A value as JSON whatever it is: what JSON cannot hold becomes its text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= 16:
        return "…"
    if isinstance(value, dict):
        return {str(key): lossy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [lossy(inner, depth + 1) for inner in value]
    try:
        dumped = strict(value)
        return str(value) if dumped is value else lossy(dumped, depth + 1)
    except Exception:
        return type(value).__name__
