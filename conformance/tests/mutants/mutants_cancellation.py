"""Cancelled calls that go wrong, one promise each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self

import attrs
from mutant_kit import Wrapper, breaks

from strata_core.errors import (
    StoreBusyError,
    StoreUnavailableError,
)
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, ThreadPage, ThreadQuery
from strata_core.rows import ANY, Commit, Committed, Drop, Extend, Refused, Take


class _Tearing(MemoryBackend):
    """Puts the row of certain commits, waits, and puts the head: a cancelled caller leaves one without the other."""

    _tears: Callable[[Commit], bool]

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        if not any(map(type(self)._tears, batch)):
            return await super().commit(batch)
        heads = {commit.thread_id: self._heads.get(commit.thread_id) for commit in batch}
        outcomes = await super().commit(batch)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            for thread_id, head in heads.items():
                if head is not None:
                    self._heads[thread_id] = head
                else:
                    self._heads.pop(thread_id, None)
            raise
        return outcomes


@breaks("cancel-1")
class TearsSaves(_Tearing):
    """Leaves the row of a cancelled save without its head."""

    @staticmethod
    def _tears(commit: Commit) -> bool:
        return commit.row is not None and commit.after == ANY and not commit.token and commit.lease is None


@breaks("cancel-2")
class TearsConditionalSaves(_Tearing):
    """Leaves the row of a cancelled conditional save without its head."""

    @staticmethod
    def _tears(commit: Commit) -> bool:
        return commit.row is not None and commit.after != ANY and not commit.token and commit.lease is None


@breaks("cancel-3")
class TearsReleasingSaves(_Tearing):
    """Leaves the row of a cancelled save that releases its lease without its head."""

    @staticmethod
    def _tears(commit: Commit) -> bool:
        return commit.row is not None and type(commit.lease) is Drop


@breaks("cancel-4")
class TearsTakingSaves(_Tearing):
    """Leaves the row of a cancelled acquire without its head."""

    @staticmethod
    def _tears(commit: Commit) -> bool:
        return commit.row is not None and type(commit.lease) is Take


@breaks("cancel-5")
class LosesALeaseThatIsRenewed(MemoryBackend):
    """Takes the lease off, waits, and puts it on with its new expiry."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        outcomes = await super().commit(batch)
        for commit in batch:
            if commit.row is None and type(commit.lease) is Extend:
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    self._heads[commit.thread_id] = attrs.evolve(self._heads[commit.thread_id], expires=0)
                    raise
        return outcomes


@breaks("cancel-6")
class LosesItsConnectionToACancelledListing(Wrapper):
    """Cannot list any more once a listing was cancelled."""

    _is_broken = False

    async def list_threads(self, query: ThreadQuery = ThreadQuery(), /) -> ThreadPage:  # noqa: B008  # frozen
        page = await self._store.list_threads(query)
        if self._is_broken:
            raise StoreUnavailableError("the connection is in a failed transaction")
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._is_broken = True
            raise
        return page


@breaks("cancel-7")
class TearsErasures(_Tearing):
    """Leaves the head of a thread whose purge was cancelled without its rows."""

    @staticmethod
    def _tears(commit: Commit) -> bool:
        return commit.erase


@breaks("cancel-8")
class CancelsASharedFlush(Wrapper):
    """Lets saves wait for one future together, and a cancelled one cancel it."""

    _flush: asyncio.Future[None] | None = None

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        sequence = await self._store.save(checkpoint, **options)
        if self._flush is None or self._flush.done():
            loop = asyncio.get_running_loop()
            flush = self._flush = loop.create_future()
            loop.call_soon(loop.call_soon, _set, flush)
        await self._flush
        return sequence


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


@breaks("cancel-9")
class KeepsTheLockOfACancelledOpening(Wrapper):
    """Locks the storage while it opens, and lets go of it at the end of a good opening only."""

    async def __aenter__(self) -> Self:
        if vars(self._backend).get("is_locked"):
            raise StoreBusyError("the storage is locked")
        self._backend.__dict__["is_locked"] = True
        await asyncio.sleep(0)
        self._backend.__dict__["is_locked"] = False
        return await super().__aenter__()
