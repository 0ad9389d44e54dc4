"""Exceptions as the engine reads them: what was raised, and what is known of it."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Any

from ._json import compact, lossy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .contract import Contract

__all__ = ["alone", "cause_of", "message_of", "stack_of", "thrown"]

#: The engine keeps three causes; one more tells it that there are more.
DEEPEST = 4


def alone(error: BaseException) -> BaseException:
    """The exception in a group that has only one, as task groups raise it; of several, the first
    typed failure, if there is one.
    """
    from .failure import Failure

    while True:
        inner = getattr(error, "exceptions", None)
        if not isinstance(inner, (tuple, list)) or not inner:
            return error
        if len(inner) > 1:
            failures = (alone(one) for one in inner)
            return next((one for one in failures if isinstance(one, Failure)), error)
        error = inner[0]


def message_of(error: BaseException) -> str | None:
    """The words of an exception. The text of a `KeyError` is only the key."""
    if isinstance(error, KeyError) and error.args:
        return f"KeyError: {error.args[0]!r}"
    try:
        return str(error) or None
    except Exception:
        return None


def code_of(error: BaseException) -> str | int | None:
    """Its own code: the name of a system error, otherwise an attribute."""
    if isinstance(error, OSError) and error.errno is not None:
        return errno.errorcode.get(error.errno)
    for name in ("code", "error_code", "sqlstate", "pgcode"):
        code = getattr(error, name, None)
        if isinstance(code, (str, int)) and not isinstance(code, bool):
            return code
    return None


def status_of(error: BaseException) -> int | None:
    """The HTTP status that it carries, as the exceptions of clients do."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool):
                return int(status)
    return None


def below(error: BaseException) -> BaseException | None:
    """What was underneath: said with ``from``, or handled when it was raised."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def cause_of(error: BaseException | None, depth: int = 0) -> dict[str, Any] | None:
    """An exception and those underneath (K4)."""
    if error is None or depth >= DEEPEST:
        return None
    facts: dict[str, Any] = {"message": message_of(error), "code": code_of(error)}
    facts["name"] = type(error).__name__
    inner = cause_of(below(error), depth + 1)
    return {**facts, "cause": inner} if inner else facts


def stack_of(error: BaseException) -> str:
    """Where it was raised, outermost frame first, as Python prints it but without the source. It is
    for the record; an envelope has it only where the contract shows stacks.
    """
    lines = [f"{type(error).__name__}: {message_of(error) or ''}".rstrip(": ")]
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        lines.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}')
        trace = trace.tb_next
    return "\n".join(lines)


def thrown(
    error: BaseException,
    contract: Contract,
    *,
    issues: Iterable[Mapping[str, Any]] | None = None,
    context: Mapping[str, Any] | None = None,
) -> str:
    """What was raised, as the engine reads it."""
    from .failure import Failure

    error = alone(error)
    facts: dict[str, Any] = {"context": dict(context)} if context else {}
    facts["stack"] = stack_of(error)
    if isinstance(error, Failure) and error.contract.name == contract.name:
        facts["fault"] = error.report()
        return compact(facts)
    if issues is not None:
        facts["issues"] = [
            {"path": lossy(issue.get("loc", [])), "message": issue.get("msg", ""), "type": issue.get("type", "")}
            for issue in issues
        ]
    value = value_of(error)
    if value is not None:
        facts["value"] = value
        return compact(facts)
    facts.update(name=name_of(error), message=message_of(error), code=code_of(error), status=status_of(error))
    facts["cause"] = cause_of(below(error))
    details = getattr(error, "details", None)
    if isinstance(details, (dict, list)):
        facts["details"] = lossy(details)
    return compact({name: fact for name, fact in facts.items() if fact is not None})


def name_of(error: BaseException) -> str:
    """The name of its class, with its module if that tells more."""
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def value_of(error: BaseException) -> Any:
    """An object that was raised as the only argument of a plain exception: Python raises nothing
    but exceptions.
    """
    if type(error) in (Exception, RuntimeError, ValueError) and len(error.args) == 1:
        value = error.args[0]
        if isinstance(value, dict):
            return lossy(value)
    return None


def raised_in(error: BaseException, packages: frozenset[str]) -> bool:
    """Whether code of these packages raised it: the last frame of its traceback is theirs."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    return package_of(trace.tb_frame) in packages


def frames_of(error: BaseException) -> list[tuple[str, str]]:
    """The packages and functions of its traceback, outermost first."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((package_of(trace.tb_frame), trace.tb_frame.f_code.co_name))
        trace = trace.tb_next
    return frames


def package_of(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_shutdown(error: BaseException) -> bool:
    """Whether it ends the program and not only a call."""
    return isinstance(error, (KeyboardInterrupt, GeneratorExit)) or sys.is_finalizing()
