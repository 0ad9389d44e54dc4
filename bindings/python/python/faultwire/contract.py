"""Contracts: codes, envelopes, and the rules that connect them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ._json import compact
from ._native import _engine, call
from ._report import report_text
from .fault import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Contract", "builtins", "redact"]

#: A line of a server may have this many bytes.
MOST = 16 * 1024 * 1024


class Contract:
    """A loaded contract. It never changes.

    >>> from faultwire import Contract
    >>> contract = Contract.builtin("workrail")
    >>> contract.fault({"code": "TIMEOUT"}).render()
    '{"code":"TIMEOUT","message":"The operation timed out","retry":{"kind":"retryable_immediate"}}'
    >>> contract.codes["TIMEOUT"]["retryable"]
    True
    """

    __slots__ = ("__weakref__", "_codes", "_description", "_native", "_source", "name", "version")

    def __init__(self, native: Any, source: tuple[str, ...]) -> None:
        self._native = native
        self._source = source
        self._codes: dict[str, dict[str, Any]] | None = None
        self._description: dict[str, Any] = json.loads(native.describe())
        self.name: str = self._description["name"]
        self.version: str = self._description["version"]

    @classmethod
    def builtin(cls, name: str) -> Contract:
        """A contract that comes with the package: `builtins()` lists them.

        >>> Contract.builtin("standart")
        Traceback (most recent call last):
            ...
        faultwire.errors.UnknownContractError: standart: unknown contract
          help: did you mean "standard"?
        """
        known = KNOWN.get(name)
        if known is None:
            known = KNOWN[name] = cls(call(_engine.Contract.builtin, name), ("builtin", name))
        return known

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Contract:
        """The contract in a file. A mistake in it is a `ContractError` with its line."""
        file = os.fspath(path)
        with open(file, encoding="utf-8") as source:
            return cls.parse(file, source.read())

    @classmethod
    def parse(cls, name: str, text: str) -> Contract:
        """The contract in the text of a file; the name is used in errors."""
        return cls(call(_engine.Contract.load, name, text), ("parse", name, text))

    @property
    def codes(self) -> Mapping[str, dict[str, Any]]:
        """Its codes by their names: each is a row of the contract."""
        if self._codes is None:
            self._codes = {row["id"]: row for row in self._description["codes"]}
        return self._codes

    def describe(self) -> dict[str, Any]:
        """Everything in it, as ``faultwire contract show --json`` prints it."""
        described: dict[str, Any] = json.loads(self._native.describe())
        return described

    def fault(self, report: Mapping[str, Any], stamp: Mapping[str, Any] | None = None) -> Fault:
        """The fault of a report. Only ``code`` is required.

        ``stamp`` sets the moment and the random number, for tests and replays:
        ``{"now_ms": …, "random": …}``.
        """
        named = None if stamp is None else compact(stamp)
        return Fault(call(self._native.fault, report_text(self._native, report), named))

    def decode(
        self, envelope: str | bytes, *, surface: str | None = None, profile: str | None = None
    ) -> dict[str, Any]:
        """The report in an envelope: of the surface ``mcp``, ``http`` or ``result``, or of the
        first that fits.

        >>> Contract.builtin("context-resolve").decode(
        ...     '{"error":{"code":"io_error","message":"I/O error occurred"}}')["code"]
        'io_error'
        """
        raw = envelope.encode() if isinstance(envelope, str) else envelope
        report: dict[str, Any] = json.loads(call(self._native.decode, raw, surface, profile))
        return report

    def classify(
        self,
        line: str | bytes,
        *,
        call: Mapping[str, Any] | None = None,
        why: bool = False,
        limit: int = MOST,
    ) -> dict[str, Any]:
        """What a line of a server is: a failure with its code, or none.

        ``call`` is the request that it answers; with ``why`` the answer says which rules were tried.
        """
        raw = line.encode() if isinstance(line, str) else line
        request = None if call is None else compact(call)
        judged: dict[str, Any] = json.loads(run(self._native.classify, raw, limit, request, why))
        return judged

    def redact(self, text: str, *, keep: Iterable[str] = ()) -> str:
        """The text without what a client must not see, by the shared rules and the contract's own."""
        safe: str = call(self._native.redact, text, list(keep))
        return safe

    def retry(
        self,
        envelope: str | bytes,
        *,
        attempt: int = 1,
        read_only: bool = False,
        idempotent: bool = False,
        budget: int | None = None,
        surface: str | None = None,
        stamp: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Whether and when to send a call again whose answer was this envelope.

        >>> contract = Contract.builtin("workrail")
        >>> envelope = contract.fault({"code": "TOKEN_SESSION_LOCKED"}).render()
        >>> contract.retry(envelope)["delay_ms"]
        1000
        """
        raw = envelope.encode() if isinstance(envelope, str) else envelope
        context = context_of(attempt, read_only, idempotent, budget)
        named = None if stamp is None else compact(stamp)
        verdict: dict[str, Any] = json.loads(call(self._native.retry, raw, surface, context, named))
        return verdict

    def shows_stack(self) -> bool:
        """Whether envelopes show stacks here and now, by the contract's own switch (K2)."""
        shows: bool = self._native.shows_stack(os.environ.get)
        return shows

    def __repr__(self) -> str:
        return f"<Contract {self.name} {self.version}>"

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return made_again, self._source


#: The built-in contracts that were asked for: each is read once.
KNOWN: dict[str, Contract] = {}

# `call` is the name of an option of `classify`.
run = call


def made_again(how: str, *source: str) -> Contract:
    """A contract from another process."""
    made: Contract = getattr(Contract, how)(*source)
    return made


def context_of(attempt: int, read_only: bool, idempotent: bool, budget: int | None) -> str:
    """What a decision depends on, as the engine reads it."""
    context = {"attempt": attempt, "read_only": read_only, "idempotent": idempotent}
    return compact({**context, "budget": budget})


def builtins() -> list[str]:
    """The names of the built-in contracts.

    >>> builtins()
    ['standard', 'kaiza', 'tuitbot', 'workrail', 'context-resolve', 'owlclaw']
    """
    names: list[str] = _engine.builtins()
    return names


def redact(text: str, *, keep: Iterable[str] = ()) -> str:
    """The text without credentials, and without paths, addresses, frames and personal data unless
    they are kept by name.

    >>> redact("open /srv/a.md with password=hunter2", keep=["paths"])
    'open /srv/a.md with password=[redacted]'
    """
    return call(_engine.redact, text, list(keep))
