"""From a run that tells to a consumer who asks: neither gets far ahead of the other."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from threading import get_ident
from typing import Any, Final, Generic, TypeVar

from strata_core.errors import UsageError
from strata_core.graph._events import RunEvent, RunFinished
from strata_core.graph._results import RunResult

__all__ = ["Channel"]

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")

_under_way: Final[set[asyncio.Task[Any]]] = set()
"""The runs: an event loop itself would forget one that waits for a consumer who was forgotten."""


class Channel(Generic[S]):
    """Does a run in a task of its own, from the first time that somebody asks, and hands over what it tells.

    To tell never waits; the run waits for `room` where it can be interrupted.

    Args:
        work: What to run.
        buffer: How many events may have been told that nobody has asked for, when the run goes on.

    Attributes:
        result: What the run came to; None as long as it runs, and when it did not come to its end.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, RunResult[S]]], buffer: int) -> None:
        self.result: RunResult[S] | None = None
        self._work = work
        self._buffer = buffer
        self._events: deque[RunEvent[S]] = deque()
        self._ahead = 0  # told, less asked for: below 0 while the consumer waits
        self._held_up: list[asyncio.Future[None]] = []
        self._consumer: asyncio.Future[None] | None = None
        self._is_asked = False
        self._is_closed = False
        self._is_over = False
        self._error: BaseException | None = None
        self._task: asyncio.Task[RunResult[S]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    # ------------------------------------------------------------------------------------------------- the run's side

    def tell(self, event: RunEvent[S]) -> None:
        """Hand an event over, from any thread; dropped when the run has ended, or nobody listens any more."""
        if get_ident() == self._thread:
            self._put(event)
        elif self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._put, event)
            except RuntimeError:  # the loop is closed
                return

    def _put(self, event: RunEvent[S]) -> None:
        if not (self._is_closed or self._is_over):
            self._events.append(event)
            self._ahead += 1
            self._wake_consumer()

    async def room(self) -> None:
        """Wait until the consumer has asked for enough of what was told.

        Raises:
            asyncio.CancelledError: It has left; also for a node that has swallowed its cancellation.
        """
        if get_ident() != self._thread:  # the loop of a blocking node: who waits there could not be woken
            return
        while self._ahead >= self._buffer and not (self._is_closed or self._is_over):
            free = asyncio.get_running_loop().create_future()
            self._held_up.append(free)
            await free
        if self._is_closed:
            raise asyncio.CancelledError

    def _let_go_on(self) -> None:
        held_up, self._held_up = self._held_up, []
        for free in held_up:
            if not free.done():
                free.set_result(None)

    # -------------------------------------------------------------------------------------------- the consumer's side

    async def ask(self) -> RunEvent[S]:
        """Return the next event.  Being cancelled here closes the channel.

        Raises:
            StopAsyncIteration: There is none any more.
            UsageError: Somebody else is asking, or the run goes on in another event loop.
            BaseException: What the run raised; once.
        """
        if self._is_asked:
            raise UsageError("somebody waits for the next event already; a stream has one consumer")
        self._require_loop()
        self._is_asked = True
        try:
            if self._task is None and not self._is_closed:
                self._begin()
            self._ahead -= 1
            self._let_go_on()
            while not self._events:
                if self._is_at_its_end:
                    error, self._error = self._error, None
                    raise StopAsyncIteration if error is None else error
                self._consumer = asyncio.get_running_loop().create_future()
                await self._consumer
            return self._events.popleft()
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            self._is_asked = False

    @property
    def _is_at_its_end(self) -> bool:
        """Whether nothing more comes, and nothing goes on: a run that was spoilt leaves its thread in order first."""
        return self._is_over or (self._is_closed and (self._task is None or self._task.done()))

    def _require_loop(self) -> None:
        """Refuse an event loop that could not be woken, or would wait for a task of another."""
        if self._task is None or self._task.done() or self._loop is asyncio.get_running_loop():
            return
        raise UsageError("the run goes on in the event loop in which its stream began; read and leave it there")

    def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._task = self._loop.create_task(self._work())
        _under_way.add(self._task)
        self._task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[RunResult[S]]) -> None:
        _under_way.discard(task)
        if task.cancelled():
            self._error = self._error if self._is_closed else asyncio.CancelledError()
        elif (error := task.exception()) is None:
            self.result = task.result()
            self._put(RunFinished(self.result))
        elif self._is_closed:
            _logger.warning("a run whose stream was left failed: %s", type(error).__name__)
        else:
            self._error = error
        self._is_over = True
        self._let_go_on()
        self._wake_consumer()

    def _wake_consumer(self) -> None:
        if self._consumer is not None and not self._consumer.done():
            self._consumer.set_result(None)

    def _leave(self) -> asyncio.Task[RunResult[S]] | None:
        """Let the run end as if its caller had been cancelled; return it as long as it has not."""
        self._is_closed = True
        self._events.clear()
        if self._task is None or self._task.done():
            return None
        self._task.cancel()
        return self._task

    def spoil(self, error: Exception) -> None:
        """End the run, and let the consumer see an error in place of what was told."""
        self._error = error
        self._leave()

    def leave_soon(self) -> None:
        """Close the channel without waiting, from any thread."""
        if self._loop is not None and not (self._is_closed or self._is_over):
            try:
                self._loop.call_soon_threadsafe(self._leave)
            except RuntimeError:  # the loop was closed, with the run as it stood
                _under_way.difference_update({self._task})

    async def close(self) -> None:
        """End the run if it still goes on, and wait until it has left its thread in order.  Idempotent.

        Raises:
            UsageError: It goes on in another event loop.
        """
        self._require_loop()
        cancelled: asyncio.CancelledError | None = None
        task = self._leave()
        while task is not None and not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
                task.cancel()
        if cancelled is not None:
            raise cancelled
