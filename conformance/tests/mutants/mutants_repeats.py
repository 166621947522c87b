"""Repetitions that go wrong, one promise each."""

from __future__ import annotations

from typing import Any

from mutant_kit import Outcome, Wrapper, breaks

from strata_core.errors import ConflictError, LeaseLostError
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, Lease, Revision
from strata_core.rows import WRITE_ID_SIZE, Commit, Committed, Take


@breaks(
    "repeat-1",
    also={
        "repeat-2 repeat-3 repeat-4 row-7": "repeats writes that others followed",
        "rule-1": "repetitions are among the random commits",
    },
)
class AnswersARepetitionWithTheLatest(MemoryBackend):
    """Recognises a repetition, and answers with the latest sequence instead of its own."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        head = self._heads.get(commit.thread_id)
        if isinstance(outcome, Committed) and outcome.repeated and head is not None:
            outcome.sequence = head.sequence
        return outcome


@breaks(
    "repeat-2",
    also={
        "row-7": "says the same of the backend",
        "rule-1": "compares the write IDs of heads",
    },
)
class KeepsSevenWriteIds(MemoryBackend):
    """Recognises one repetition less than it should."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        head = self._heads.get(commit.thread_id)
        if head is not None:
            head.write_ids = head.write_ids[: 7 * WRITE_ID_SIZE]
        return outcome


@breaks(
    "repeat-3",
    also={
        "row-7": "says the same of the backend",
        "rule-1": "compares with core's rule for write IDs",
    },
)
class FindsWriteIdsAnywhere(MemoryBackend):
    """Takes the end of one write ID and the beginning of the next for a third."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if head is not None and commit.row is not None and (at := head.write_ids.find(commit.write_id)) > 0:
            return Committed(head.sequence - at // 8, head.token, head.expires, True, head)
        return super()._commit(commit, now)


@breaks(
    "repeat-4",
    also={
        "repeat-2": "repeats conditional saves too",
    },
)
class LooksAtTheConditionFirst(Wrapper):
    """Refuses a conditional save that had been done, because of itself."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        sequence = await self._store.save_if_latest(checkpoint, expected, **options)
        wanted = expected.sequence if isinstance(expected, Revision) else -1 if expected is None else expected
        if sequence != wanted + 1 or self._backend._heads[checkpoint.thread_id].sequence != sequence:
            raise ConflictError(checkpoint.thread_id, sequence, "has moved on")
        seen = vars(self._backend).setdefault("seen", set())
        if (known := (checkpoint.thread_id, options.get("write_id"))) in seen and known[1] is not None:
            raise ConflictError(checkpoint.thread_id, sequence, "has moved on")
        seen.add(known)
        return sequence


@breaks("repeat-5")
class LooksAtTheLeaseFirst(Wrapper):
    """Refuses a fenced save that had been done, because its lease is gone since."""

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        if isinstance(lease, Lease) and self.live(lease.thread_id) is None:
            rows = self._backend._rows.get(lease.thread_id, []) if isinstance(lease.thread_id, str) else []
            if any(row.write_id == options.get("write_id") for row in rows):
                raise LeaseLostError(lease.thread_id, None, "is not held any more")
        return await self._store.save_under_lease(checkpoint, lease, **options)


@breaks("repeat-6")
class KeepsItsOwnHolderOut(Wrapper):
    """Answers a repeated acquire with None: somebody holds the thread, namely the caller."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        head = self.live(thread_id) if isinstance(thread_id, str) else None
        lease = await self._store.acquire_lease(thread_id, **options)
        return None if lease is not None and head is not None and head.token == lease.token else lease


@breaks("repeat-7", also={"rule-1": "random commits repeat a take whose lease has passed on since"})
class HandsOutTheLeaseOfAnother(MemoryBackend):
    """Answers a repeated acquire with whatever lease is there."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        head = self._heads.get(commit.thread_id)
        taking = isinstance(outcome, Committed) and outcome.repeated and type(commit.lease) is Take
        if isinstance(outcome, Committed) and taking and head is not None and head.is_leased(now):
            outcome.token, outcome.expires = head.token, head.expires
        return outcome


@breaks("repeat-8")
class TakesAnotherLeaseWhenItIsRepeated(Wrapper):
    """Takes a new lease when the one of the first attempt is over and nobody holds the thread."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        try:
            return await self._store.acquire_lease(thread_id, **options)
        except LeaseLostError:
            if self.live(thread_id) is not None:
                raise
            options = {key: options[key] for key in ("owner", "ttl")}
            return await self._store.acquire_lease(thread_id, **options)


@breaks("repeat-9")
class KnowsAWriteOnEveryThread(Wrapper):
    """Takes a write ID of another thread for a repetition."""

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        known: dict[Any, tuple[str, int]] = vars(self._backend).setdefault("known", {})
        if (
            type(write_id) is bytes
            and write_id in known
            and known[write_id][0] != getattr(checkpoint, "thread_id", None)
        ):
            return known[write_id][1]
        sequence = await self._store.save(checkpoint, write_id=write_id)
        if write_id is not None:
            known[write_id] = (checkpoint.thread_id, sequence)
        return sequence
