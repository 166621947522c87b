"""Calls whose request or answer is lost, seen from the application."""

from __future__ import annotations

import os
from typing import Any, Final, cast

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import LONG, checkpoint
from strata_conformance.stores import Fault, FaultyStore, When
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_core.errors import ConflictError, LeaseLostError, StoreUnavailableError
from strata_core.ports import StorePorts

__all__ = ["LostCallTests"]

lost = pytest.mark.parametrize("when", ["before", "after"])
others = pytest.mark.parametrize("others", [0, 3], ids=["alone", "others save meanwhile"])
MINE: Final = {"n": "mine"}


def _faulty(store: Store, op: str, when: When) -> FaultyStore:
    return FaultyStore(cast(StorePorts, store), [Fault(op, 1, when)])


async def _meanwhile(store: Store, others: int) -> None:
    for n in range(others):
        await store.save(checkpoint(state={"n": n}))


async def _stored(store: Store) -> list[Any]:
    states: list[Any] = []
    while (entry := await store.load("t", at=len(states))) is not None:
        states.append(entry.checkpoint.frozen_state["n"])
    return states


class LostCallTests(PortTests):
    """A write whose outcome its caller does not know is sent again under its write ID."""

    @promise("lost-1")
    @lost
    @others
    async def test_a_save_that_was_lost_is_stored_once(self, open_store: OpenStore, when: When, others: int) -> None:
        """A save whose request or answer was lost is stored once when it is sent again under its write ID: where it was
        stored before, whoever saved since, or else behind what others saved.
        """
        write_id = os.urandom(8)
        async with open_store() as inner, open_store() as other, _faulty(inner, "save", when) as store:
            with pytest.raises(StoreUnavailableError):
                await store.save(checkpoint(state=MINE), write_id=write_id)
            await _meanwhile(other, others)
            sequence = await store.save(checkpoint(state=MINE), write_id=write_id)
            stored = await _stored(other)

        assert (0 if when == "after" else others) == sequence
        assert (["mine", *range(others)] if when == "after" else [*range(others), "mine"]) == stored

    @promise("lost-2")
    @lost
    @others
    async def test_a_conditional_save_that_was_lost_is_judged_once(
        self, open_store: OpenStore, when: When, others: int
    ) -> None:
        """A conditional save whose answer was lost returns its sequence when it is sent again, whoever saved since; one
        whose request was lost is judged then, and conflicts with what others saved.
        """
        write_id = os.urandom(8)
        async with open_store() as inner, open_store() as other, _faulty(inner, "save_if_latest", when) as store:
            await other.save(checkpoint(state={"n": "first"}))
            with pytest.raises(StoreUnavailableError):
                await store.save_if_latest(checkpoint(state=MINE), 0, write_id=write_id)
            await _meanwhile(other, others)
            if when == "before" and others:
                with pytest.raises(ConflictError):
                    await store.save_if_latest(checkpoint(state=MINE), 0, write_id=write_id)
                expected = ["first", *range(others)]
            else:
                assert 1 == await store.save_if_latest(checkpoint(state=MINE), 0, write_id=write_id)
                expected = ["first", "mine", *range(others)]
            stored = await _stored(other)

        assert expected == stored

    @promise("lost-3")
    @lost
    @others
    async def test_an_acquire_that_was_lost_is_done_once(self, open_store: OpenStore, when: When, others: int) -> None:
        """An acquire with a save whose request or answer was lost gives the lease when it is sent again under its write
        ID, and its checkpoint stands once; where it had been done, nobody else got the lease meanwhile.
        """
        write_id = os.urandom(8)
        async with open_store() as inner, open_store() as other, _faulty(inner, "acquire_lease", when) as store:

            async def acquire() -> Any:
                return await store.acquire_lease(
                    "t", owner="me", ttl=LONG, save=checkpoint(state=MINE), write_id=write_id
                )

            with pytest.raises(StoreUnavailableError):
                await acquire()
            if when == "after":
                assert await other.acquire_lease("t", owner="other", ttl=LONG) is None
            await _meanwhile(other, others)
            lease = await acquire()
            live, stored = await other.live_lease("t"), await _stored(other)

        assert live is not None
        assert (lease.token, "me") == (live.token, live.owner)
        assert (0 if when == "after" else others) == lease.saved
        assert 1 == stored.count("mine")

    @promise("lost-4")
    @lost
    async def test_a_save_with_release_that_was_lost_is_done_once(self, open_store: OpenStore, when: When) -> None:
        """A save under a lease with release=True whose answer was lost returns its sequence when it is sent again, also
        when another holds the thread and saved since; one whose request was lost is done then, under the lease that is
        still held.
        """
        write_id = os.urandom(8)
        async with open_store() as inner, open_store() as other, _faulty(inner, "save_under_lease", when) as store:
            lease = await store.acquire_lease("t", owner="me", ttl=LONG)
            assert lease is not None
            with pytest.raises(StoreUnavailableError):
                await store.save_under_lease(checkpoint(state=MINE), lease, release=True, write_id=write_id)
            theirs = await other.acquire_lease("t", owner="other", ttl=LONG)
            if theirs is not None:
                await other.save_under_lease(checkpoint(state={"n": "theirs"}), theirs)
            sequence = await store.save_under_lease(checkpoint(state=MINE), lease, release=True, write_id=write_id)
            live, stored = await other.live_lease("t"), await _stored(other)
            with pytest.raises(LeaseLostError):
                await store.save_under_lease(checkpoint(state=MINE), lease)

        assert 0 == sequence
        assert (theirs is not None) == (when == "after")
        assert ["mine", "theirs"][: 1 + (theirs is not None)] == stored
        assert (theirs is None) == (live is None)
