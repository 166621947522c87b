"""Deltas and offloaded values that go wrong, one promise each."""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
from mutant_kit import Outcome, Refusing, Wrapper, breaks

from strata_core.capabilities import Capability
from strata_core.errors import CorruptCheckpointError
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, CheckpointStatus, LogEntry, LogPage
from strata_core.rows import Batching, Commit, Committed, Refused


@breaks(
    "delta-1",
    also={
        "delta-5": "the log is read back from rows with removed keys",
    },
)
class ForgetsWhatWasRemoved(MemoryBackend):
    """Stores a difference without the keys that are gone."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        if commit.row is not None and not commit.row.whole and commit.row.version == "1.8.0":
            try:
                body = json.loads(commit.row.body)
            except ValueError:
                body = {}
            if "unset" in body:
                commit.row.body = json.dumps(body | {"unset": []}, ensure_ascii=False, separators=(",", ":")).encode()
        return super()._commit(commit, now)


class _CannotRead(Wrapper):
    """Fails to load a thread whose row `_is_foreign`."""

    def _is_foreign(self, body: bytes, is_whole: bool) -> bool:
        raise AssertionError(body, is_whole)

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        entry = await self._store.load(thread_id, **options)
        if entry is not None:
            row = self._backend._rows[thread_id][entry.sequence]
            if self._is_foreign(row.body, row.whole_at == row.sequence):
                raise CorruptCheckpointError(thread_id, row.sequence, "has an encoding that is switched off")
        return entry


@breaks(
    "delta-2",
    also={
        "delta-1 offload-1 external-5": "a handle without deltas reads the thread too",
        "delta-6": "the order is read through a handle without deltas",
    },
)
class ReadsDeltasOnlyWithDeltas(_CannotRead):
    """Cannot read a thread that was written with deltas when it is opened without."""

    def _is_foreign(self, body: bytes, is_whole: bool) -> bool:
        return not is_whole and self._options.get("deltas") is None


@breaks("delta-3")
class ComparesValuesByIdentity(Wrapper):
    """With deltas, takes an object that it saw in the save before for unchanged."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._last: dict[str, dict[str, tuple[Any, Any]]] = {}

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        if self._options.get("deltas") is None or not isinstance(checkpoint, Checkpoint):
            return await self._store.save(checkpoint, **options)
        last = self._last.get(checkpoint.thread_id, {})
        taken = {
            key: (value, last[key][1] if key in last and last[key][0] is value else copy.deepcopy(value))
            for key, value in checkpoint.frozen_state.items()
        }
        self._last[checkpoint.thread_id] = taken
        state = {key: value for key, (_, value) in taken.items()}
        return await self._store.save(attrs.evolve(checkpoint, frozen_state=state), **options)


@breaks("delta-4")
class KnowsTheBaseByNumberAlone(MemoryBackend):
    """Takes a difference from a row of an earlier life of the thread."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        if commit.row is not None and not commit.row.whole:
            commit.after_id = b""
        return super()._commit(commit, now)


@breaks("delta-5")
class StartsASliceWithADifference(Wrapper):
    """Returns the first checkpoint of a slice as it is stored."""

    async def get_log(self, thread_id: str, **options: Any) -> LogPage:
        page = await self._store.get_log(thread_id, **options)
        if not page.entries or self._backend._rows[thread_id][page.entries[0].sequence].version != "1.8.0":
            return page
        first = page.entries[0]
        before = await self._store.load(thread_id, at=first.sequence - 1)
        assert before is not None
        base = before.checkpoint.frozen_state
        state = {key: v for key, v in first.checkpoint.frozen_state.items() if key not in base or base[key] != v}
        first = attrs.evolve(first, checkpoint=attrs.evolve(first.checkpoint, frozen_state=state))
        return attrs.evolve(page, entries=[first, *page.entries[1:]])


@breaks("delta-6")
class SendsFinalSavesAhead(Wrapper):
    """With deltas, sends what needs no base before what does."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        checkpoint = self.taken(checkpoint)
        if self._options.get("deltas") is not None and checkpoint.status is CheckpointStatus.RUNNING:
            await asyncio.sleep(0)
        return await self._store.save(checkpoint, **options)


@breaks("delta-7")
class TakesDeltasUndeclared(Refusing):
    """Does not declare deltas, and opens with them."""

    lacking = Capability.DELTAS


@breaks(
    "offload-1",
    also={
        "delta-1": "its handles mix with and without offload",
        "offload-2": "what was offloaded is read by a handle that offloads nothing",
    },
)
class ReadsBlobsOnlyWithOffload(_CannotRead):
    """Cannot read what was offloaded when it is opened without offload."""

    def _is_foreign(self, body: bytes, is_whole: bool) -> bool:
        return b'"blobs":{' in body and self._options.get("offload") is None


@breaks("offload-2")
class SwitchesOffloadOffAltogether(_CannotRead):
    """With the largest threshold, cannot read what was offloaded before."""

    def _is_foreign(self, body: bytes, is_whole: bool) -> bool:
        offload = self._options.get("offload")
        return b'"blobs":{' in body and offload is not None and offload.threshold == sys.maxsize


@breaks("offload-3")
class BelievesThatABlobIsStillThere(MemoryBackend):
    """Takes a row that refers to a blob of an earlier life of the thread."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        if commit.row is not None and commit.row.version == "1.9.0":
            commit.after_id = b""
        return super()._commit(commit, now)


@breaks("offload-4")
class CutsBlobsAtAMegabyte(MemoryBackend):
    """Has a column for blobs that is a little too narrow."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        commit.blobs = [(digest, content[: 1 << 20]) for digest, content in commit.blobs]
        return super()._commit(commit, now)


@breaks(
    "offload-5",
    also={
        "rule-1": "a row and its blobs are one step of the model",
    },
)
class StoresBlobsAfterTheirRows(MemoryBackend):
    """Appends a row in one step, and stores its blobs a little later."""

    batching = Batching()  # type: ignore[assignment]  # unlike its base, it suspends

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        outcomes = await super().commit([attrs.evolve(commit, blobs=()) for commit in batch])
        if any(commit.blobs for commit in batch):
            for _ in range(20):
                await asyncio.sleep(0)
        for commit, outcome in zip(batch, outcomes, strict=True):
            if commit.blobs and isinstance(outcome, Committed) and commit.thread_id in self._heads:
                self._blobs.setdefault(commit.thread_id, {}).update(commit.blobs)
        return outcomes

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        await asyncio.sleep(0)
        return await super().read_blobs(thread_id, digests)


@breaks("offload-6")
class TakesOffloadUndeclared(Refusing):
    """Does not declare blobs of its own, and keeps them."""

    lacking = Capability.OWN_BLOBS
