"""Leases that go wrong, one promise each."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import attrs
from mutant_kit import Outcome, Wrapper, breaks

from strata_core.clock import from_micros
from strata_core.errors import LeaseLostError
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, Lease
from strata_core.rows import Commit


@breaks(
    "lease-1",
    also={
        "lease-3": "a lease of 300 ms is over at once",
        "lease-18 list-9 purge-6": "the lease that was returned is compared with the one that is shown",
    },
)
class TellsExpiryInWholeSeconds(Wrapper):
    """Returns a lease whose expiry was cut to the second."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        lease = await self._store.acquire_lease(thread_id, **options)
        return None if lease is None else attrs.evolve(lease, expires_at=lease.expires_at.replace(microsecond=0))


@breaks(
    "lease-2",
    also={
        "lease-19": "owners are taken twice to see that they keep out",
    },
)
class GivesTheSameOwnerAnother(Wrapper):
    """Lets whoever calls himself as the holder does take the thread over."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        lease = await self._store.acquire_lease(thread_id, **options)
        head = self.live(thread_id)
        if lease is None and head is not None and head.owner == options["owner"]:
            head.token = 0
            return await self._store.acquire_lease(thread_id, **options)
        return lease


@breaks(
    "lease-3",
    also={
        "repeat-7 repeat-8 lease-4 lease-6 lease-10 lease-18": "a lease expires in it, and another is taken",
    },
)
class NeverTakesAnExpiredLeaseOver(Wrapper):
    """Waits for the holder to give the thread back, though the lease has expired."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        head = self._backend._heads.get(thread_id) if isinstance(thread_id, str) else None
        if head is not None and head.token and not head.is_leased(self.now()):
            return None
        return await self._store.acquire_lease(thread_id, **options)


@breaks(
    "lease-4",
    also={
        "row-8": "says the same of the backend",
    },
)
class CountsAnewWhenItIsOpened(MemoryBackend):
    """Counts tokens from the largest that stands in a head."""

    async def open(self, **options: Any) -> None:
        self._new_token = itertools.count(max((head.token for head in self._heads.values()), default=0) + 1).__next__


@breaks("lease-5")
class CountsAnewWhenItIsEmpty(Wrapper):
    """Counts tokens from 1 again once a purge has left nothing."""

    async def purge(self, *arguments: Any, **options: Any) -> int:
        purged = await self._store.purge(*arguments, **options)
        if purged and not self._backend._heads:
            self._backend._new_token = itertools.count(1).__next__
        return purged


@breaks("lease-6")
class NeverShortensALease(Wrapper):
    """Renews to the later of the old and the new expiry."""

    async def renew_lease(self, lease: Lease, *, ttl: timedelta) -> Lease:
        head = self.live(lease.thread_id) if isinstance(lease, Lease) else None
        if head is not None and isinstance(ttl, timedelta) and ttl > timedelta(0):
            ttl = max(ttl, from_micros(head.expires) - from_micros(self.now()))
        return await self._store.renew_lease(lease, ttl=ttl)


@breaks("lease-7")
class RenewsWhatNobodyHolds(Wrapper):
    """Takes a lost lease again when the thread is free."""

    async def renew_lease(self, lease: Lease, *, ttl: timedelta) -> Lease:
        try:
            return await self._store.renew_lease(lease, ttl=ttl)
        except LeaseLostError:
            again = await self._store.acquire_lease(lease.thread_id, owner=lease.owner, ttl=ttl)
            if again is None:
                raise
            return again


@breaks(
    "lease-9",
    also={
        "lease-16": "a token of another thread is released",
        "lease-17": "a token that nobody was given is released",
        "cancel-3 cancel-4 cancel-5": "it releases whatever the cancelled call has left",
    },
)
class ComplainsAboutALostLease(Wrapper):
    """Raises when there is nothing to give back."""

    async def release_lease(self, lease: Lease) -> None:
        head = self.live(lease.thread_id) if isinstance(lease, Lease) else None
        await self._store.release_lease(lease)
        if (head is None or head.token != lease.token) and lease.token < 2**62:
            raise LeaseLostError(lease.thread_id, None, "is not held any more")


@breaks("lease-16")
class TakesTheTokenOfAnyThread(Wrapper):
    """Lets a token that is live on some thread pass on every leased one."""

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        try:
            return await self._store.save_under_lease(checkpoint, lease, **options)
        except LeaseLostError:
            others = [h for h in self._backend._heads.values() if h.thread_id != lease.thread_id]
            if not any(h.token == lease.token and h.is_leased(self.now()) for h in others):
                raise
            return await self._store.save(checkpoint)


@breaks("lease-17")
class FailsOnTokensOfMoreThan63Bits(Wrapper):
    """Hands a token to a database whose integers are smaller."""

    def _check(self, lease: Any) -> None:
        if isinstance(lease, Lease) and type(lease.token) is int and lease.token >= 2**63:
            raise OverflowError("Python int too large to convert to SQLite INTEGER")

    async def renew_lease(self, lease: Lease, *, ttl: timedelta) -> Lease:
        self._check(lease)
        return await self._store.renew_lease(lease, ttl=ttl)

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        self._check(lease)
        return await self._store.save_under_lease(checkpoint, lease, **options)

    async def release_lease(self, lease: Lease) -> None:
        self._check(lease)
        await self._store.release_lease(lease)


@breaks("lease-18")
class ShowsExpiredLeases(Wrapper):
    """Shows the lease that stands in the head, without looking at the time."""

    async def live_lease(self, thread_id: str) -> Lease | None:
        live = await self._store.live_lease(thread_id)
        head = self._backend._heads.get(thread_id)
        if live is None and head is not None and head.token and head.owner:
            return Lease(thread_id, head.token, head.owner, from_micros(head.expires))
        return live


@breaks("lease-19")
class TrimsOwners(Wrapper):
    """Shows the owner of a lease without the blanks around it."""

    async def live_lease(self, thread_id: str) -> Lease | None:
        live = await self._store.live_lease(thread_id)
        return None if live is None else attrs.evolve(live, owner=live.owner.strip())


@breaks(
    "lease-3",
    also={
        "conditional-6 repeat-7 repeat-8 lease-4 lease-6 lease-7 "
        "lease-8 lease-10 lease-18 purge-6 purge-7 stored-7": "moves the clock to the very moment of expiry",
        "rule-1": "compares expiries with the model",
    },
)
class KeepsLeasesInTheMomentOfExpiry(MemoryBackend):
    """Takes a lease for live in the very microsecond in which it expires."""

    def _commit(self, commit: Commit, now: int) -> Outcome:
        head = self._heads.get(commit.thread_id)
        if head is not None and head.token and head.expires == now:
            head.expires += 1
        return super()._commit(commit, now)
