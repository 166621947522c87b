"""Leases and conditions that go wrong in one corner only."""

from __future__ import annotations

from typing import Any

import attrs
from mutant_kit import Outcome, Wrapper, breaks
from mutants_corners import _is_done

from strata_core.errors import ConflictError, LeaseLostError
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, Lease
from strata_core.rows import ANY, NOTHING, Commit, Committed, Drop, Extend, Refusal, Refused


@breaks(
    "lease-9",
    also={"lease-16": "releases a token of another thread", "lease-17": "releases a token that nobody was given"},
)
class ReleasesWhateverIsThere(MemoryBackend):
    """Drops the lease of a thread without a look at the token."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if type(commit.lease) is Drop and commit.row is None and head is not None and head.token and head.owner:
            commit = attrs.evolve(commit, token=head.token)
        return super()._commit(commit, now)


@breaks("lease-6", also={"rule-1": "renews for shorter, too"})
class KeepsTheLaterExpiry(MemoryBackend):
    """Keeps the later of two expiries."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        expires = 0 if head is None else head.expires
        outcome = super()._commit(commit, now)
        if type(commit.lease) is Extend and isinstance(outcome, Committed) and outcome.expires < expires:
            self._heads[commit.thread_id].expires = outcome.expires = expires
        return outcome


@breaks("lease-7", also={"rule-1": "renews leases that have expired"})
class RenewsWhatHasExpired(MemoryBackend):
    """Renews a lease that is over, as long as nobody else has taken the thread."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        renews = type(commit.lease) is Extend and commit.row is None and head is not None
        if renews and head is not None and commit.token == head.token and head.owner and 0 < head.expires <= now:
            head.expires = now + 1
        return super()._commit(commit, now)


@breaks("lease-4")
class GivesTheSameOwnerTheSameToken(Wrapper):
    """Gives a token out again to whoever had it before."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        lease = await self._store.acquire_lease(thread_id, **options)
        tokens: dict[tuple[str, str], int] = vars(self._backend).setdefault("tokens", {})
        if lease is None:
            return None
        token = tokens.setdefault((thread_id, lease.owner), lease.token)
        self._backend._heads[thread_id].token = token
        return attrs.evolve(lease, token=token)


@breaks("lease-14")
class KeepsTheLeaseOfAConflict(Wrapper):
    """Takes the lease, and finds out then that another checkpoint was expected."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        try:
            return await self._store.acquire_lease(thread_id, **options)
        except ConflictError as error:
            if not isinstance(error, LeaseLostError):
                await self._store.acquire_lease(thread_id, owner=options["owner"], ttl=options["ttl"])
            raise


@breaks("lease-15")
class ReleasesThoughItConflicts(Wrapper):
    """Gives the lease back after a save, whatever came of it."""

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        try:
            return await self._store.save_under_lease(checkpoint, lease, **options)
        except ConflictError as error:
            if not isinstance(error, LeaseLostError) and options.get("release"):
                await self._store.release_lease(lease)
            raise


@breaks("lease-20", also={"rule-1": "rows without a token are appended to leased threads"})
class DropsTheLeaseWithAConditionalSave(MemoryBackend):
    """Writes a head without the lease when a conditional save goes past its holder."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        outcome = super()._commit(commit, now)
        head = self._heads.get(commit.thread_id)
        passes = commit.row is not None and not commit.token and commit.lease is None and commit.after != ANY
        if passes and _is_done(outcome) and head is not None and head.owner:
            head.expires = 0
        return outcome


@breaks(
    "conditional-1",
    also={
        "lease-15": "saves first on a leased thread without checkpoints",
        "row-11": "the thread starts over while its head is there",
        "rule-1": "first rows come to leased threads",
    },
)
class TakesALeasedThreadForOneThatExists(MemoryBackend):
    """Expects no head where no checkpoint is expected."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        first = commit.after == NOTHING and commit.row is not None and commit.lease is None
        if first and head is not None and head.sequence == NOTHING and commit.write_id not in head.write_ids:
            return Refused(Refusal.CHANGED, attrs.evolve(head, now=now))
        return super()._commit(commit, now)
