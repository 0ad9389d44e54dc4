"""The client's side: what a failing answer says, and whether to call again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ._json import compact
from ._native import _engine, call
from .contract import Contract, context_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Reader", "Verdict", "verdict"]


class Verdict:
    """What a client can tell of a failure, and what to do about it."""

    __slots__ = (
        "action",
        "category",
        "code",
        "contract",
        "delay_ms",
        "fault",
        "incident",
        "max_delay_ms",
        "message",
        "reason",
        "retry",
        "tool_failure_class",
    )

    def __init__(self, facts: Mapping[str, Any]) -> None:
        #: The code, where there is one.
        self.code: str | None = facts["code"]
        #: The contract that it is of, if it is known.
        self.contract: str | None = facts["contract"]
        self.category: str | None = facts["category"]
        #: The server's words.
        self.message: str | None = facts["message"]
        #: The id to ask support with.
        self.incident: str | None = facts["incident"]
        #: Whether to send the call again.
        self.retry: bool = facts["retry"]
        #: After how long.
        self.delay_ms: int | None = facts["delay_ms"]
        self.max_delay_ms: int | None = facts["max_delay_ms"]
        #: Why, or why not.
        self.reason: str = facts["reason"]
        #: What to do instead, or until then.
        self.action: str = facts["action"]
        #: ``capability``, ``reliability`` or ``governance``, where the result's ``_meta`` says so.
        self.tool_failure_class: str | None = facts["class"]
        #: The whole report.
        self.fault: dict[str, Any] = facts["fault"]

    def __repr__(self) -> str:
        answer = f"retry in {self.delay_ms} ms" if self.retry else f"do not retry: {self.reason}"
        return f"<Verdict {self.code}: {answer}>"


class Reader:
    """Reads failures of these contracts; without any, of all that are built in.

    >>> from faultwire import Contract, Reader
    >>> result = Contract.builtin("owlclaw").fault({"code": "governance.rate_limited",
    ...     "retry_after_ms": 2000}).render("result")
    >>> Reader().verdict(result)
    <Verdict governance.rate_limited: retry in 2000 ms>
    """

    __slots__ = ("_native",)

    def __init__(self, contracts: Iterable[Contract] | None = None) -> None:
        if contracts is None:
            self._native = _engine.Reader.builtin()
        else:
            self._native = _engine.Reader([contract._native for contract in contracts])

    def verdict(
        self,
        result: Any,
        *,
        attempt: int = 1,
        read_only: bool = False,
        idempotent: bool = False,
        budget: int | None = None,
        stamp: Mapping[str, Any] | None = None,
    ) -> Verdict | None:
        """What to do about a result, a JSON-RPC error, or the exception that an SDK makes of one.
        None for a success.

        A tool that may have run is called again only if it is ``read_only`` or ``idempotent`` (A7).
        """
        context = context_of(attempt, read_only, idempotent, budget)
        named = None if stamp is None else compact(stamp)
        told = call(self._native.verdict, reply_text(result), context, named)
        return None if told is None else Verdict(json.loads(told))


def reply_text(result: Any) -> str:
    """A result of any SDK as JSON."""
    if isinstance(result, (bytes, bytearray)):
        return result.decode()
    if isinstance(result, str):
        return result
    # The errors of both SDKs hold what the server sent.
    error = getattr(result, "error", None) if isinstance(result, BaseException) else None
    dumped = getattr(error if error is not None else result, "model_dump_json", None)
    if dumped is not None:
        text: str = dumped(by_alias=True, exclude_none=True)
        return text
    return compact(result)


#: Of all built-in contracts; made when it is needed.
READER: Reader | None = None


def verdict(
    result: Any,
    *,
    attempt: int = 1,
    read_only: bool = False,
    idempotent: bool = False,
    budget: int | None = None,
    contracts: Iterable[Contract] | None = None,
) -> Verdict | None:
    """What to do about a result; see `Reader.verdict`. Without contracts, all built-in ones are known.

    >>> verdict({"content": [{"type": "text", "text": "42"}]}) is None
    True
    """
    global READER
    if contracts is None:
        reader = READER = READER or Reader()
    else:
        reader = Reader(contracts)
    return reader.verdict(result, attempt=attempt, read_only=read_only, idempotent=idempotent, budget=budget)
