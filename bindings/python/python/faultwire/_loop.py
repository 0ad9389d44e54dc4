"""From the log's thread to the event loop that waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ._native import _engine, error_of

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Waiter"]


class Waiter:
    """Waits for a callback from another thread. What it waits for happens even if nobody waits any
    more.
    """

    __slots__ = ("_future", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Any] = self._loop.create_future()

    def done(self, answer: Any, error: BaseException | None) -> None:
        """The callback, on any thread."""
        try:
            self._loop.call_soon_threadsafe(self._settle, answer, error)
        except RuntimeError:
            # The loop was closed meanwhile: nobody waits.
            pass

    def _settle(self, answer: Any, error: BaseException | None) -> None:
        if self._future.done():
            return
        if error is None:
            self._future.set_result(answer)
        else:
            self._future.set_exception(error_of(error) if isinstance(error, _engine.EngineError) else error)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._future.__await__()
