"""Loads that wait at the same time go down together, as saves do: fifty threads that go on are one round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from strata_core.errors import StoreUnavailableError, StrataError
from strata_core.rows import Row

__all__ = ["Loads"]

_MOST: Final = 64
_Waiting = tuple[str, "asyncio.Future[Sequence[Row]]"]


class Loads:
    """Collects the threads that are asked for in one turn of the event loop.

    A load sees whatever was acknowledged before it was asked for.  One that is cancelled takes none of the others with
    it.

    Args:
        read: Reads the latest rows of up to 64 different threads, each with what it builds on.
        start: Runs work that goes on to its end whoever is cancelled.
    """

    def __init__(
        self,
        read: Callable[[Sequence[str]], Awaitable[dict[str, list[Row]]]],
        start: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._read = read
        self._start = start
        self._waiting: list[_Waiting] = []

    async def load(self, thread_id: str) -> Sequence[Row]:
        """Return a thread's latest rows, none for one that does not exist."""
        future: asyncio.Future[Sequence[Row]] = asyncio.get_running_loop().create_future()
        self._waiting.append((thread_id, future))
        if len(self._waiting) == 1:
            self._start(self._run())  # takes its first step at the end of this turn
        return await future

    async def _run(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            threads = list(dict.fromkeys(thread_id for thread_id, future in waiting if not future.done()))
            batches = [threads[at : at + _MOST] for at in range(0, len(threads), _MOST)]
            await asyncio.gather(*(self._answer(batch, waiting) for batch in batches))
        finally:
            for _, future in waiting:
                if not future.done():  # the loop is shutting down: nobody may hang
                    future.cancel()

    async def _answer(self, threads: Sequence[str], waiting: Sequence[_Waiting]) -> None:
        try:
            found = await self._read(threads)
        except Exception as error:  # noqa: BLE001  # handed to whoever asked
            if len(threads) > 1 and isinstance(error, StrataError) and not isinstance(error, StoreUnavailableError):
                for thread_id in threads:  # so that what is damaged fails alone
                    await self._answer([thread_id], waiting)
                return
            failure = error
            _each(threads, waiting, lambda future, _: future.set_exception(_copy(failure)))
        else:
            _each(threads, waiting, lambda future, thread_id: future.set_result(found.get(thread_id, [])))


def _each(
    threads: Sequence[str],
    waiting: Sequence[_Waiting],
    settle: Callable[[asyncio.Future[Sequence[Row]], str], None],
) -> None:
    asked = set(threads)
    for thread_id, future in waiting:
        if thread_id in asked and not future.done():
            settle(future, thread_id)


def _copy(error: Exception) -> Exception:
    """Return an error of its own for each waiter: tracebacks and notes of one are not the other's."""
    if type(error) is not StoreUnavailableError:
        return error
    copy = StoreUnavailableError(str(error), maybe_written=error.maybe_written)
    copy.__cause__ = error.__cause__
    copy.__suppress_context__ = True
    return copy
