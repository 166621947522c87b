"""Purges that go wrong, one promise each."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
from mutant_kit import Refusing, Suspending, Wrapper, breaks

from strata_core.capabilities import Capability
from strata_core.errors import StrataError
from strata_core.memory import MemoryBackend
from strata_core.records import FINISHED, Checkpoint, ThreadPage, ThreadQuery, ThreadState, ThreadSummary
from strata_core.rows import Commit, Head, HeadQuery
from strata_core.store._listing import check_states


class _Purging(Wrapper):
    """Purges as `_purge` does, once the arguments have been checked."""

    async def purge(self, older_than: datetime, *, states: Any = FINISHED, limit: int = 1000) -> int:
        try:
            check_states(states)
            await self._store.list_threads(ThreadQuery(states=states, updated_before=older_than, limit=limit))
        except StrataError:
            return await self._store.purge(older_than, states=states, limit=limit)
        return await self._purge(older_than, states, limit)

    async def _purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        raise AssertionError(older_than, states, limit)


@breaks("purge-1")
class PurgesFailedThreads(_Purging):
    """Takes a failed thread for a finished one."""

    async def _purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        states = {*states, ThreadState.FAILED} if states is FINISHED else states
        return await self._store.purge(older_than, states=states, limit=limit)


@breaks("purge-2")
class PurgesResumedThreads(_Purging):
    """Takes a resumed thread for an interrupted one."""

    async def _purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        states = {*states, ThreadState.RESUMED} if ThreadState.INTERRUPTED in states else states
        return await self._store.purge(older_than, states=states, limit=limit)


@breaks("purge-3")
class PurgesStateByState(_Purging):
    """Takes the threads of one state, and then those of the next."""

    async def _purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        purged = 0
        for state in sorted(states):
            if purged < limit:
                purged += await self._store.purge(older_than, states={state}, limit=limit - purged)
        return purged


@breaks("purge-4")
class RoundsTheCutoffUp(_Purging):
    """Takes the cutoff's own second for a part of what is old."""

    async def _purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        if older_than.microsecond and older_than.year < 9999:
            older_than = older_than.replace(microsecond=0) + timedelta(seconds=1)
        return await self._store.purge(older_than, states=states, limit=limit)


@breaks("purge-5")
class PurgesTheNewestFirst(MemoryBackend):
    """Begins with the newest of what is old."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        if query.oldest_first and query.leased is False and query.updated_before is not None and query.limit < 50:
            query = attrs.evolve(query, oldest_first=False)
        return await super().list_heads(query)


@breaks("purge-6")
class LimitsBeforeItFilters(MemoryBackend):
    """Lets threads that do not match use up the limit."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        wide = attrs.evolve(query, leased=None)
        return [
            head
            for head in await super().list_heads(wide)
            if query.leased is None or query.leased == head.is_leased(head.now)
        ]


@breaks("purge-7")
class RemembersWritesOfPurgedThreads(Wrapper):
    """Takes a write for a repetition of one in an earlier life of the thread."""

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        known: dict[Any, int] = vars(self._backend).setdefault("known", {})
        is_known = type(write_id) is bytes and isinstance(getattr(checkpoint, "thread_id", None), str)
        sequence = known.get((checkpoint.thread_id, write_id)) if is_known else None
        if sequence is None or checkpoint.thread_id in self._backend._heads:
            sequence = await self._store.save(checkpoint, write_id=write_id)
            if is_known:
                known[checkpoint.thread_id, write_id] = sequence
        return sequence


@breaks("purge-8")
class ListsPurgedThreadsByMetadata(Wrapper):
    """Leaves a purged thread in the index of metadata."""

    async def purge(self, *arguments: Any, **options: Any) -> int:
        before = (await self._store.list_threads(ThreadQuery(limit=1000))).threads
        purged = await self._store.purge(*arguments, **options)
        ghosts: list[ThreadSummary] = vars(self._backend).setdefault("ghosts", [])
        ghosts += [thread for thread in before if thread.thread_id not in self._backend._heads]
        return purged

    async def list_threads(self, query: ThreadQuery = ThreadQuery(), /) -> ThreadPage:  # noqa: B008  # frozen
        page = await self._store.list_threads(query)
        if not query.metadata or query.cursor is not None:
            return page
        ghosts = [
            ghost
            for ghost in vars(self._backend).get("ghosts", [])
            if query.metadata.items() <= ghost.metadata.items() and ghost.thread_id not in self._backend._heads
        ]
        return attrs.evolve(page, threads=[*page.threads, *ghosts])


@breaks("purge-9", also={"purge-10": "saves keep threads that were meant to be purged"})
class CountsWhatItMeantToPurge(_Purging):
    """Returns how many threads there were to purge, whoever took them."""

    async def _purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        query = ThreadQuery(states, updated_before=older_than.replace(microsecond=0), leased=False, limit=limit)
        meant = len((await self._store.list_threads(query)).threads)
        await asyncio.sleep(0)
        return max(meant, await self._store.purge(older_than, states=states, limit=limit))


@breaks(
    "purge-10",
    also={
        "purge-9": "the other purge is a change too",
        "rule-1": "erases on conditions are among the random commits",
    },
)
class PurgesWhatHasChanged(Suspending):
    """Erases a thread that was saved since it was found to be old."""

    def meanwhile(self, batch: list[Commit], before: Mapping[str, Head | None]) -> None:
        for commit in batch:
            if commit.erase and not commit.token and commit.row is None:
                commit.after, commit.after_id = -2, b""


@breaks("purge-11")
class PurgesUndeclared(Refusing):
    """Does not declare retention, and purges."""

    lacking = Capability.RETENTION
