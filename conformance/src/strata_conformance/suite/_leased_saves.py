"""Leases and saves together."""

from __future__ import annotations

import asyncio
import os

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import LONG, SHORT, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._leases import Way, lost, take
from strata_conformance.suite._time import outlive
from strata_core.capabilities import Capability
from strata_core.errors import ConflictError, LeaseLostError
from strata_core.records import Revision
from strata_core.testing import FakeClock

__all__ = ["LeasedSaveTests"]


class LeasedSaveTests(PortTests):
    """Saves under a lease, and leases that are taken with a save."""

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
            second = await take(two, owner="second")
            with pytest.raises(LeaseLostError):
                await one.save_under_lease(checkpoint(state={"n": "zombie"}), first)
            got.append(await two.save_under_lease(checkpoint(), second))
            got.append(await one.save_under_lease(checkpoint(), second))

        assert list(range(2 if server else 4)) == got

    @promise("lease-11")
    async def test_the_last_save_can_release_the_lease(self, open_store: OpenStore) -> None:
        """A save with release=True appends and gives the lease back in one step; without it the lease stays."""
        async with open_store() as store:
            lease = await take(store)
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
            await take(one)
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
            lease = await take(store)
            await store.save_under_lease(checkpoint(), lease, expected=None)
            for expected in (None, 1, Revision(0, os.urandom(8))):
                with pytest.raises(ConflictError) as caught:
                    await store.save_under_lease(checkpoint(), lease, expected=expected, release=True)

                assert not isinstance(caught.value, LeaseLostError)
            live = await store.live_lease("t")
            second = await store.save_under_lease(checkpoint(), lease, expected=0)

        assert lease == live
        assert 1 == second

    @promise("lease-20")
    async def test_saves_without_the_lease_neither_need_nor_disturb_it(self, open_store: OpenStore) -> None:
        """A plain save and a conditional save append while somebody else holds the thread, and leave the lease as it
        is.
        """
        async with open_store() as one, open_store() as two:
            lease = await take(one)
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
