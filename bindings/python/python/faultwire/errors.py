"""What can go wrong with the engine itself, as exceptions: what is wrong, where, what to do."""

from __future__ import annotations

from typing import Any

__all__ = [
    "AuditError",
    "ContractError",
    "EnvelopeError",
    "FaultError",
    "FaultwireError",
    "InputError",
    "InternalError",
    "UnknownCodeError",
    "UnknownContractError",
]


class FaultwireError(Exception):
    """An error of the engine. ``str()`` says what is wrong, where, and what to do.

    >>> from faultwire import Contract, UnknownCodeError
    >>> try:
    ...     Contract.builtin("workrail").fault({"code": "TIMEOUTS"})
    ... except UnknownCodeError as error:
    ...     print(error.what)
    workrail has no code "TIMEOUTS"; did you mean "TIMEOUT"?
    """

    kind: str = "internal"

    def __init__(
        self,
        what: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        help: str | None = None,
        text: str | None = None,
    ) -> None:
        self.what = what
        self.file = file
        self.line = line
        self.column = column
        self.help = help
        text = text if text is not None else what
        # The text of a contract file's mistakes has the help of each.
        super().__init__(f"{text}\n  help: {help}" if help and help not in text else text)


class ContractError(FaultwireError):
    """A contract file has mistakes. ``file``, ``line`` and ``column`` are those of the first."""

    kind = "contract"


class UnknownContractError(FaultwireError):
    """There is no built-in contract of this name."""

    kind = "unknown_contract"


class UnknownCodeError(FaultwireError):
    """The contract has no such code."""

    kind = "unknown_code"


class FaultError(FaultwireError):
    """The contract does not allow this fault: a delay on a code that is never retried, say."""

    kind = "fault"


class EnvelopeError(FaultwireError):
    """This is not an envelope of the contract."""

    kind = "envelope"


class InputError(FaultwireError):
    """An argument is not what is expected."""

    kind = "input"


class AuditError(FaultwireError):
    """The audit log cannot be opened or written."""

    kind = "audit"


class InternalError(FaultwireError):
    """A bug of the engine. Please report it."""

    kind = "internal"


def of_kind(facts: dict[str, Any]) -> FaultwireError:
    """The exception for an error as the engine writes it."""
    for kind in FaultwireError.__subclasses__():
        if kind.kind == facts["kind"]:
            break
    else:
        kind = InternalError
    return kind(
        facts["what"],
        file=facts.get("file"),
        line=facts.get("line"),
        column=facts.get("column"),
        help=facts.get("help"),
        text=facts.get("text"),
    )
