"""Threads that expire when they must not, or do not go whole, one promise each."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Self

import attrs
from mutant_kit import Outcome, Wrapper, breaks
from mutants_setup import Kept

from strata_core.capabilities import Capability
from strata_core.clock import micros
from strata_core.records import FINISHED, LogEntry
from strata_core.rows import Commit, Committed, Head, HeadQuery, Row


class Expiring(Kept):
    """A good backend whose finished threads can expire.

    Attributes:
        ttl: How long a finished thread that this handle saves has; None for ever.
        states: In which states a thread is finished.
        deadlines: When which thread expires, in microseconds, for all handles.
        things: Has an entry for each thread with rows, like an index of the storage.
    """

    capabilities = Kept.capabilities | {Capability.EXPIRY}
    ttl: timedelta | None = None
    states: ClassVar[Collection[str]] = frozenset(state.value for state in FINISHED)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.deadlines: dict[str, int] = {}

    def expiring(self, ttl: timedelta) -> Self:
        """Return another handle on the storage, with a ttl, and so without separate blob stores."""
        handle = copy.copy(self)
        handle.ttl = ttl
        handle.capabilities = self.capabilities - {Capability.EXTERNAL_BLOBS}
        return handle

    def _micros(self) -> int:
        return micros(self._clock.now())

    def _expire(self) -> None:
        for thread_id in [thread_id for thread_id, at in self.deadlines.items() if at <= self._micros()]:
            del self.deadlines[thread_id]
            self._forget(thread_id)

    def _forget(self, thread_id: str) -> None:
        for kept in (self._heads, self._rows, self._blobs):
            kept.pop(thread_id, None)
        self.things.pop(f"index of {thread_id}", None)

    def _commit(self, commit: Commit, now: int) -> Outcome:
        self._expire()
        outcome = super()._commit(commit, now)
        if isinstance(outcome, Committed) and not outcome.repeated:
            if commit.row is not None:
                self._saved(commit, commit.row.state)
                self.things[f"index of {commit.thread_id}"] = True
            elif commit.thread_id not in self._rows:
                self.deadlines.pop(commit.thread_id, None)
                self.things.pop(f"index of {commit.thread_id}", None)
        return outcome

    def _saved(self, commit: Commit, state: str) -> None:
        self.deadlines.pop(commit.thread_id, None)
        if self.ttl is not None and state in self.states:
            self.deadlines[commit.thread_id] = self._micros() + round(self.ttl / timedelta(microseconds=1))

    async def read_head(self, thread_id: str) -> Head | None:
        self._expire()
        return await super().read_head(thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        self._expire()
        return await super().read(thread_id, first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        self._expire()
        return await super().read_blobs(thread_id, digests)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        self._expire()
        return await super().list_heads(query)


@breaks("expiry-1")
class DropsWhatIsAYearOld(Wrapper):
    """Lets finished threads expire by themselves, and does not declare it."""

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        entry = await self._store.load(thread_id, **options)
        if entry is not None and entry.checkpoint.state in FINISHED:
            age = self._backend._clock.now() - entry.checkpoint.updated_at
            return None if age > timedelta(days=365) else entry
        return entry


@breaks("expiry-1")
class ExpiresUnasked(Expiring):
    """Has a ttl when nobody has set one."""

    ttl = timedelta(days=30)


@breaks("expiry-2")
class SetsTheTtlInPlainSavesOnly(Expiring):
    """Forgets the ttl where a save is conditional or under a lease."""

    def _saved(self, commit: Commit, state: str) -> None:
        if commit.after != -2 or commit.token or commit.lease is not None:  # -2 is ANY
            self.deadlines.pop(commit.thread_id, None)
        else:
            super()._saved(commit, state)


@breaks("expiry-2")
class NeverEndsWhatHasEnded(Expiring):
    """Gives completed threads a ttl, and ended ones none."""

    states = ("completed",)


@breaks(
    "expiry-2",
    also={
        "expiry-7": "its expired thread must not be there either",
        "stored-11": "asks for the rows of an expired thread",
    },
)
class KeepsRowsOfAnExpiredHead(Expiring):
    """Lets the head of a thread expire, and not its rows."""

    def _forget(self, thread_id: str) -> None:
        self._heads.pop(thread_id, None)
        self.things.pop(f"index of {thread_id}", None)


@breaks("expiry-3")
class LetsFailedThreadsExpire(Expiring):
    """Takes a failed thread for a finished one."""

    states = (*Expiring.states, "failed")


@breaks("expiry-3")
class LetsResumedThreadsExpire(Expiring):
    """Looks at the status, and not at whether a resume has begun."""

    def _saved(self, commit: Commit, state: str) -> None:
        super()._saved(commit, state if commit.row is None else commit.row.status)


@breaks("expiry-4")
class NeverClearsATtl(Expiring):
    """Leaves the ttl as it is when the thread goes on."""

    def _saved(self, commit: Commit, state: str) -> None:
        deadline = self.deadlines.get(commit.thread_id)
        super()._saved(commit, state)
        if state not in self.states and deadline is not None:
            self.deadlines[commit.thread_id] = deadline


@breaks("expiry-4")
class SetsATtlOnce(Expiring):
    """Leaves a ttl that is set, also when the thread is finished anew."""

    def _saved(self, commit: Commit, state: str) -> None:
        deadline = self.deadlines.get(commit.thread_id)
        super()._saved(commit, state)
        if commit.thread_id in self.deadlines and deadline is not None:
            self.deadlines[commit.thread_id] = deadline


class _Indexed(Expiring):
    """Shows in listings what stood in the index when a thread expired."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ghosts: dict[str, Head] = {}

    def _forget(self, thread_id: str) -> None:
        head = self._heads.get(thread_id)
        if head is not None:
            self.ghosts[thread_id] = head
        super()._forget(thread_id)


