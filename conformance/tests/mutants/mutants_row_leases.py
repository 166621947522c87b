"""Row backends whose leases and erasing go wrong, one promise each."""

from __future__ import annotations

from mutant_kit import Outcome, breaks

from strata_core.memory import MemoryBackend
from strata_core.rows import Commit, Committed, Drop, Head


@breaks(
    "row-8",
    also={
        "lease-4": "takes leases across release without checkpoints",
        "lease-5": "takes leases across a purge",
        "lease-16": "two threads get the same token",
        "rule-1": "compares tokens with the model",
    },
)
class CountsTokensByThread(MemoryBackend):
    """Gives out a token again once the head of the thread, and its count, are gone."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        self._new_token = lambda: 1 if head is None else head.token + 1
        return super()._commit(commit, now)


@breaks("row-9")
class KeepsHeadsWithoutALease(MemoryBackend):
    """Keeps the head of a thread without rows when its lease is dropped."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        outcome = super()._commit(commit, now)
        dropped = isinstance(outcome, Committed) and type(commit.lease) is Drop and commit.thread_id not in self._heads
        if dropped and head is not None and not commit.erase and not head.closing:
            self._heads[commit.thread_id] = Head(commit.thread_id)
        return outcome


@breaks(
    "row-10",
    also={
        "rule-1": "compares blobs after an erase",
        "stored-7": "looks for the blobs of what was purged",
    },
)
class LeavesBlobsBehind(MemoryBackend):
    """Erases the rows of a thread, and not its blobs."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        kept = self._blobs.get(commit.thread_id, {})
        outcome = super()._commit(commit, now)
        if kept:
            self._blobs[commit.thread_id] = kept
        return outcome


@breaks(
    "row-11",
    also={
        "rule-1": "closing heads are among the random ones",
    },
)
class LetsAClosingThreadBeWrittenWhenItsLeaseIsOver(MemoryBackend):
    """Takes a purge whose lease has expired for one that never was."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if head is not None and head.closing and not head.is_leased(now) and commit.row is not None:
            head.closing = False
        return super()._commit(commit, now)
