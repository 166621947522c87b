"""Row backends that go wrong, one promise each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
from mutant_kit import Outcome, Suspending, breaks
from mutants_listing import _Ordered

from strata_core.memory import MemoryBackend
from strata_core.options import Setup
from strata_core.rows import ANY, Batching, Commit, Committed, Extend, Head, HeadQuery, Refusal, Refused, Row


@breaks("row-1")
class StripsEnvelopes(MemoryBackend):
    """Stores text without the blanks around it."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        if commit.row is not None:
            commit = attrs.evolve(commit, row=attrs.evolve(commit.row, envelope=commit.row.envelope.strip()))
        return super()._commit(commit, now)


@breaks(
    "row-2",
    also={
        "delta-1 delta-2 delta-3 delta-5 "
        "delta-6 offload-1 external-1 external-5 stored-1": "loads rows that are differences",
        "rule-1": "reads rows that are differences",
    },
)
class ReadsWithoutTheWholeRow(MemoryBackend):
    """Returns the rows that were asked for, and not those they build on."""

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        rows = await super().read(thread_id, first, last)
        start = len(self._rows.get(thread_id, [])) - 1 if first is None else first
        return [row for row in rows if row.sequence >= start]


@breaks(
    "row-3",
    also={
        "rule-1": "batches with refusals are among the random ones",
    },
)
class GivesABatchUpAtARefusal(MemoryBackend):
    """Refuses the rest of a batch when one commit is refused, as an aborted transaction does."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        refused: Refused | None = None
        for commit in batch:
            outcome = refused if refused is not None else (await super().commit([commit]))[0]
            refused = outcome if isinstance(outcome, Refused) else None
            outcomes.append(outcome)
        return outcomes


@breaks("row-4")
class RefusesWithoutWriteIds(MemoryBackend):
    """Leaves the write IDs out of the head that a refusal shows."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        if isinstance(outcome, Refused) and outcome.head is not None:
            return Refused(outcome.why, attrs.evolve(outcome.head, write_ids=b""))
        return outcome


@breaks(
    "row-5",
    also={
        "conditional-2 conditional-4 lease-14 lease-15": "expects a revision of the right number and another write",
        "delta-4 offload-3": "a remembered head has the right number in another life",
        "rule-1": "commits on false IDs are among the random ones",
    },
)
class KnowsRowsByNumberAlone(MemoryBackend):
    """A purged and restarted thread of the same length is taken for the one that was read."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Outcome]:
        return await super().commit([attrs.evolve(commit, after_id=b"") for commit in batch])


@breaks(
    "row-6",
    also={
        "conditional-5": "says the same of saves",
    },
)
class JudgesByWhatItReadBefore(Suspending):
    """Reads the head, waits, and judges a conditional commit by what it had read.

    Not one whose body needs the row before: whether such commits meet in a race that is not about them is chance.
    """

    def meanwhile(self, batch: list[Commit], before: Mapping[str, Head | None]) -> None:
        for commit in batch:
            is_plain = commit.row is not None and commit.row.version == "1.7.0"  # names no other row and no blob
            if is_plain and commit.after != ANY and not commit.token and commit.lease is None:
                self.restore(commit.thread_id, before[commit.thread_id])


@breaks(
    "row-7",
    also={
        "repeat-2 repeat-4": "repeats conditional saves",
        "rule-1": "repetitions are among the random commits",
    },
)
class JudgesBeforeItRecognises(MemoryBackend):
    """Refuses a repeated commit because the row that it made is there."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        appends = head is not None and commit.row is not None and commit.lease is None
        if appends and head is not None and commit.after not in (ANY, head.sequence):
            return Refused(Refusal.CHANGED, attrs.evolve(head, now=now))
        return super()._commit(commit, now)


@breaks("row-12")
class ReturnsEveryBlob(MemoryBackend):
    """Returns all blobs of a thread, whichever were asked for."""

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return dict(self._blobs.get(thread_id, {})) if digests else {}


@breaks(
    "row-13",
    also={
        "rule-1": "compares blobs after refusals",
    },
)
class StoresBlobsBeforeItJudges(MemoryBackend):
    """Puts the blobs of a commit, and judges it then."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        if commit.blobs and commit.thread_id in self._heads:
            self._blobs.setdefault(commit.thread_id, {}).update(commit.blobs)
        return super()._commit(commit, now)


@breaks(
    "row-14",
    also={
        "list-2": "says the same of listings",
    },
)
class OrdersByCase(_Ordered):
    """Orders IDs as a dictionary does, and then as bytes."""

    def _place(self, updated: int, thread_id: str) -> tuple[int, Any]:
        return updated, (thread_id.lower(), thread_id)


@breaks("row-15")
class ClosesOnlyWhatIsOpen(MemoryBackend):
    """Fails to close when there is nothing to close."""

    _open = 0

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        self._open += 1

    async def close(self) -> None:
        if not self._open:
            raise AttributeError("'NoneType' object has no attribute 'close'")
        self._open -= 1


@breaks("row-16")
class SetsUpFromNothing(MemoryBackend):
    """Drops what is there before it makes it."""

    async def setup(self) -> None:
        self._heads.clear()
        self._rows.clear()
        self._blobs.clear()


@breaks("rule-1")
class ExtendsOnlyWithoutARow(MemoryBackend):
    """Leaves the lease as it is when a commit appends a row and extends."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        if commit.row is not None and type(commit.lease) is Extend:
            commit = attrs.evolve(commit, lease=None)
        return super()._commit(commit, now)


@breaks(
    "stored-1",
    also={
        "row-2": "says how far back a read goes",
        "rule-1": "compares what is read",
    },
)
class ReadsFromTheBeginning(MemoryBackend):
    """Returns every row up to those that were asked for."""

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        rows = await super().read(thread_id, first, last)
        return [*self._rows[thread_id][: rows[0].sequence], *rows] if rows else rows


@breaks(
    "stored-7",
    also={
        "row-9": "lists heads without rows",
    },
)
class NeverListsHeadsWithoutRows(MemoryBackend):
    """Does not find what runs that never saved have left."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        return [] if query.rowless else await super().list_heads(query)


@breaks(
    "stored-10",
    also={
        "purge-9 purge-10 purge-12": "a purge is a batch of more than ten",
        "open-5": "twenty saves wait when it closes",
        "row-14": "its threads come in one batch",
    },
)
class CommitsTenOfABatch(MemoryBackend):
    """Answers for a whole batch, and stores what fits one statement."""

    batching = Batching()  # type: ignore[assignment]  # batches come only to one that has a size

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Outcome]:
        outcomes = list(await super().commit(batch[:10]))
        return outcomes + [Committed(0) for _ in batch[10:]]
