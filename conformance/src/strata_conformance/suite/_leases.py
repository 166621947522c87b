"""Leases: one holder at a time, and tokens that fence off whoever held the thread before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, SHORT, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._time import outlive
from strata_core.capabilities import Capability
from strata_core.errors import LeaseLostError
from strata_core.records import Lease
from strata_core.testing import FakeClock

__all__ = ["LeaseTests"]


async def take(store: Store, thread_id: str = "t", owner: str = "o") -> Lease:
    lease = await store.acquire_lease(thread_id, owner=owner, ttl=LONG)
    assert lease is not None
    return lease


async def _expire(store: Store, clock: FakeClock) -> Lease:
    lease = await store.acquire_lease("t", owner="late", ttl=SHORT)
    assert lease is not None
    await outlive(store, clock, lease, SHORT)
    return lease


async def _release(store: Store, _: FakeClock) -> Lease:
    lease = await take(store)
    await store.release_lease(lease)
    return lease


async def _lose(store: Store, clock: FakeClock) -> Lease:
    lease = await _expire(store, clock)
    await take(store, owner="late")
    return lease


async def _forge(store: Store, _: FakeClock) -> Lease:
    lease = await take(store)
    return attrs.evolve(lease, token=lease.token + 1)


_WAYS_TO_LOSE = {"expired": _expire, "released": _release, "taken over": _lose, "forged": _forge}
lost = pytest.mark.parametrize("way", list(_WAYS_TO_LOSE.values()), ids=list(_WAYS_TO_LOSE))
Way = Callable[[Store, FakeClock], Awaitable[Lease]]


class LeaseTests(PortTests):
    """Acquire, renew, release, look at."""

    @promise("lease-1")
    async def test_a_lease_can_be_taken_on_a_thread_that_does_not_exist(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """A lease names the thread, the owner, a token above 0 and its expiry, one ttl from now; the thread need not
        exist, and does not by being leased.
        """
        clock.advance(timedelta(microseconds=123_457))
        async with open_store() as store:
            lease = await take(store, owner="worker-1")
            loaded = await store.load("t")
            server = Capability.SERVER_CLOCK in store.capabilities

        assert ("t", "worker-1", None) == (lease.thread_id, lease.owner, lease.saved)
        assert lease.token > 0
        assert server or clock.now() + LONG == lease.expires_at
        assert loaded is None

    @promise("lease-2")
    async def test_a_live_lease_keeps_everybody_else_out(self, open_store: OpenStore) -> None:
        """While a lease lives, an acquire returns None, from any handle and also for the same owner: the token
        decides, the owner is for people.
        """
        async with open_store() as one, open_store() as two:
            lease = await take(one)
            got = [await handle.acquire_lease("t", owner=o, ttl=LONG) for handle in (one, two) for o in ("o", "p")]
            live = await two.live_lease("t")

        assert [None] * 4 == got
        assert lease == live

    @promise("lease-3")
    async def test_an_expired_or_released_lease_can_be_taken(self, open_store: OpenStore, clock: FakeClock) -> None:
        """Once a lease has expired or was released, another can be taken."""
        async with open_store() as one, open_store() as two:
            await _expire(one, clock)
            second = await two.acquire_lease("t", owner="second", ttl=LONG)
            assert second is not None
            await two.release_lease(second)
            third = await one.acquire_lease("t", owner="third", ttl=LONG)
            live = await two.live_lease("t")

        assert third is not None
        assert third == live

    @promise("lease-4")
    async def test_tokens_only_grow(self, open_store: OpenStore, clock: FakeClock) -> None:
        """Each lease on a thread has a larger token than every lease on it before, across release, expiry and
        reopening, with and without checkpoints.
        """
        tokens = []
        for round_ in range(3):
            async with open_store() as store:
                tokens.append((await _release(store, clock)).token)
                tokens.append((await _expire(store, clock)).token)
                lease = await store.acquire_lease("t", owner="o", ttl=LONG, save=checkpoint(state={"n": round_}))
                assert lease is not None
                tokens.append(lease.token)
                await store.save_under_lease(checkpoint(), lease, release=True)

        assert sorted(set(tokens)) == tokens

    @promise("lease-5")
    @pytest.mark.requires(Capability.RETENTION)
    async def test_tokens_grow_across_a_purge(self, open_store: OpenStore) -> None:
        """A purge takes the lease but not the count: a purged and restarted thread gets a larger token, and a holder
        from before the purge is refused.
        """
        async with open_store() as store:
            before = await take(store)
            await store.save_under_lease(completed(), before, release=True)
            assert 1 == await store.purge(BASE.replace(year=2030))
            with pytest.raises(LeaseLostError):
                await store.save_under_lease(checkpoint(), before)
            after = await take(store)
            with pytest.raises(LeaseLostError):
                await store.save_under_lease(checkpoint(), before)
            loaded = await store.load("t")

        assert after.token > before.token
        assert loaded is None

    @promise("lease-6")
    async def test_a_renewed_lease_lives_one_ttl_from_now(self, open_store: OpenStore, clock: FakeClock) -> None:
        """A renewal returns the same lease with its new expiry, one ttl from now, longer or shorter than before."""
        async with open_store() as one, open_store() as two:
            lease = await one.acquire_lease("t", owner="o", ttl=SHORT * 20)
            assert lease is not None
            server = Capability.SERVER_CLOCK in one.capabilities
            if not server:
                clock.advance(SHORT * 19)
            renewed = await one.renew_lease(lease, ttl=LONG)
            live = await two.live_lease("t")
            if not server:
                clock.advance(SHORT * 19)
            still = await two.acquire_lease("t", owner="p", ttl=LONG)
            shortened = await two.renew_lease(renewed, ttl=SHORT)
            await outlive(one, clock, shortened, SHORT)
            taken = await two.acquire_lease("t", owner="p", ttl=LONG)

        assert (lease.token, "t", "o") == (renewed.token, renewed.thread_id, renewed.owner)
        assert renewed.expires_at > lease.expires_at
        assert shortened.expires_at < renewed.expires_at
        assert renewed == live
        assert still is None
        assert taken is not None

    @promise("lease-7")
    @lost
    async def test_a_lost_lease_cannot_be_renewed(self, open_store: OpenStore, clock: FakeClock, way: Way) -> None:
        """A lease that expired, was released, was taken over or was never given cannot be renewed: LeaseLostError,
        and whoever holds the thread goes on holding it.
        """
        async with open_store() as store:
            lease = await way(store, clock)
            before = await store.live_lease("t")
            with pytest.raises(LeaseLostError) as caught:
                await store.renew_lease(lease, ttl=LONG)
            after = await store.live_lease("t")

        assert "t" == caught.value.thread_id
        assert before == after

    @promise("lease-9")
    @lost
    async def test_releasing_a_lost_lease_is_no_error_and_takes_nobodys(
        self, open_store: OpenStore, clock: FakeClock, way: Way
    ) -> None:
        """A release is idempotent: of a lost lease it is no error, and the present holder keeps the thread."""
        async with open_store() as store:
            lease = await way(store, clock)
            before = await store.live_lease("t")
            await store.release_lease(lease)
            await store.release_lease(lease)
            after = await store.live_lease("t")

        assert before == after

    @promise("lease-16")
    async def test_a_lease_of_another_thread_is_worth_nothing(self, open_store: OpenStore) -> None:
        """A lease holds its own thread only: others can be leased and saved meanwhile, and a token of one thread is
        refused on another.
        """
        async with open_store() as store:
            mine, other = await take(store, "mine"), await take(store, "other")
            with pytest.raises(LeaseLostError):
                await store.save_under_lease(checkpoint("other"), attrs.evolve(mine, thread_id="other"))
            with pytest.raises(LeaseLostError):
                await store.renew_lease(attrs.evolve(other, thread_id="mine"), ttl=LONG)
            await store.release_lease(attrs.evolve(mine, thread_id="other"))
            live = [await store.live_lease("mine"), await store.live_lease("other")]

        assert [mine, other] == live

    @promise("lease-17")
    async def test_a_token_that_no_store_gives_is_simply_not_held(self, open_store: OpenStore) -> None:
        """A lease with a token larger than any that a store gives, however large, is lost like any other: renewing it
        and saving under it raise LeaseLostError, releasing it is no error.
        """
        async with open_store() as store:
            held = await take(store)
            for token in (2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, 10**5000):
                lease = attrs.evolve(held, token=token)
                with pytest.raises(LeaseLostError):
                    await store.renew_lease(lease, ttl=LONG)
                with pytest.raises(LeaseLostError):
                    await store.save_under_lease(checkpoint(), lease)
                await store.release_lease(lease)
            live, loaded = await store.live_lease("t"), await store.load("t")

        assert held == live
        assert loaded is None

    @promise("lease-18")
    async def test_a_live_lease_is_told_and_a_lost_one_is_not(self, open_store: OpenStore, clock: FakeClock) -> None:
        """live_lease returns the lease that holds the thread now, with token, owner and expiry, and None for an
        unknown thread and after expiry and release.
        """
        async with open_store() as one, open_store() as two:
            unknown = await two.live_lease("t")
            await _release(one, clock)
            released = await two.live_lease("t")
            await _expire(one, clock)
            expired = await two.live_lease("t")
            lease = await take(one)
            live = await two.live_lease("t")

        assert [None] * 3 == [unknown, released, expired]
        assert lease == live

    @promise("lease-19")
    @pytest.mark.parametrize("owner", ["strata: first save", "strata: purge", "purge", "None", " ", "\U0001f600\n"])
    async def test_an_owner_decides_nothing(self, open_store: OpenStore, owner: str) -> None:
        """The owner of a lease is for people: whatever its text, the lease is shown, keeps others out at once, and is
        renewed, used and released like any other.
        """
        async with open_store() as one, open_store() as two:
            lease = await take(one, owner=owner)
            live = await two.live_lease("t")
            async with asyncio.timeout(10):
                kept_out = await two.acquire_lease("t", owner=owner, ttl=LONG, save=checkpoint())
            renewed = await one.renew_lease(lease, ttl=LONG)
            sequence = await one.save_under_lease(checkpoint(), renewed, release=True)
            free = await two.live_lease("t")

        assert owner == lease.owner
        assert lease == live
        assert kept_out is None
        assert (0, None) == (sequence, free)
