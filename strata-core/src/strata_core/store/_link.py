"""The opened backend, and what every call checks before it uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from strata_core.capabilities import Capability
from strata_core.errors import (
    ConflictError,
    LeaseHeldError,
    LeaseLostError,
    ReadOnlyError,
    StoreBusyError,
    StoreClosedError,
    StrataError,
    UnsupportedError,
    UsageError,
)
from strata_core.options import Setup
from strata_core.rows import NOTHING, Commit, Committed, Refusal, Refused, RowBackend
from strata_core.store._batcher import Batcher, attempt

__all__ = ["Link", "refusal_error"]

T = TypeVar("T")


class Link:
    """Owns the life of a backend: opens and closes it, batches its commits, guards its use."""

    def __init__(self, backend: RowBackend, *, read_only: bool, setup: Setup) -> None:
        self.backend = backend
        self.read_only = read_only
        self._setup = setup
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._batcher: Batcher | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        if self._loop is not None:
            raise UsageError("the store is open already")
        try:
            await self.backend.open(read_only=self.read_only, setup=self._setup)
        except BaseException:
            await asyncio.shield(self.backend.close())
            raise
        if self.backend.batching is not None and not self.read_only:
            self._batcher = Batcher(self.backend.commit, self.backend.batching)
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    async def close(self) -> None:
        if self._loop is None:
            return
        self._loop = None
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
            if self._batcher is not None:
                await self._batcher.close()
        finally:
            self._is_closed = True
            await asyncio.shield(self.backend.close())

    def check_readable(self) -> None:
        """Raise unless the store is open and this is its event loop."""
        if self._loop is None:
            raise StoreClosedError("the store is not open; use it inside 'async with'")
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError("the store belongs to the event loop that opened it; open another one here")

    def check_writable(self) -> None:
        """Raise unless the store is open for writing and this is its event loop."""
        self.check_readable()
        if self.read_only:
            raise ReadOnlyError("the store was opened read-only")

    def require(self, capability: Capability) -> None:
        """Raise unless the backend declares the capability."""
        if capability not in self.backend.capabilities:
            raise UnsupportedError(
                capability, f"{type(self.backend).__name__} does not declare the capability {capability.value!r}"
            )

    def submit(self, commit: Commit) -> Awaitable[Committed | Refused]:
        """Hand a commit to the backend, together with others that wait."""
        if self._is_closed:
            raise StoreClosedError("the store is closed")
        if self._batcher is not None:
            return self._batcher.submit(commit)
        return self._alone(commit)

    async def _alone(self, commit: Commit) -> Committed | Refused:
        outcome = (await attempt(self.backend.commit, [commit]))[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that must not depend on the caller; `close` waits for it.  Its errors are nobody's."""

        async def run() -> None:
            with suppress(StrataError):
                await work

        self._start(run())

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work that goes on to its end when the caller is cancelled; `close` waits for it."""
        return await asyncio.shield(self._start(work))

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def refusal_error(refused: Refused, thread_id: str) -> StrataError:
    """Return the port's error for a refused commit."""
    head = refused.head
    latest = None if head is None or head.sequence == NOTHING else head.sequence
    if refused.why is Refusal.LOST:
        return LeaseLostError(thread_id, latest, "is not held by this lease any more")
    if refused.why is Refusal.HELD:
        return LeaseHeldError(thread_id, latest, "" if head is None else head.owner)
    if refused.why is Refusal.CLOSING:
        return StoreBusyError(f"thread {thread_id!r} is being purged")
    where = "has no checkpoint" if latest is None else f"has moved on to #{latest}"
    return ConflictError(thread_id, latest, where)
