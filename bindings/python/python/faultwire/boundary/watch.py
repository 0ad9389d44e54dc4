"""Waits for a handler, whatever it does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
    task = asyncio.ensure_future(settled(handler))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done and begun is not None and begun():
            done, _ = await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await ended(task, after)
        raise
    if not done:
        task.cancel()
        leave(task, after)
        return Late(seconds or 0.0)
    return Cancelled() if task.cancelled() else task.result()


async def settled(handler: Callable[[], Awaitable[Any]]) -> Ended:
    try:
        return Returned(await handler())
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:
        # A handler that exits the program, as an argument parser does, only fails its call.
        return Raised(error)


async def ended(task: asyncio.Future[Ended], after: Callable[[Ended], None]) -> None:
    """Gives a cancelled handler a moment: what it uses is closed next."""
    import anyio

    with anyio.move_on_after(GRACE, shield=True):
        await asyncio.wait({task})
    leave(task, after)


def leave(task: asyncio.Future[Ended], after: Callable[[Ended], None]) -> None:
    def look(left: asyncio.Future[Ended]) -> None:
        if not left.cancelled() and left.exception() is None:
            after(left.result())

    task.add_done_callback(look)
