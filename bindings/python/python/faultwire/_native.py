"""The native engine. Everything that decides is in it; here its errors become exceptions."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import FaultwireError, of_kind

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    # An import of the package's attribute would not tell a module that is missing.
    import faultwire._engine as _engine
except ImportError as error:
    import platform

    where = f"{sys.platform}-{platform.machine()}, {platform.python_implementation()} {platform.python_version()}"
    if isinstance(error, ModuleNotFoundError) and error.name == f"{__package__}._engine":
        why = f"the package has no native module for this platform ({where})"
    else:
        why = f"the native module does not load on this platform ({where}): {error}"
    raise ImportError(
        f"faultwire cannot start: {why}. Install a wheel for this platform with "
        "`pip install --force-reinstall --only-binary :all: faultwire`; where there is none, "
        "build it with Rust and `pip install --no-binary faultwire faultwire`.",
        name=f"{__package__}._engine",
    ) from error

__all__ = ["_engine", "call", "error_of"]

T = TypeVar("T")


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Calls the engine. Its errors are raised as exceptions of this package."""
    try:
        return function(*arguments)
    except _engine.EngineError as error:
        # The engine's own exception has nothing that this one has not.
        raise error_of(error) from None


def error_of(error: BaseException) -> FaultwireError:
    """The exception for an error of the engine."""
    facts: dict[str, Any] = json.loads(error.args[0])
    return of_kind(facts)
