"""Stores that go wrong in one corner only, of whatever subject: what is left when the obvious mistakes are mended."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from mutant_kit import Entries, Outcome, Suspending, Wrapper, breaks, replaced

from strata_core.clock import micros
from strata_core.memory import MemoryBackend
from strata_core.records import FINISHED, Checkpoint, LogEntry
from strata_core.rows import Commit, Committed, Drop, Head, HeadQuery


def _is_done(outcome: Outcome) -> bool:
    return isinstance(outcome, Committed) and not outcome.repeated


@breaks(
    "list-11",
    also={
        "list-2": "pages through threads of one time",
        "list-12": "many of its threads have one time",
        "purge-13": "its page ends among threads of one time",
        "rule-1": "lists past threads of one time",
    },
)
class SkipsWhatHasTheTimeOfTheLast(MemoryBackend):
    """Begins a page with the threads that are older than the last one shown."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        heads = await super().list_heads(query)
        return [head for head in heads if query.past is None or head.updated != query.past[0]]


@breaks("list-5")
class MatchesAnyPair(MemoryBackend):
    """Finds threads that have one of several pairs of metadata."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        if len(query.metadata) < 2:
            return await super().list_heads(query)
        found: dict[str, Head] = {}
        for key, value in query.metadata.items():
            for head in await super().list_heads(attrs.evolve(query, metadata={key: value}, limit=10_000)):
                found[head.thread_id] = head
        order = sorted(found.values(), key=lambda h: (h.updated, h.thread_id), reverse=not query.oldest_first)
        return order[: query.limit]


@breaks("list-5", also={"rule-1": "rows with other metadata follow each other"})
class AddsToTheMetadata(MemoryBackend):
    """Leaves the metadata of earlier checkpoints in the index."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if commit.row is not None and head is not None:
            row = attrs.evolve(commit.row, metadata={**head.metadata, **commit.row.metadata})
            commit = attrs.evolve(commit, row=row)
        return super()._commit(commit, now)


@breaks("list-7", also={"rule-1": "rows with other graphs follow each other"})
class KeepsTheFirstGraph(MemoryBackend):
    """Never changes by which graph a thread is found."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if commit.row is not None and head is not None and head.graph_id is not None:
            row = attrs.evolve(commit.row, graph_id=head.graph_id, graph_version=head.graph_version)
            commit = attrs.evolve(commit, row=row)
        return super()._commit(commit, now)


@breaks("list-9", also={"rule-1": "lists leased threads past others"})
class ShowsNoLeaseOnTheSecondPage(MemoryBackend):
    """Reads leases for the first page only."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        heads = await super().list_heads(query)
        return heads if query.past is None else [attrs.evolve(h, token=0, owner="", expires=0) for h in heads]


@breaks("repeat-1", also={"repeat-2": "repeats what another handle has saved"})
class RemembersWritesOfItsOwn(Wrapper):
    """Recognises a write that this handle has made, and takes any other for new."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._mine: set[tuple[str, bytes]] = set()

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        head = self._backend._heads.get(checkpoint.thread_id) if isinstance(checkpoint, Checkpoint) else None
        if head is None or type(write_id) is not bytes or len(write_id) != 8:
            return await self._store.save(checkpoint, write_id=write_id)
        known = write_id in [head.write_ids[at : at + 8] for at in range(0, len(head.write_ids), 8)]
        if known and (checkpoint.thread_id, write_id) not in self._mine:
            return await self._store.save(checkpoint, write_id=os.urandom(8))
        self._mine.add((checkpoint.thread_id, write_id))
        return await self._store.save(checkpoint, write_id=write_id)


@breaks(
    "repeat-2",
    also={"repeat-8": "repeats an acquire after its release", "rule-1": "compares the write IDs of heads"},
)
class ForgetsWritesWithALease(MemoryBackend):
    """Writes a head without write IDs when a lease is given back."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        head = self._heads.get(commit.thread_id)
        if type(commit.lease) is Drop and commit.row is None and _is_done(outcome) and head is not None:
            head.write_ids = b""
        return outcome