@breaks("expiry-5")
class LetsExpiredThreadsUseUpAPage(_Indexed):
    """Takes as many entries of the index as a page has, and leaves out those that have expired."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        self._expire()
        wide = attrs.evolve(query, past=None, limit=10_000)
        if query.limit > 10 or query.past is not None or query.oldest_first:
            return await super().list_heads(query)
        heads = [*await super().list_heads(wide), *self.ghosts.values()]
        heads.sort(key=lambda head: (head.updated, head.thread_id), reverse=True)
        return [head for head in heads[: query.limit] if head.thread_id not in self.ghosts]


@breaks("expiry-5")
class FindsWhatAThreadWasBefore(_Indexed):
    """Finds a thread that has started over by the metadata of its life before."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        heads = list(await super().list_heads(query))
        if query.metadata and query.past is None:
            lives = [self._heads[name] for name in self.ghosts if name in self._heads]
            former = self.ghosts
            heads[:0] = [h for h in lives if query.metadata.items() <= former[h.thread_id].metadata.items()]
        return heads[: query.limit]


@breaks("expiry-6")
class CountsExpiredThreads(_Indexed):
    """Counts, and limits, what a purge finds in the index."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        heads = await super().list_heads(query)
        return heads[: max(0, query.limit - len(self.ghosts))] if query.oldest_first and query.limit < 50 else heads


@breaks("expiry-7")
class CountsTokensInTheHead(Expiring):
    """Counts tokens anew when the head of a thread has expired."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        self._expire()
        if commit.thread_id not in self._heads and vars(self).get("expired"):
            self._new_token = iter((1,)).__next__
        return super()._commit(commit, now)

    def _forget(self, thread_id: str) -> None:
        super()._forget(thread_id)
        self.expired = True


@breaks("expiry-8")
class LeavesBlobsElsewhereForEver(Expiring):
    """Opens with a ttl and a separate blob store."""

    def expiring(self, ttl: timedelta) -> Self:
        handle = super().expiring(ttl)
        handle.capabilities = self.capabilities
        return handle


@breaks("stored-11")
class LeavesTheIndexOfExpiredThreads(Expiring):
    """Keeps the entry of an expired thread in the index for ever."""

    def _forget(self, thread_id: str) -> None:
        entry = self.things.get(f"index of {thread_id}")
        super()._forget(thread_id)
        if entry is not None:
            self.things[f"index of {thread_id}"] = entry
