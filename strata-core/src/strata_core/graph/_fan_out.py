"""Doing several things at once, and being through with all of them before going on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

from strata_core.graph._attempt import NodeCancelledError, NodeReturnError
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._inside import LevelFailedError
from strata_core.graph._results import CancelReason, FailureCode
from strata_core.graph._stop import AnyStop, StoppedError

__all__ = ["FanOut"]

R = TypeVar("R")
T = TypeVar("T")


class FanOut(Generic[R]):
    """Runs jobs in tasks of their own; when it is left, whatever has happened, all of them have come to their end.

    The first failure, or being cancelled, cancels all that have begun, and no other one begins.  For the jobs it is
    what a `Stop` is for a run: they are stopped with the run, and when one of them fails.

    Args:
        outer: What stops the level that the jobs belong to.
        name: Names the job of a number, for people.
    """

    __slots__ = ("_active", "_error", "_idle", "_is_aborting", "_job", "_left", "_loop", "_name", "_outer", "_results",
                 "_token", "_unsubscribe")  # fmt: skip

    def __init__(self, outer: AnyStop, name: Callable[[int], str]) -> None:
        self._outer = outer
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._active: set[asyncio.Task[None]] = set()
        self._idle: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._is_aborting = False
        self._token: CancellationToken | None = None
        self._unsubscribe: Callable[[], None] | None = None

    async def run(self, count: int, job: Callable[[int], Coroutine[Any, Any, R]], limit: int | None) -> list[R]:
        """Do a job for each number below `count`, and return what they give, in that order.

        Args:
            count: How many jobs there are.
            job: Does the job of a number.
            limit: How many are under way at most; None for all.

        Raises:
            StoppedError: The run has to stop.
            asyncio.CancelledError: The calling task was cancelled.
            LevelFailedError: A job has failed; of several, the first one.
        """
        self._results: list[Any] = [None] * count
        self._job = job
        self._left: Iterator[int] = iter(range(count))
        for _ in range(count if limit is None else min(limit, count)):
            self._begin_next()
        cancelled: asyncio.CancelledError | None = None
        while self._active:
            self._idle = self._loop.create_future()
            try:
                await self._idle
            except asyncio.CancelledError as error:
                cancelled = error
                self._abort()
        if self._unsubscribe is not None:
            self._unsubscribe()
        if cancelled is not None:
            raise cancelled
        if self._error is not None:
            raise self._error
        return self._results

    def _begin_next(self) -> None:
        for number in self._left:
            task = self._loop.create_task(self._do(number))
            self._active.add(task)
            task.add_done_callback(self._on_done)
            return

    async def _do(self, number: int) -> None:
        try:
            if self.check() is not None:
                raise StoppedError
            self._results[number] = await self._job(number)
        except StoppedError as error:
            self._fail(error)
        except LevelFailedError as error:
            self._fail(error.inside(self._name(number)))
        except Exception as error:  # noqa: BLE001  # raised again where all of them are waited for
            self._fail(self._failed(number, error))
        except asyncio.CancelledError:
            self._fail(self._failed(number, NodeCancelledError("something that it awaited was cancelled")))
        except BaseException as error:
            self._fail(error)
            raise

    def _failed(self, number: int, error: Exception) -> LevelFailedError:
        code = FailureCode.INVALID_STATE if isinstance(error, NodeReturnError) else FailureCode.NODE_FAILED
        return LevelFailedError(code, f"{self._name(number)} failed", error)

    def _fail(self, error: BaseException) -> None:
        if not self._is_aborting:
            self._error = error
            self._abort()

    def _abort(self) -> None:
        self._is_aborting = True
        if self._token is not None:
            self._token.cancel()
        current = asyncio.current_task()
        for task in self._active:
            if task is not current:
                task.cancel()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._active.discard(task)
        if task.cancelled():  # before it had begun
            error = NodeCancelledError("its task was cancelled")
            self._fail(LevelFailedError(FailureCode.NODE_FAILED, "one of its tasks failed", error))
        elif task.exception() is None and not self._is_aborting:
            self._begin_next()
        if not self._active and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    # ---------------------------------------------------------------------------------- what the jobs know of all this

    @property
    def token(self) -> CancellationToken:
        """Tells jobs that they have to stop."""
        if self._token is None:
            self._token = CancellationToken()
            self._unsubscribe = self._outer.token.subscribe(self._token.cancel)
            if self._is_aborting:
                self._token.cancel()
        return self._token

    @property
    def cancelled_from_outside(self) -> bool:
        """Whether a cancellation that arrives at a job now comes from here."""
        return self._is_aborting

    @property
    def abandons(self) -> bool:
        """Whether what cannot be interrupted is not even waited for."""
        return self._outer.abandons

    def check(self) -> CancelReason | None:
        """Return why jobs have to stop, if they have to."""
        return CancelReason.CANCELLED if self._is_aborting else self._outer.check()

    async def guard(self, awaitable: Awaitable[T], *, only_lost: bool = False) -> T:
        """Await something for a job, whose task is cancelled when it has to stop."""
        if not only_lost:
            return await awaitable
        work = asyncio.ensure_future(awaitable)
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError:
                if self.abandons:
                    work.cancel()
                    raise
        return work.result()
