"""The audit log: durable before anything is acknowledged."""

from __future__ import annotations

import atexit
import json
import os
import weakref
from typing import TYPE_CHECKING, Any

from ._json import compact, lossy
from ._native import _engine, call
from .errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from .fault import Fault

__all__ = ["AuditLog", "Forked"]


class AuditLog:
    """An open audit log. One process writes a log; `faultwire audit verify` checks it.

    >>> import tempfile
    >>> from faultwire import AuditLog, Contract
    >>> fault = Contract.builtin("standard").fault({"code": "not_found", "tool": "read"})
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     log.append_sync(fault, {"request": 7})
    1

    In a coroutine, `append` waits for the disk without blocking the event loop:

    >>> import asyncio
    >>> async def main(directory):
    ...     async with AuditLog.open(directory) as log:
    ...         return await log.append(fault)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     asyncio.run(main(directory))
    1
    """

    def __init__(self, native: Any, directory: str) -> None:
        self._held = Forked(native, f"The audit log in {directory}")
        self.directory = directory

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        holder: str | None = None,
        segment_bytes: int | None = None,
        segment_age_s: int | None = None,
        checkpoint_every: int | None = None,
        fail_open: bool = False,
        clock_ms: int | None = None,
    ) -> AuditLog:
        """Opens the log in a directory, or begins one there.

        With ``fail_open``, failures are answered even while they cannot be recorded. ``clock_ms``
        lets the clock stand still, for tests.
        """
        options = {
            "holder": holder,
            "segment_bytes": segment_bytes,
            "segment_age_s": segment_age_s,
            "checkpoint_every": checkpoint_every,
            "fail_open": fail_open,
            "clock_ms": clock_ms,
        }
        named = {name: value for name, value in options.items() if value is not None}
        path = os.fspath(directory)
        return cls(call(_engine.AuditLog.open, path, compact(named)), path)

    async def append(self, fault: Fault, call: Mapping[str, Any] | None = None) -> int | None:
        """Records a fault. The number of its record comes when it is on disk.

        ``call`` has what is known of the call: ``request``, ``client``, ``arguments`` (of which a
        keyed hash is recorded), ``upstream_code``, ``elapsed_ms``, ``attempt``. The number is None
        if the log fails open and has failed.
        """
        from ._loop import Waiter

        waiter = Waiter()
        run(self._held.get().submit, fault._native, compact(call or {}), waiter.done)
        seq: int | None = await waiter
        return seq

    def append_sync(self, fault: Fault, call: Mapping[str, Any] | None = None) -> int | None:
        """The same without an event loop. Other threads run meanwhile."""
        seq: int | None = run(self._held.get().append, fault._native, compact(call or {}))
        return seq

    async def event(self, name: str, facts: Any = None) -> int | None:
        """Records something that is no failure."""
        from ._loop import Waiter

        waiter = Waiter()
        run(self._held.get().submit_event, name, compact(lossy(facts)), waiter.done)
        seq: int | None = await waiter
        return seq

    def event_sync(self, name: str, facts: Any = None) -> int | None:
        """The same without an event loop."""
        seq: int | None = run(self._held.get().event, name, compact(lossy(facts)))
        return seq

    def entry(self, fault: Fault, call: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The record of a fault as it would be written, without its place in the log."""
        entry: dict[str, Any] = json.loads(run(self._held.get().entry, fault._native, compact(call or {})))
        return entry

    @property
    def id(self) -> str:
        """The log's id."""
        id: str = self._held.get().id
        return id

    def close(self) -> None:
        """Waits for everything that was submitted, and lets go of the files."""
        run(self._held.get().close)

    def __enter__(self) -> AuditLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> AuditLog:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __repr__(self) -> str:
        return f"<AuditLog {self.directory}>"


# `call` is the name of an argument of the methods.
run = call


class Forked:
    """Something that has a thread in this process. A forked child has none: it must not use it, nor
    close it.
    """

    __slots__ = ("__weakref__", "_native", "_what")

    def __init__(self, native: Any, what: str) -> None:
        self._native = native
        self._what = what
        OPEN.add(self)

    def get(self) -> Any:
        """The native part."""
        if self._native is None:
            raise AuditError(
                f"{self._what} was opened before this process was forked",
                help="open a log of its own in the child process, or start processes with the method spawn",
            )
        return self._native

    def abandon(self) -> None:
        """In the child: never to be used or closed again."""
        if self._native is not None:
            self._native.leak()
            self._native = None


#: Everything of this process that a child must not use.
OPEN: weakref.WeakSet[Forked] = weakref.WeakSet()


def abandon_all() -> None:
    for held in list(OPEN):
        held.abandon()


def close_all() -> None:
    """At the end of the process: what was submitted and not waited for is still written."""
    for held in list(OPEN):
        close = getattr(held._native, "close", None)
        if close is not None:
            try:
                close()
            except Exception:
                # The log itself has said on stderr that it failed.
                pass


atexit.register(close_all)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=abandon_all)
