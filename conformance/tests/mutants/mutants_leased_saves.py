"""Saves under a lease, and acquires with one, that go wrong, one promise each."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
from mutant_kit import Outcome, Wrapper, breaks

from strata_core.errors import ConflictError, LeaseHeldError, LeaseLostError
from strata_core.memory import MemoryBackend
from strata_core.ports import ANY
from strata_core.records import Checkpoint, Lease
from strata_core.rows import Commit


@breaks(
    "lease-8",
    also={
        "repeat-5": "a released lease is used again under a new write ID",
        "lease-5": "the holder from before a purge saves",
    },
)
class SavesUnderALeaseThatIsOver(Wrapper):
    """Lets a writer whose lease has ended save as long as nobody else holds the thread."""

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        try:
            return await self._store.save_under_lease(checkpoint, lease, **options)
        except LeaseLostError:
            if self.live(lease.thread_id) is not None:
                raise
            return await self._store.save(checkpoint)


@breaks("lease-10")
class KnowsOnlyTheLeasesItGave(Wrapper):
    """Refuses a live lease that another handle was given."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._given: set[tuple[str, int]] = set()

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        lease = await self._store.acquire_lease(thread_id, **options)
        if lease is not None:
            self._given.add((thread_id, lease.token))
        return lease

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        head = self.live(lease.thread_id) if isinstance(lease, Lease) else None
        is_known = self._options.get("read_only") or head is None or (lease.thread_id, lease.token) in self._given
        if head is not None and head.token == lease.token and not is_known:
            raise LeaseLostError(lease.thread_id, head.sequence, "was not given by this handle")
        return await self._store.save_under_lease(checkpoint, lease, **options)


@breaks(
    "lease-11",
    also={
        "repeat-5": "repeats a save that released",
        "lease-4 lease-5": "gives leases back with saves",
        "lease-19": "every owner gives its lease back with a save",
        "cancel-3": "is about saves that release",
    },
)
class NeverReleasesWithASave(Wrapper):
    """Saves under the lease, and keeps it whatever was asked for."""

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        options.pop("release", None)
        return await self._store.save_under_lease(checkpoint, lease, **options)


@breaks(
    "lease-12",
    also={
        "repeat-6": "compares the lease of both attempts with the sequence in it",
    },
)
class DoesNotSayWhatItSaved(Wrapper):
    """Leaves the sequence out of a lease that was taken with a checkpoint."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        lease = await self._store.acquire_lease(thread_id, **options)
        return None if lease is None else attrs.evolve(lease, saved=None)


@breaks(
    "lease-13",
    also={
        "lease-19": "what is kept out brings a checkpoint",
        "lease-21": "the 49 bring a checkpoint each",
    },
)
class SavesThoughItIsKeptOut(Wrapper):
    """Appends the checkpoint of an acquire that did not get the lease."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        lease = await self._store.acquire_lease(thread_id, **options)
        if lease is None and options.get("save") is not None:
            await self._store.save(options["save"])
        return lease


@breaks(
    "lease-14",
    also={
        "conditional-4": "acquires with the revision of an earlier life too",
    },
)
class ExpectsNothingWithoutASave(Wrapper):
    """Takes a lease without a save whatever is latest."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        if options.get("save") is None and options.get("expected") is not None:
            try:
                return await self._store.acquire_lease(thread_id, **options)
            except ConflictError as error:
                if isinstance(error, LeaseLostError):
                    raise
                options["expected"] = ANY
        return await self._store.acquire_lease(thread_id, **options)


@breaks("lease-15")
class CallsAConflictALostLease(Wrapper):
    """Tells the holder of a lease that has met a conflict that the lease is gone."""

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        try:
            return await self._store.save_under_lease(checkpoint, lease, **options)
        except ConflictError as error:
            raise LeaseLostError(lease.thread_id, error.latest, "is not held by this lease any more") from None


@breaks(
    "lease-20",
    also={
        "cancel-4": "saves plainly beside the lease that was taken or not",
    },
)
class KeepsPlainSavesOut(Wrapper):
    """Refuses a plain save while somebody holds the thread."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        head = self.live(checkpoint.thread_id) if isinstance(checkpoint, Checkpoint) else None
        if head is not None and head.owner and not head.closing and not self._options.get("read_only"):
            raise LeaseHeldError(checkpoint.thread_id, head.sequence, head.owner)
        return await self._store.save(checkpoint, **options)


@breaks("lease-21")
class LooksFirstAndTakesThen(Wrapper):
    """Sees that nobody holds the thread, waits, and takes it from whoever came first."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        if isinstance(thread_id, str) and self.live(thread_id) is None:
            await asyncio.sleep(0)
            head = self.live(thread_id)
            if head is not None:
                head.token = 0
        return await self._store.acquire_lease(thread_id, **options)


@breaks(
    "lease-8",
    also={
        "repeat-5 lease-5 lease-10 lease-16 lease-17": "a save under a lease that is gone must be refused in it",
        "row-3": "its refused commit is one with a false token",
        "rule-1": "commits with false tokens are among the random ones",
    },
)
class NeverAsksForTheToken(MemoryBackend):
    """Lets a writer whose lease is gone save."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        return super()._commit(attrs.evolve(commit, token=0) if commit.row is not None else commit, now)