@breaks("save-9")
class PutsNumbersFirst(Entries):
    """Returns states as JavaScript does: keys that are numbers come first, in their order."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        def ordered(value: Any) -> Any:
            if isinstance(value, Mapping):
                numbers = sorted((key for key in value if key.isascii() and key.isdigit()), key=int)
                return {key: ordered(value[key]) for key in [*numbers, *(k for k in value if k not in numbers)]}
            return [ordered(item) for item in value] if isinstance(value, list) else value

        return attrs.evolve(checkpoint, frozen_state=ordered(checkpoint.frozen_state))


@breaks("record-5")
class CutsTextAtNul(Entries):
    """Reads text as a language with strings that end in NUL does."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        def cut(value: Any) -> Any:
            return value.partition("\0")[0] if isinstance(value, str) else value

        return attrs.evolve(checkpoint, frozen_state=replaced(checkpoint.frozen_state, cut))


@breaks("purge-7")
class KeepsWhatItHasLoaded(Wrapper):
    """Answers a load of a sequence from memory: a row never changes, until its thread is purged."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._loaded: dict[tuple[str, int], LogEntry] = {}

    async def load(self, thread_id: str, *, at: int | None = None) -> LogEntry | None:
        if type(at) is not int or not isinstance(thread_id, str):
            return await self._store.load(thread_id, at=at)
        entry = self._loaded.get((thread_id, at)) or await self._store.load(thread_id, at=at)
        if entry is not None:
            self._loaded[thread_id, at] = attrs.evolve(entry, checkpoint=self.taken(entry.checkpoint))
        return entry


@breaks("purge-12")
class PurgesWhatWasLeasedMeanwhile(Suspending):
    """Erases a thread that was free when it was found, whoever holds it by now."""

    def meanwhile(self, batch: list[Commit], before: Mapping[str, Head | None]) -> None:
        for commit in batch:
            if commit.erase and not commit.token:
                commit.free = False


@breaks("purge-13")
class PurgesAHundredAtMost(Wrapper):
    """Takes no more threads in one call than fit one statement."""

    async def purge(self, older_than: datetime, *, states: Any = FINISHED, limit: int = 1000) -> int:
        fits = type(limit) is not int or not 100 < limit <= 1000
        return await self._store.purge(older_than, states=states, limit=limit if fits else 100)


@breaks(
    "purge-1",
    also={
        "purge-9": "the ID of one of its threads begins with that of another",
        "row-10": "the ID of one of its threads begins with that of another",
    },
)
class PurgesByPrefix(MemoryBackend):
    """Erases every thread whose ID begins with that of the purged one."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        if commit.erase and _is_done(outcome):
            for thread_id in [name for name in self._rows if name.startswith(commit.thread_id)]:
                for kept in (self._rows, self._blobs, self._heads):
                    kept.pop(thread_id, None)
        return outcome


@breaks("purge-4")
class PurgesByCreation(Wrapper):
    """Takes the time of a thread from its creation, though it was resumed since."""

    async def purge(self, older_than: datetime, **options: Any) -> int:
        for thread_id, rows in self._backend._rows.items():
            created = json.loads(rows[-1].envelope)["created_at"]
            self._backend._heads[thread_id].updated = micros(datetime.fromisoformat(created))
        return await self._store.purge(older_than, **options)


@breaks(
    "offload-7",
    also={"row-10": "two of its threads have the same blob", "rule-1": "its threads have the same blobs"},
)
class SharesBlobsBetweenThreads(MemoryBackend):
    """Stores a blob once for all threads, and deletes it with the first that is purged."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        mine = self._blobs.get(commit.thread_id, {})
        outcome = super()._commit(commit, now)
        if commit.erase and _is_done(outcome):
            for blobs in self._blobs.values():
                for digest in mine:
                    blobs.pop(digest, None)
        return outcome


@breaks("row-5")
class ComparesHalfAnId(MemoryBackend):
    """Compares as much of an expected write ID as fits an integer."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if commit.after_id and head is not None and head.write_ids[:4] == commit.after_id[:4]:
            commit = attrs.evolve(commit, after_id=head.write_ids[:8])
        return super()._commit(commit, now)


@breaks("row-7", also={"repeat-3": "says the same of saves"})
class RecognisesHalfAnId(MemoryBackend):
    """Recognises a write by the first half of its ID."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if head is not None and commit.row is not None:
            known = [head.write_ids[at : at + 8] for at in range(0, len(head.write_ids), 8)]
            same = [write_id for write_id in known if write_id[:4] == commit.write_id[:4]]
            commit = attrs.evolve(commit, write_id=(same or [commit.write_id])[0])
        return super()._commit(commit, now)
