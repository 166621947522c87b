"""Group commit, once for every backend: commits that wait together go down together, each with its own outcome."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from strata_core.errors import PluginError, StoreBusyError, StoreClosedError, StoreUnavailableError
from strata_core.rows import Batching, Commit, Committed, Refused

__all__ = ["Batcher", "attempt"]

Outcome = Committed | Refused
CommitBatch = Callable[[Sequence[Commit]], Awaitable[Sequence[Outcome]]]

ATTEMPTS: Final = 4
PAUSE: Final = 0.05
"""Seconds before the second attempt; doubles with each further one."""
SHARED: Final = 16
"""Of a batch of at least so many, alone under way where two may be, the first half goes on a turn before the other.

Else all that wait together would go on together for ever: the program idle while the storage works, and the other way
round.  In two groups the one is away while the other goes on.
"""
YIELD_AFTER: Final = 0.005
YIELD_FOR: Final = 0.0003
"""A loop that never sleeps keeps the interpreter lock from a backend's thread: a save beside one took seconds."""


async def attempt(commit: CommitBatch, batch: Sequence[Commit]) -> Sequence[Outcome | BaseException]:
    """Run a batch, and give each commit an outcome or an exception of its own.

    A storage that does not answer is asked again, with the same write IDs, so that a step that had been done is
    recognised; a busy one is not, since the backend has waited already.  A batch that fails for good is narrowed down:
    each commit runs alone, so that a bad one fails alone.
    """
    pause = PAUSE
    maybe_done = False  # by an attempt whose outcome nobody heard
    for left in reversed(range(ATTEMPTS)):
        try:
            return _checked(await commit(batch), batch, maybe_done=maybe_done)
        except StoreUnavailableError as error:
            maybe_done = maybe_done or error.maybe_written
            if not left or isinstance(error, StoreBusyError):
                return await _narrowed(commit, batch, error, maybe_done=maybe_done)
            await asyncio.sleep(pause)
            pause *= 2
        except Exception as error:  # noqa: BLE001  # handed to whoever asked for the commit
            if len(batch) == 1:
                return [_unheard(error) if maybe_done else error]
            return [outcome for item in batch for outcome in await attempt(commit, [item])]
    raise AssertionError("unreachable")


def _checked(outcomes: Sequence[Outcome], batch: Sequence[Commit], *, maybe_done: bool) -> Sequence[Outcome]:
    if len(outcomes) != len(batch):
        raise PluginError(f"the backend gave {len(outcomes)} outcomes for {len(batch)} commits")
    if maybe_done:
        for outcome in outcomes:
            if isinstance(outcome, Refused):
                outcome.maybe_done = True
    return outcomes


async def _narrowed(
    commit: CommitBatch, batch: Sequence[Commit], error: StoreUnavailableError, *, maybe_done: bool
) -> Sequence[Outcome | BaseException]:
    """Run each commit of a batch that failed once more, alone; once two have failed, the storage is away for all."""
    if len(batch) == 1 or isinstance(error, StoreBusyError):
        return [_unheard(error) if maybe_done else _copy(error) for _ in batch]
    outcomes: list[Outcome | BaseException] = []
    failures = 0
    for item in batch:
        if failures < 2:
            try:
                outcomes += _checked(await commit([item]), [item], maybe_done=maybe_done)
                continue
            except StoreUnavailableError as again:
                failures += 1
                outcomes.append(_unheard(again) if maybe_done else again)
            except Exception as again:  # noqa: BLE001  # handed to whoever asked for the commit
                outcomes.append(_unheard(again) if maybe_done else again)
        else:
            outcomes.append(_unheard(error) if maybe_done else _copy(error))
    return outcomes


def _unheard(error: Exception) -> StoreUnavailableError:
    """Return the error of a commit that an earlier attempt may have done, whatever the last one came to."""
    unheard = StoreUnavailableError(str(error), maybe_written=True)
    unheard.__cause__ = error
    return unheard


def _copy(error: StoreUnavailableError) -> StoreUnavailableError:
    """Return an error of its own for each waiter: tracebacks and notes of one are not the other's."""
    copy = type(error)(str(error), maybe_written=error.maybe_written)
    copy.__cause__ = error
    return copy


