"""Failures to raise: an exception with a code of a contract, and facts by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Generic

from ._json import lossy
from ._native import call
from ._report import report_text
from .fault import Fault
from .thrown import below, cause_of, code_of, message_of, stack_of, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

    from typing_extensions import TypeVar

    from .contract import Contract

    # Without a parameter it may have any code.
    C = TypeVar("C", bound=str, covariant=True, default=str)
else:
    from typing import TypeVar

    C = TypeVar("C", bound=str, covariant=True)

__all__ = ["Failure", "is_failure"]

#: Replaces a tool in the envelope of a failed start.
STARTUP = "startup"


class Failure(Exception, Generic[C]):
    """A failure with a code of a contract. Raise it anywhere below a boundary.

    A code that the contract does not have, or a fact that the code does not take, is an error here
    and now, not when the failure is answered.

    >>> from faultwire import Contract, Failure
    >>> contract = Contract.builtin("standard")
    >>> failure = Failure(contract, "not_found", "There is no note of this day", details={"day": "monday"})
    >>> str(failure)
    'not_found: There is no note of this day'
    >>> Failure(contract, "not_found", retry_after_ms=50)
    Traceback (most recent call last):
        ...
    faultwire.errors.FaultError: not_found takes no delay: it is never retried
    """

    code: C
    contract: Contract

    def __init__(
        self,
        contract: Contract,
        code: C,
        message: str | None = None,
        *,
        suggestion: str | None = None,
        next: str | None = None,
        details: Any = None,
        cause: BaseException | str | Mapping[str, Any] | None = None,
        data: Any = None,
        tool: str | None = None,
        invariant: str | None = None,
        retry: str | None = None,
        retry_after_ms: int | None = None,
        status: int | None = None,
        rate_limit_reset: str | int | None = None,
        policy_decision: str | None = None,
        session: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        origin: str | None = None,
        outcome: str | None = None,
        condition: str | None = None,
        trace: str | None = None,
        stack: str | None = None,
    ) -> None:
        facts = {
            "code": str(code),
            "condition": condition,
            "message": message,
            "tool": tool,
            "origin": origin,
            "outcome": outcome,
            "retry": retry,
            "retry_after_ms": retry_after_ms,
            "status": status,
            "next": next,
            "suggestion": suggestion,
            "details": details,
            "data": data,
            "invariant": invariant,
            "rate_limit_reset": rate_limit_reset,
            "policy_decision": policy_decision,
            "session": session,
            "meta": meta,
            "trace": trace,
            "stack": stack,
        }
        if isinstance(cause, BaseException):
            self.__cause__ = cause
        elif cause is not None:
            facts["cause"] = lossy(cause)
        self._become(contract, {name: fact for name, fact in facts.items() if fact is not None})

    def _become(self, contract: Contract, facts: Mapping[str, Any]) -> None:
        text = report_text(contract._native, facts)
        # The engine refuses what the contract does not allow.
        call(contract._native.fault, text, None)
        report: dict[str, Any] = json.loads(text)
        self.contract = contract
        self._report = report
        self.code = report["code"]
        super().__init__(f"{self.code}: {self.message}")

    @property
    def message(self) -> str:
        """What the client is told: these words, or the code's own."""
        own = self._report.get("message")
        return str(own if own is not None else self.contract.codes[self.code]["message"])

    @property
    def details(self) -> Any:
        """Structured facts for the client."""
        return self._report.get("details")

    @property
    def data(self) -> Any:
        """What was done before it failed, for the codes that keep it."""
        return self._report.get("data")

    @property
    def retry_after_ms(self) -> int | None:
        """How long to wait before the next attempt."""
        return self._report.get("retry_after_ms")

    def report(self) -> dict[str, Any]:
        """All that is known of it. Its cause is the exception that it was raised from, or that was
        being handled.
        """
        report = dict(self._report)
        if "cause" not in report:
            cause = cause_of(below(self))
            if cause is not None:
                report["cause"] = cause
        return report

    def fault(self, stamp: Mapping[str, Any] | None = None) -> Fault:
        """The fault, to be rendered or recorded without a boundary."""
        return self.contract.fault(self.report(), stamp)

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception crosses processes, as in a pool of workers. Its cause does so as facts.
        return made_again, (type(self), self.contract, self.report())

    @classmethod
    def from_unknown(
        cls,
        contract: Contract,
        error: BaseException | str | Mapping[str, Any],
        *,
        code: str | None = None,
        **facts: Any,
    ) -> Failure[str]:
        """A failure of anything that went wrong. Its own code is kept if the contract has it;
        otherwise it is ``code``, and without one the contract's fallback (K7).

        >>> from faultwire import Contract
        >>> contract = Contract.builtin("standard")
        >>> Failure.from_unknown(contract, OSError("disk on fire"), code="unavailable", tool="read_file")
        Failure('unavailable: disk on fire')
        """
        value, message, own = error, None, None
        if isinstance(error, BaseException):
            value, message, own = value_of(error), message_of(error), code_of(error)
        if isinstance(value, str):
            message = value
        elif value is not None and not isinstance(value, BaseException):
            message = first(value, "message", "human_message", "error") or message
            own = first(value, "code", "error_code") or own
        chosen = next((one for one in (own, code) if one in contract.codes), None)
        known: dict[str, Any] = {"message": message or None, **facts}
        if "cause" not in known:
            known["cause"] = error
        if "stack" not in known and isinstance(error, BaseException):
            known["stack"] = stack_of(error)
        return Failure(contract, str(chosen or contract.describe()["fallback"]), **known)

    @classmethod
    def invariant_violation(
        cls, contract: Contract, invariant: str, *, code: str | None = None, **facts: Any
    ) -> Failure[str]:
        """A failure of an invariant that was violated. Without a code it has the contract's own.

        >>> from faultwire import Contract
        >>> Failure.invariant_violation(Contract.builtin("kaiza"), "ONE_PLAN", message="Two plans").code
        'INVARIANT_VIOLATION'
        """
        chosen = code if code is not None else str(contract._native.invariant)
        return Failure(contract, chosen, **{**facts, "invariant": invariant})

    @classmethod
    def tool_failure(cls, contract: Contract, code: str, **facts: Any) -> Failure[str]:
        """A failure of a tool, whose code is known only at run time."""
        return Failure(contract, code, **facts)

    @classmethod
    def startup_failure(cls, contract: Contract, code: str, **facts: Any) -> Failure[str]:
        """A failure of the start, when there is no tool yet.

        >>> from faultwire import Contract
        >>> failure = Failure.startup_failure(Contract.builtin("kaiza"), "SELF_AUDIT_FAILURE")
        >>> failure.report()["tool"]
        'startup'
        """
        return Failure(contract, code, **{"condition": "bootstrap_failed", **facts, "tool": STARTUP})


def first(value: Any, *names: str) -> str | None:
    """The first of these members that is a text."""
    if not hasattr(value, "get"):
        return None
    return next((value.get(name) for name in names if isinstance(value.get(name), str)), None)


def made_again(kind: type[Failure[str]], contract: Contract, report: Mapping[str, Any]) -> Failure[str]:
    """A failure from another process."""
    failure = kind.__new__(kind)
    failure._become(contract, report)
    return failure


def is_failure(value: object, contract: Contract | None = None, *codes: str) -> TypeGuard[Failure[str]]:
    """Whether something is a failure: of this contract, and of one of these codes, if any are named.

    >>> from faultwire import Contract
    >>> contract = Contract.builtin("standard")
    >>> is_failure(Failure(contract, "not_found"), contract, "not_found", "conflict")
    True
    """
    if not isinstance(value, Failure):
        return False
    is_of_contract = contract is None or value.contract.name == contract.name
    return is_of_contract and (not codes or value.code in codes)
