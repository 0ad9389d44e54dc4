"""Waits for a handler, whatever it does."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

__all__ = ["Cancelled", "Ended", "Late", "Raised", "Returned", "watched"]

#: How long a cancelled handler may tidy up before its caller goes on, in seconds.
GRACE = 1.0


class Returned:
    """A handler returned this."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Raised:
    """A handler raised this."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Late:
    """A handler did not end within its deadline."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Cancelled:
    """A handler was cancelled, not by its client."""

    __slots__ = ()


Ended = Returned | Raised | Late | Cancelled


async def watched(
    handler: Callable[[], Awaitable[Any]],
    seconds: float | None,
    after: Callable[[Ended], None],
    begun: Callable[[], bool] | None = None,
) -> Ended:
    """Runs a handler in a task of its own, so that one that cannot be cancelled does not keep its
    client waiting. How it ends when nobody waits any more goes to ``after``. An answer that has
    ``begun`` by then takes as long as it takes.
    """
    loop = asyncio.get_running_loop()
    # The handler's own task sets it: waiting for the task would take another turn of the loop.
    waiter: asyncio.Future[Ended | None] = loop.create_future()
    task = started(loop, settled(handler, waiter))
    if task.done() and not task.cancelled():
        return task.result()
    timer = None if seconds is None else loop.call_later(seconds, expire, waiter)
    try:
        ended = await waiter
        if ended is None and begun is not None and begun():
            await asyncio.wait({task})
            ended = Cancelled() if task.cancelled() else task.result()
    except asyncio.CancelledError:
        task.cancel()
        await unwound(task, after)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    if ended is None:
        task.cancel()
        leave(task, after)
        return Late(seconds or 0.0)
    return ended


def started(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Ended]) -> asyncio.Task[Ended]:
    """A task that, since Python 3.12, runs at once until it has to wait: many handlers never do."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(coroutine, loop=loop, eager_start=True)
    return loop.create_task(coroutine)


def expire(waiter: asyncio.Future[Ended | None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def settled(handler: Callable[[], Awaitable[Any]], waiter: asyncio.Future[Ended | None]) -> Ended:
    ended: Ended
    try:
        ended = Returned(await handler())
    except asyncio.CancelledError:
        if not waiter.done():
            waiter.set_result(Cancelled())
        raise
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        # A handler that exits the program, as an argument parser does, only fails its call.
        ended = Raised(error)
    if not waiter.done():
        waiter.set_result(ended)
    return ended


async def unwound(task: asyncio.Task[Ended], after: Callable[[Ended], None]) -> None:
    """Gives a cancelled handler a moment: what it uses is closed next."""
    import anyio

    with anyio.move_on_after(GRACE, shield=True):
        await asyncio.wait({task})
    leave(task, after)


def leave(task: asyncio.Task[Ended], after: Callable[[Ended], None]) -> None:
    def look(left: asyncio.Task[Ended]) -> None:
        if not left.cancelled() and left.exception() is None:
            after(left.result())

    task.add_done_callback(look)