class Batcher:
    """Collects the commits of one loop turn and runs them in a task of its own.

    So a caller's cancellation never reaches a commit: one that waits is dropped, one under way finishes.  At most one
    commit a thread is under way, which keeps the order of the calls.
    """

    def __init__(self, commit: CommitBatch, batching: Batching) -> None:
        self._commit = commit
        self._batching = batching
        self._loop = asyncio.get_running_loop()
        self._ready: deque[tuple[Commit, asyncio.Future[Outcome]]] = deque()
        # A thread with a commit that is ready or under way, and what waits behind that.
        self._threads: dict[str, deque[tuple[Commit, asyncio.Future[Outcome]]] | None] = {}
        self._collecting = False
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    def submit(self, commit: Commit) -> asyncio.Future[Outcome]:
        """Queue a commit; the future gets its outcome."""
        if self._closed:
            raise StoreClosedError("the store is closed")
        future: asyncio.Future[Outcome] = self._loop.create_future()
        thread_id = commit.thread_id
        if thread_id not in self._threads:
            self._threads[thread_id] = None
            self._ready.append((commit, future))
            self._schedule()
        elif (waiting := self._threads[thread_id]) is None:
            self._threads[thread_id] = deque([(commit, future)])
        else:
            waiting.append((commit, future))
        return future

    async def close(self) -> None:
        """Refuse new commits and wait for those that were submitted."""
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)

    def _schedule(self) -> None:
        if not self._collecting and self._ready and len(self._running) < self._batching.in_flight:
            # The task collects its batch in its first step: at the end of this turn of the loop.
            self._collecting = True
            task = self._loop.create_task(self._run())
            self._running.add(task)
            task.add_done_callback(self._finished)

    def _collect(self) -> list[tuple[Commit, asyncio.Future[Outcome]]]:
        self._collecting = False
        batch: list[tuple[Commit, asyncio.Future[Outcome]]] = []
        room = self._batching.max_bytes
        while self._ready and len(batch) < self._batching.max_items:
            commit, future = self._ready[0]
            if future.done():  # cancelled: nobody waits, and it never left
                self._ready.popleft()
                self._next(commit.thread_id)
                continue
            room -= _size(commit)
            if batch and room < 0:
                break
            batch.append(self._ready.popleft())
        self._schedule()
        return batch

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._schedule()

    def _next(self, thread_id: str) -> None:
        """Make the thread's next commit ready."""
        waiting = self._threads[thread_id]
        if waiting:
            self._ready.append(waiting.popleft())
        else:
            del self._threads[thread_id]

    async def _run(self) -> None:
        batch = self._collect()
        if not batch:
            return
        timer = self._loop.call_later(YIELD_AFTER, self._yield, batch) if self._batching.threaded else None
        try:
            outcomes = await attempt(self._commit, [commit for commit, _ in batch])
            if len(batch) >= SHARED and len(self._running) == 1 < self._batching.in_flight:
                half = len(batch) // 2
                first, outcomes = outcomes[:half], outcomes[half:]
                self._settle(batch[:half], first)
                del batch[:half]
                await asyncio.sleep(0)
            self._settle(batch, outcomes)
            batch.clear()
        finally:
            if timer is not None:
                timer.cancel()
            for commit, future in batch:
                if not future.done():  # the loop is shutting down: nobody may hang
                    future.set_exception(
                        StoreUnavailableError("the event loop stopped during a write", maybe_written=True)
                    )
                self._next(commit.thread_id)
            batch.clear()

    def _settle(
        self, batch: Sequence[tuple[Commit, asyncio.Future[Outcome]]], outcomes: Sequence[Outcome | BaseException]
    ) -> None:
        for (commit, future), outcome in zip(batch, outcomes, strict=True):
            if not future.done():
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
            self._next(commit.thread_id)

    def _yield(self, batch: list[tuple[Commit, asyncio.Future[Outcome]]]) -> None:
        if batch:
            time.sleep(YIELD_FOR)
            self._loop.call_later(YIELD_AFTER, self._yield, batch)  # ends once the batch is back and emptied


def _size(commit: Commit) -> int:
    size = sum(len(content) for _, content in commit.blobs) if commit.blobs else 0
    if commit.row is not None:
        size += len(commit.row.envelope) + len(commit.row.body)
    return size
