"""Leases: one holder at a time, and tokens that fence off whoever held the thread before."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, SHORT, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._time import outlive
from strata_core.capabilities import Capability
from strata_core.errors import ConflictError, LeaseLostError
from strata_core.records import Lease, Revision
from strata_core.testing import FakeClock

__all__ = ["LeaseTests"]


async def _take(store: Store, thread_id: str = "t", owner: str = "o") -> Lease:
    lease = await store.acquire_lease(thread_id, owner=owner, ttl=LONG)
    assert lease is not None
    return lease


async def _expire(store: Store, clock: FakeClock) -> Lease:
    lease = await store.acquire_lease("t", owner="late", ttl=SHORT)
    assert lease is not None
    await outlive(store, clock, lease, SHORT)
    return lease


async def _release(store: Store, _: FakeClock) -> Lease:
    lease = await _take(store)
    await store.release_lease(lease)
    return lease


async def _lose(store: Store, clock: FakeClock) -> Lease:
    lease = await _expire(store, clock)
    await _take(store, owner="late")
    return lease


async def _forge(store: Store, _: FakeClock) -> Lease:
    lease = await _take(store)
    return attrs.evolve(lease, token=lease.token + 1)


_WAYS_TO_LOSE = {"expired": _expire, "released": _release, "taken over": _lose, "forged": _forge}
lost = pytest.mark.parametrize("way", list(_WAYS_TO_LOSE.values()), ids=list(_WAYS_TO_LOSE))
Way = Callable[[Store, FakeClock], Awaitable[Lease]]


class LeaseTests(PortTests):
    """Acquire, renew, release, and saves under a lease."""

    @promise("lease-1")
    async def test_a_lease_can_be_taken_on_a_thread_that_does_not_exist(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """A lease names the thread, the owner, a token above 0 and its expiry, one ttl from now; the thread need not
        exist, and does not by being leased.
        """
        clock.advance(timedelta(microseconds=123_457))
        async with open_store() as store:
            lease = await _take(store, owner="worker-1")
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
            lease = await _take(one)
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
            before = await _take(store)
            await store.save_under_lease(completed(), before, release=True)
            assert 1 == await store.purge(BASE.replace(year=2030))
            with pytest.raises(LeaseLostError):
                await store.save_under_lease(checkpoint(), before)
            after = await _take(store)
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

    @promise("lease-8")
    @lost
    async def test_a_save_under_a_lost_lease_is_refused(
        self, open_store: OpenStore, clock: FakeClock, way: Way
    ) -> None:
        """A save under a lease that expired, was released, was taken over or was never given raises LeaseLostError,
        appends nothing, and releases nobody's lease.
        """
        async with open_store() as store:
            await store.save(checkpoint(state={"n": 0}))
            lease = await way(store, clock)
            before = await store.live_lease("t")
            for release in (False, True):
                with pytest.raises(LeaseLostError) as caught:
                    await store.save_under_lease(checkpoint(state={"n": "late"}), lease, release=release)
            entry, after = await store.load("t"), await store.live_lease("t")

        assert ("t", 0) == (caught.value.thread_id, caught.value.latest)
        assert entry is not None
        assert (0, {"n": 0}) == (entry.sequence, entry.checkpoint.frozen_state)
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

    @promise("lease-10")
    async def test_the_holder_saves_and_others_are_fenced_off(self, open_store: OpenStore, clock: FakeClock) -> None:
        """Saves under the live lease append, from any handle that has it; once another holds the thread, those of the
        earlier holder are refused and those of the present one append.
        """
        async with open_store() as one, open_store() as two:
            first = await one.acquire_lease("t", owner="first", ttl=SHORT)
            assert first is not None
            server = Capability.SERVER_CLOCK in one.capabilities
            got = [] if server else [await h.save_under_lease(checkpoint(), first) for h in (one, two)]
            await outlive(one, clock, first, SHORT)
            second = await _take(two, owner="second")
            with pytest.raises(LeaseLostError):
                await one.save_under_lease(checkpoint(state={"n": "zombie"}), first)
            got.append(await two.save_under_lease(checkpoint(), second))
            got.append(await one.save_under_lease(checkpoint(), second))

        assert list(range(2 if server else 4)) == got

    @promise("lease-11")
    async def test_the_last_save_can_release_the_lease(self, open_store: OpenStore) -> None:
        """A save with release=True appends and gives the lease back in one step; without it the lease stays."""
        async with open_store() as store:
            lease = await _take(store)
            first = await store.save_under_lease(checkpoint(), lease)
            held = await store.live_lease("t")
            second = await store.save_under_lease(completed(), lease, release=True)
            free = await store.live_lease("t")
            taken = await store.acquire_lease("t", owner="next", ttl=LONG)

        assert [0, 1] == [first, second]
        assert lease == held
        assert free is None
        assert taken is not None

    @promise("lease-12")
    async def test_a_lease_can_be_taken_with_a_save(self, open_store: OpenStore) -> None:
        """An acquire with a checkpoint takes the lease and appends in one step, and names the sequence in `saved`."""
        async with open_store() as store:
            first = await store.acquire_lease("t", owner="o", ttl=LONG, save=checkpoint(state={"n": 0}), expected=None)
            assert first is not None
            await store.release_lease(first)
            latest = await store.load("t")
            assert latest is not None
            second = await store.acquire_lease(
                "t", owner="o", ttl=LONG, save=checkpoint(state={"n": 1}), expected=latest.revision
            )
            assert second is not None
            entry, live = await store.load("t"), await store.live_lease("t")

        assert [0, 1] == [first.saved, second.saved]
        assert entry is not None
        assert (1, {"n": 1}) == (entry.sequence, entry.checkpoint.frozen_state)
        assert live is not None
        assert second.token == live.token

    @promise("lease-13")
    async def test_an_acquire_that_does_not_get_the_lease_saves_nothing(self, open_store: OpenStore) -> None:
        """An acquire that a live lease keeps out returns None and appends nothing."""
        async with open_store() as one, open_store() as two:
            await _take(one)
            got = await two.acquire_lease("t", owner="p", ttl=LONG, save=checkpoint())
            loaded = await two.load("t")

        assert got is None
        assert loaded is None

    @promise("lease-14")
    async def test_an_acquire_on_another_checkpoint_takes_and_saves_nothing(self, open_store: OpenStore) -> None:
        """An acquire that expects another checkpoint than the latest raises ConflictError, with and without a save,
        takes no lease and appends nothing.
        """
        async with open_store() as store:
            await store.save(checkpoint(state={"n": 0}))
            for expected in (None, 1, Revision(0, os.urandom(8))):
                for save in (None, checkpoint(state={"n": 1})):
                    with pytest.raises(ConflictError) as caught:
                        await store.acquire_lease("t", owner="o", ttl=LONG, save=save, expected=expected)

                    assert not isinstance(caught.value, LeaseLostError)
                    assert 0 == caught.value.latest
            with pytest.raises(ConflictError):
                await store.acquire_lease("unknown", owner="o", ttl=LONG, expected=0)
            leases = [await store.live_lease(t) for t in ("t", "unknown")]
            entry = await store.load("t")

        assert [None, None] == leases
        assert entry is not None
        assert 0 == entry.sequence

    @promise("lease-15")
    async def test_a_save_under_lease_can_also_expect_a_checkpoint(self, open_store: OpenStore) -> None:
        """A save under a live lease that expects another checkpoint than the latest raises ConflictError, not
        LeaseLostError; the lease stays, also with release=True.
        """
        async with open_store() as store:
            lease = await _take(store)
            await store.save_under_lease(checkpoint(), lease, expected=None)
            for expected in (None, 1, Revision(0, os.urandom(8))):
                with pytest.raises(ConflictError) as caught:
                    await store.save_under_lease(checkpoint(), lease, expected=expected, release=True)

                assert not isinstance(caught.value, LeaseLostError)
            live = await store.live_lease("t")
            second = await store.save_under_lease(checkpoint(), lease, expected=0)

        assert lease == live
        assert 1 == second

    @promise("lease-16")
    async def test_a_lease_of_another_thread_is_worth_nothing(self, open_store: OpenStore) -> None:
        """A lease holds its own thread only: others can be leased and saved meanwhile, and a token of one thread is
        refused on another.
        """
        async with open_store() as store:
            mine, other = await _take(store, "mine"), await _take(store, "other")
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
            held = await _take(store)
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
            lease = await _take(one)
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
            lease = await _take(one, owner=owner)
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

    @promise("lease-20")
    async def test_saves_without_the_lease_neither_need_nor_disturb_it(self, open_store: OpenStore) -> None:
        """A plain save and a conditional save append while somebody else holds the thread, and leave the lease as it
        is.
        """
        async with open_store() as one, open_store() as two:
            lease = await _take(one)
            got = [await two.save(checkpoint()), await two.save_if_latest(checkpoint(), 0)]
            live = await two.live_lease("t")
            got.append(await one.save_under_lease(checkpoint(), lease))

        assert [0, 1, 2] == got
        assert lease == live

    @promise("lease-21")
    async def test_of_many_that_ask_at_once_exactly_one_gets_the_lease(self, open_store: OpenStore) -> None:
        """Of fifty acquires from two handles at once, one gets the lease and 49 get None; the checkpoint of the one
        is appended, once.
        """
        async with open_store() as one, open_store() as two:
            calls = [
                (one if n % 2 else two).acquire_lease("t", owner=f"o{n}", ttl=LONG, save=checkpoint(state={"n": n}))
                for n in range(50)
            ]
            got = await asyncio.gather(*calls)
            entry, live = await one.load("t"), await two.live_lease("t")

        winners = [(n, lease) for n, lease in enumerate(got) if lease is not None]
        assert 1 == len(winners)
        assert entry is not None
        assert (0, {"n": winners[0][0]}) == (entry.sequence, entry.checkpoint.frozen_state)
        assert live is not None
        assert f"o{winners[0][0]}" == live.owner
