"""The opened backend, and what every call checks before it uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, TypeVar

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

_logger: Final = logging.getLogger("strata_core.store")


class Gate:
    """Counts the calls of a store that go on: ``with link.writing: ...``."""

    __slots__ = ("_link", "_writes")

    def __init__(self, link: Link, *, writes: bool) -> None:
        self._link = link
        self._writes = writes

    def __enter__(self) -> None:
        """Count a call in, or say why it cannot be made."""
        link = self._link
        if link.loop is None or link.is_busy:
            raise StoreClosedError("the store is not open; use it inside 'async with'")
        if asyncio.get_running_loop() is not link.loop:
            raise UsageError("the store belongs to the event loop that opened it; open another one here")
        if self._writes and link.read_only:
            raise ReadOnlyError("the store was opened read-only")
        link.calls += 1

    def __exit__(self, *_: object) -> None:
        """Count a call out."""
        link = self._link
        link.calls -= 1
        if not link.calls and link.idle is not None:
            link.idle.set_result(None)
            link.idle = None


class Link:
    """Owns the life of a backend: opens and closes it, batches its commits, guards its use.

    Attributes:
        backend: The backend.
        read_only: Whether writes are refused.
        loop: The event loop that opened it; None when it is not open.
        is_busy: Whether it is being opened or closed, or is closed.
        calls: How many calls go on.
        idle: Who waits until none does.
        reading: Stands around every call that reads.
        writing: Stands around every call that writes.
    """

    def __init__(self, backend: RowBackend, *, read_only: bool, setup: Setup) -> None:
        self.backend = backend
        self.read_only = read_only
        self._setup = setup
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_busy = False
        self.calls = 0
        self.idle: asyncio.Future[None] | None = None
        self.reading = Gate(self, writes=False)
        self.writing = Gate(self, writes=True)
        self._batcher: Batcher | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        if self.loop is not None:
            raise UsageError("the store is open already")
        self.loop = asyncio.get_running_loop()
        self.is_busy = True
        try:
            await self.backend.open(read_only=self.read_only, setup=self._setup)
        except BaseException:
            self.loop = None
            await asyncio.shield(self.backend.close())
            raise
        if self.backend.batching is not None and not self.read_only:
            self._batcher = Batcher(self.backend.commit, self.backend.batching)
        self.is_busy = False

    async def close(self) -> None:
        """Refuse new calls, let those that were made come to their end, then let go of the backend."""
        if self.loop is None:
            return
        self.is_busy = True
        try:
            if self.calls:
                self.idle = self.idle or self.loop.create_future()
                await asyncio.shield(self.idle)
            while self._tasks:
                await asyncio.wait(self._tasks)
            if self._batcher is not None:
                await self._batcher.close()
        finally:
            self.loop = None
            await asyncio.shield(self.backend.close())

    def require(self, capability: Capability) -> None:
        """Raise unless the backend declares the capability."""
        if capability not in self.backend.capabilities:
            missing = f"{type(self.backend).__name__} does not declare the capability {capability.value!r}"
            raise UnsupportedError(capability, self.backend.absent.get(capability, missing))

    def submit(self, commit: Commit) -> Awaitable[Committed | Refused]:
        """Hand a commit to the backend, together with others that wait."""
        if self._batcher is not None:
            return self._batcher.submit(commit)
        return self._alone(commit)

    async def _alone(self, commit: Commit) -> Committed | Refused:
        outcome = (await attempt(self.backend.commit, [commit]))[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that must not depend on the caller; `close` waits for it.  What it cannot do, a purge does later."""

        async def run() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001  # nobody waits for it
                _logger.warning("cleaning up after a save failed: %s", type(error).__name__)

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
