"""Failures of tasks and threads that nobody waits for: recorded with the call that started them, if
that is known.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

from .call import CURRENT, OpenCall

if TYPE_CHECKING:
    from .core import Boundary

__all__ = ["attend"]

#: The loops that are watched already, each with the boundary that records for it.
LOOPS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Boundary] = weakref.WeakKeyDictionary()

#: Before 3.12 a task does not tell its context.
TELLS_CONTEXT = sys.version_info >= (3, 12)

#: Under this name a task remembers its call, before 3.12.
MEMBER = "_faultwire_call"


def attend(boundary: Boundary) -> None:
    """Watches the running loop, once. What was set up before is called as before."""
    loop = asyncio.get_running_loop()
    if loop in LOOPS:
        return
    LOOPS[loop] = boundary
    watch_threads(boundary)
    previous = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        responsible = LOOPS.get(loop)
        if isinstance(error, BaseException) and responsible is not None:
            responsible.left_behind(error, call_of(context))
        if previous is None:
            loop.default_exception_handler(context)
        else:
            previous(loop, context)

    loop.set_exception_handler(handle)
    if not TELLS_CONTEXT:
        remember_calls(loop)


def call_of(context: dict[str, Any]) -> OpenCall | None:
    """The call in whose context something failed."""
    for member in ("task", "future", "handle"):
        holder = context.get(member)
        known = getattr(holder, MEMBER, None)
        if isinstance(known, OpenCall):
            return known
        tell = getattr(holder, "get_context", None)
        values = tell() if tell is not None else getattr(holder, "_context", None)
        if values is not None:
            call = values.get(CURRENT)
            if call is not None:
                return call if isinstance(call, OpenCall) else None
    return None


def remember_calls(loop: asyncio.AbstractEventLoop) -> None:
    """Lets each new task remember its call."""
    previous = loop.get_task_factory()

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        if previous is None:
            task: Any = asyncio.Task(coroutine, loop=loop, **options)
        else:
            task = previous(loop, coroutine, **options)
        call = CURRENT.get()
        if call is not None:
            try:
                setattr(task, MEMBER, call)
            except AttributeError:
                # A task class of another loop may have no room for it.
                pass
        return task

    loop.set_task_factory(factory)


#: The boundary that records failures of threads: the first one.
OF_THREADS: list[weakref.ref[Boundary]] = []


def watch_threads(boundary: Boundary) -> None:
    """Records what ends a thread. No thread tells whose call it was started by."""
    if OF_THREADS:
        OF_THREADS[0] = weakref.ref(boundary)
        return
    OF_THREADS.append(weakref.ref(boundary))
    previous = threading.excepthook

    def hook(ended: Any) -> None:
        responsible = OF_THREADS[0]()
        if responsible is not None and isinstance(ended.exc_value, Exception):
            responsible.left_behind(ended.exc_value, None)
        previous(ended)

    threading.excepthook = hook
