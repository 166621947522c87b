"""Saves and loads that go wrong, one promise each."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
from mutant_kit import Entries, Outcome, Suspending, Wrapper, breaks

from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, LogEntry, Revision
from strata_core.rows import ANY, Commit, Head


@breaks(
    "save-1",
    also={
        "offload-5 external-5 external-8 external-9 "
        "purge-10 input-1 open-5 cancel-7 cancel-8": "looks at the sequence of a second thread of its handle",
    },
)
class CountsThreadsFromDifferentNumbers(Wrapper):
    """Begins to count where another thread of the handle has begun, and one on."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._first: dict[str, int] = {}

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        sequence = await self._store.save(checkpoint, **options)
        return sequence + self._first.setdefault(checkpoint.thread_id, len(self._first))


@breaks(
    "save-2",
    also={
        "save-7 cancel-8": "starts saves without waiting, and looks at their order",
        "delta-5": "the saves of its log are started at once",
        "delta-6 external-6": "says the same with that option",
    },
)
class LetsEverySecondSaveWait(Wrapper):
    """Sends every second save a moment later."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._turn = itertools.cycle((True, False))

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        checkpoint = self.taken(checkpoint)
        if next(self._turn):
            await asyncio.sleep(0)
        return await self._store.save(checkpoint, **options)


@breaks(
    "save-3",
    also={
        "offload-5": "its handles save to the same threads at once",
    },
)
class OverwritesWhatAnotherHandleSaved(Suspending):
    """Reads the head, waits, and writes by what it had read."""

    def meanwhile(self, batch: list[Commit], before: Mapping[str, Head | None]) -> None:
        for commit in batch:
            if commit.row is not None and commit.after == ANY and not commit.token and commit.lease is None:
                self.restore(commit.thread_id, before[commit.thread_id])


@breaks(
    "save-4",
    also={
        "save-8": "loads again what it changed",
        "conditional-4 lease-12 purge-5": "loads, lets another call of the store change the thread, and loads again",
        "delta-1 offload-1 external-1 external-3": "loads again after another handle has written",
        "readonly-2": "a reader loads while another handle saves",
    },
)
class GoesOnReadingWhatItHasRead(Wrapper):
    """Answers a load from what an earlier one returned, until it saves itself."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._latest: dict[str, LogEntry] = {}

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        self._latest.clear()
        return await self._store.save(checkpoint, **options)

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        if options.get("at") is not None or not isinstance(thread_id, str):
            return await self._store.load(thread_id, **options)
        entry = self._latest.get(thread_id) or await self._store.load(thread_id)
        if entry is not None:
            self._latest[thread_id] = entry
        return entry


@breaks(
    "save-5",
    also={
        "record-1 delta-1 delta-2 offload-1 offload-2 external-1 "
        "expiry-1 open-3 open-5 readonly-1 row-1 row-12 setup-4 stored-2": "opens the storage again in between",
    },
)
class ForgetsWhenTheLastHandleIsClosed(MemoryBackend):
    """Keeps its threads as long as somebody has it open."""

    _open = 0

    async def open(self, **options: Any) -> None:
        self._open += 1

    async def close(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._heads.clear()
            self._rows.clear()
            self._blobs.clear()


@breaks(
    "save-6",
    also={
        "delta-1": "random threads end, and are read from the beginning",
        "rule-1": "reads rows that were followed by a completed one",
    },
)
class RewritesTheRowBeforeAtTheEnd(MemoryBackend):
    """Lets the checkpoint before a completed one show the completed state."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        rows = self._rows.get(commit.thread_id, [])
        if (
            commit.row is not None
            and commit.row.status == "completed"
            and len(rows) > 1
            and rows[-2].version == "1.7.0"
        ):
            rows[-2] = attrs.evolve(rows[-2], body=commit.row.body)
        return outcome


@breaks("save-7")
class ReadsTheStateLate(Wrapper):
    """Begins a save with a wait, and stores what the state has become by then."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        await asyncio.sleep(0)
        return await self._store.save(checkpoint, **options)


@breaks("save-8")
class SharesWhatItLoads(Wrapper):
    """Returns the same objects to everybody."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._loaded: dict[tuple[str, Revision], LogEntry] = {}

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        entry = await self._store.load(thread_id, **options)
        if entry is None:
            return None
        return self._loaded.setdefault((thread_id, entry.revision), entry)


@breaks(
    "save-9",
    also={
        "record-1 record-5 delta-1 delta-4 "
        "delta-5 offload-1 external-1 external-8": "compares states as text, whose keys have an order",
    },
)
class SortsKeys(Entries):
    """Returns states as a binary JSON column does, their keys sorted."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        def ordered(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {key: ordered(value[key]) for key in sorted(value)}
            return [ordered(item) for item in value] if isinstance(value, list) else value

        return attrs.evolve(checkpoint, frozen_state=ordered(checkpoint.frozen_state))


@breaks(
    "load-1",
    also={
        "purge-7 cancel-7": "looks for old sequences of a thread that started over",
    },
)
class LoadsTheLatestInstead(Wrapper):
    """Returns the latest checkpoint when there is none at the sequence."""

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        return await self._store.load(thread_id, **options) or await self._store.load(thread_id)


@breaks(
    "load-2",
    also={
        "load-3": "compares the write IDs of a thread",
        "record-9": "compares loads with the log",
        "external-2": "compares an earlier checkpoint with what it was",
    },
)
class NamesTheLatestRevision(Wrapper):
    """Names the write of the latest checkpoint, whichever was asked for."""

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        entry, latest = await self._store.load(thread_id, **options), await self._store.load(thread_id)
        if entry is None or latest is None:
            return entry
        return attrs.evolve(entry, revision=Revision(entry.sequence, latest.revision.write_id))


@breaks("load-3")
class NumbersTheWritesOfEachThread(Wrapper):
    """Makes write IDs by counting the saves of a thread."""

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        if write_id is None and isinstance(checkpoint, Checkpoint) and isinstance(checkpoint.thread_id, str):
            counts = vars(self._backend).setdefault("counts", Counter())
            counts[checkpoint.thread_id] += 1
            write_id = counts[checkpoint.thread_id].to_bytes(8, "big")
        return await self._store.save(checkpoint, write_id=write_id)


@breaks("model-1", also={"record-3": "saves one empty state after another"})
class TakesTwoEmptyStatesForOne(Wrapper):
    """Appends nothing when the state is empty and was empty before."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        if isinstance(checkpoint, Checkpoint) and checkpoint.frozen_state == {}:
            latest = await self._store.load(checkpoint.thread_id)
            if latest is not None and latest.checkpoint.frozen_state == {}:
                return latest.sequence
        return await self._store.save(checkpoint, **options)
