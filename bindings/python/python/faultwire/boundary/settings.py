"""Options of a boundary, and where its log is."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .._json import compact
from ..audit import AuditLog
from ..contract import Contract
from ..errors import AuditError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Session = Mapping[str, str] | Callable[[], Mapping[str, str]]

__all__ = ["Options", "contract_of", "open_audit", "settings_text"]

#: Of one name, so many processes of a machine have a log each.
MOST_LOGS = 64


class Options(TypedDict, total=False):
    """Options of a boundary. All may be left out."""

    #: An open log, a directory for one, or False for none: then a failure leaves no durable record.
    #: By default the log is in ``$XDG_STATE_HOME/faultwire/audit/NAME``.
    audit: AuditLog | str | os.PathLike[str] | Literal[False]
    #: The deadline of a call in seconds; a minute by default, None for no deadline.
    timeout: float | None
    #: The profile of the contract.
    profile: str
    #: Facts of the session (id, role, workspace_root, phase, plan_hash), or a function that knows them.
    session: Session
    #: Facts for every call: tool_version, mode, approval_mode.
    meta: Mapping[str, Any]
    #: What happens to a result that its tool's output schema forbids.
    output: Literal["off", "warn", "enforce"]
    #: What happens to arguments that the tool's schema forbids and the SDK accepts.
    arguments: Literal["off", "warn", "enforce"]
    soft_failures: Literal["off", "record", "auto", "rewrite"]
    #: Kinds of text that clients see although they did not send them: paths, addresses, frames, personal.
    keep: Iterable[str]
    #: The codes that each tool may answer, or all that the manifest says of it.
    codes: Mapping[str, Any]
    #: Whether a code that a tool does not declare becomes an internal failure.
    strict: bool


def contract_of(contract: Contract | str | os.PathLike[str]) -> Contract:
    """A contract, the name of a built-in one, or the path of a file."""
    if isinstance(contract, Contract):
        return contract
    name = os.fspath(contract)
    is_path = not isinstance(contract, str) or name.endswith(".toml")
    return Contract.load(name) if is_path else Contract.builtin(name)


def settings_text(options: Options) -> str:
    """The part of the options that the engine decides by."""
    settings: dict[str, Any] = {}
    for name in ("profile", "meta", "output", "arguments", "soft_failures", "strict"):
        if options.get(name) is not None:
            settings[name] = options.get(name)
    session = options.get("session")
    if session is not None and not callable(session):
        settings["session"] = dict(session)
    settings["keep"] = list(options.get("keep", ()))
    settings["codes"] = {tool: codes_of(declared) for tool, declared in options.get("codes", {}).items()}
    known = set(Options.__annotations__)
    for name in options:
        if name not in known:
            raise InputError(f"unknown option {name}", help=f"use {', '.join(sorted(known))}")
    return compact(settings)


def codes_of(declared: Any) -> list[str]:
    codes = declared.get("codes", ()) if hasattr(declared, "get") else declared
    return [str(getattr(code, "value", code)) for code in codes]


def open_audit(audit: Any, name: str) -> AuditLog | None:
    """The log of a server of this name. If another process has it, the next number is tried."""
    if audit is False:
        return None
    if isinstance(audit, AuditLog):
        return audit
    if audit is not None:
        return AuditLog.open(audit)
    directory = os.path.join(state_home(), "faultwire", "audit")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "server"
    for number in range(1, MOST_LOGS + 1):
        try:
            return AuditLog.open(os.path.join(directory, safe if number == 1 else f"{safe}-{number}"))
        except AuditError as error:
            if " is in use by " not in error.what:
                raise
    raise AuditError(
        f"{directory}: {MOST_LOGS} processes write logs of the name {safe}",
        help="name a directory with the option audit",
    )


def state_home() -> str:
    """Where programs keep what they have to remember."""
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    home = os.environ.get("XDG_STATE_HOME", "")
    return home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".local", "state")
