"""Calls that are repeated because their answer was lost."""

from __future__ import annotations

import os

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import LONG, SHORT, checkpoint
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._time import outlive
from strata_core.errors import ConflictError, LeaseLostError
from strata_core.testing import FakeClock

__all__ = ["RepeatTests"]


class RepeatTests(PortTests):
    """A write that is sent again under its write ID is recognised."""

    @promise("repeat-1")
    async def test_a_repeated_save_answers_with_its_sequence_and_appends_nothing(self, open_store: OpenStore) -> None:
        """A save that is repeated with its write ID, by any handle, returns the sequence that the first one got, and
        appends nothing.
        """
        write_id = os.urandom(8)
        async with open_store() as one, open_store() as two:
            got = [
                await one.save(checkpoint(state={"n": 0}), write_id=write_id),
                await one.save(checkpoint(state={"n": 0}), write_id=write_id),
                await two.save(checkpoint(state={"n": 0}), write_id=write_id),
                await two.save(checkpoint(state={"n": "other content"}), write_id=write_id),
            ]
            await two.save(checkpoint(state={"n": 1}))
            got.append(await one.save(checkpoint(state={"n": 0}), write_id=write_id))
            latest = await one.load("t")

        assert [0] * 5 == got
        assert latest is not None
        assert (1, {"n": 1}) == (latest.sequence, latest.checkpoint.frozen_state)

    @promise("repeat-2")
    async def test_a_repeated_save_is_recognised_among_the_latest_eight(self, open_store: OpenStore) -> None:
        """A write is recognised as long as it is among the thread's latest 8, whoever saved after it, or took and gave
        back its lease.
        """
        ids = [os.urandom(8) for _ in range(11)]
        async with open_store() as one, open_store() as two:
            for n, write_id in enumerate(ids):
                await (one if n % 2 else two).save(checkpoint(state={"n": n}), write_id=write_id)
            lease = await two.acquire_lease("t", owner="o", ttl=LONG)
            assert lease is not None
            got = [await one.save(checkpoint(state={"n": n}), write_id=ids[n]) for n in range(3, 11)]
            await two.release_lease(await two.renew_lease(lease, ttl=LONG))
            again = [await two.save_if_latest(checkpoint(state={"n": n}), n - 1, write_id=ids[n]) for n in range(3, 11)]
            latest = await two.load("t")

        assert list(range(3, 11)) == got == again
        assert latest is not None
        assert 10 == latest.sequence

    @promise("repeat-3")
    async def test_only_a_whole_write_id_is_recognised(self, open_store: OpenStore) -> None:
        """A write ID that happens to stand across the border of two others, or shares a half with one, is not taken
        for a repetition.
        """
        async with open_store() as store:
            await store.save(checkpoint(), write_id=b"aaaabbbb")
            await store.save(checkpoint(), write_id=b"ccccdddd")
            await store.save(checkpoint(), write_id=b"\x00" * 8)
            got = [
                await store.save(checkpoint(), write_id=b"bbbbcccc"),
                await store.save(checkpoint(), write_id=b"ddddaaaa"),
                await store.save(checkpoint(), write_id=b"ccccdddd"),
                await store.save(checkpoint(), write_id=b"aaaaeeee"),
                await store.save(checkpoint(), write_id=b"eeeebbbb"),
            ]

        assert [3, 4, 1, 5, 6] == got

    @promise("repeat-4")
    async def test_a_repeated_conditional_save_is_not_told_that_it_conflicts_with_itself(
        self, open_store: OpenStore
    ) -> None:
        """A repetition is recognised before the condition is judged: a conditional save that had been done is not
        refused because of itself or of what came after it.
        """
        write_id = os.urandom(8)
        async with open_store() as store:
            await store.save(checkpoint())
            first = await store.save_if_latest(checkpoint(state={"n": 1}), 0, write_id=write_id)
            await store.save(checkpoint(state={"n": 2}))
            again = await store.save_if_latest(checkpoint(state={"n": 1}), 0, write_id=write_id)
            with pytest.raises(ConflictError):
                await store.save_if_latest(checkpoint(state={"n": 1}), 0, write_id=os.urandom(8))

        assert 1 == first == again

    @promise("repeat-5")
    async def test_a_repeated_save_under_lease_is_recognised_after_the_lease_is_gone(
        self, open_store: OpenStore
    ) -> None:
        """A save under a lease that had been done answers with its sequence, also when it released the lease."""
        write_id = os.urandom(8)
        async with open_store() as store:
            lease = await store.acquire_lease("t", owner="o", ttl=LONG)
            assert lease is not None
            first = await store.save_under_lease(checkpoint(), lease, release=True, write_id=write_id)
            again = await store.save_under_lease(checkpoint(), lease, release=True, write_id=write_id)
            with pytest.raises(LeaseLostError):
                await store.save_under_lease(checkpoint(), lease, write_id=os.urandom(8))
            latest = await store.load("t")

        assert 0 == first == again
        assert latest is not None
        assert 0 == latest.sequence

    @promise("repeat-6")
    async def test_a_repeated_acquire_gives_the_same_lease(self, open_store: OpenStore) -> None:
        """An acquire that is repeated with its write ID while its lease lives returns that lease, with and without a
        checkpoint; the checkpoint is not appended again.
        """
        bare, saving = os.urandom(8), os.urandom(8)
        async with open_store() as one, open_store() as two:
            first = await one.acquire_lease("bare", owner="o", ttl=LONG, write_id=bare)
            again = await two.acquire_lease("bare", owner="o", ttl=LONG, write_id=bare)
            saved = await one.acquire_lease("t", owner="o", ttl=LONG, save=checkpoint(), write_id=saving)
            resaved = await two.acquire_lease(
                "t", owner="o", ttl=LONG, save=checkpoint(), expected=None, write_id=saving
            )
            latest = await one.load("t")

        assert first is not None
        assert again is not None
        assert (first.token, first.expires_at) == (again.token, again.expires_at)
        assert saved is not None
        assert resaved is not None
        assert (saved.token, saved.expires_at, 0) == (resaved.token, resaved.expires_at, resaved.saved)
        assert latest is not None
        assert 0 == latest.sequence

    @promise("repeat-7")
    async def test_a_repeated_acquire_never_hands_out_somebody_elses_lease(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """An acquire with a checkpoint that is repeated after its lease has passed on raises LeaseLostError; it never
        returns the token of the present holder, and appends nothing.
        """
        write_id = os.urandom(8)
        async with open_store() as one, open_store() as two:
            mine = await one.acquire_lease("t", owner="me", ttl=SHORT, save=checkpoint(), write_id=write_id)
            assert mine is not None
            await outlive(one, clock, mine, SHORT)
            theirs = await two.acquire_lease("t", owner="they", ttl=LONG)
            with pytest.raises(LeaseLostError):
                await one.acquire_lease("t", owner="me", ttl=SHORT, save=checkpoint(), write_id=write_id)
            live, latest = await one.live_lease("t"), await one.load("t")

        assert theirs is not None
        assert live is not None
        assert (theirs.token, "they") == (live.token, live.owner)
        assert latest is not None
        assert 0 == latest.sequence

    @promise("repeat-8")
    async def test_a_repeated_acquire_whose_lease_has_expired_is_told_so(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """An acquire with a checkpoint that is repeated after its lease has expired or was released raises
        LeaseLostError, also when nobody holds the thread.
        """
        expired, released = os.urandom(8), os.urandom(8)
        async with open_store() as store:
            one = await store.acquire_lease("one", owner="o", ttl=SHORT, save=checkpoint("one"), write_id=expired)
            two = await store.acquire_lease("two", owner="o", ttl=LONG, save=checkpoint("two"), write_id=released)
            assert one is not None
            assert two is not None
            await store.release_lease(two)
            await outlive(store, clock, one, SHORT)
            with pytest.raises(LeaseLostError):
                await store.acquire_lease("one", owner="o", ttl=SHORT, save=checkpoint("one"), write_id=expired)
            with pytest.raises(LeaseLostError):
                await store.acquire_lease("two", owner="o", ttl=LONG, save=checkpoint("two"), write_id=released)
            sequences = [entry.sequence for t in ("one", "two") if (entry := await store.load(t)) is not None]

        assert [0, 0] == sequences

    @promise("repeat-9")
    async def test_a_write_id_belongs_to_its_thread(self, open_store: OpenStore) -> None:
        """The same write ID on another thread is another write."""
        write_id = os.urandom(8)
        async with open_store() as store:
            for thread in ("a", "b"):
                await store.save(checkpoint(thread), write_id=write_id)
            entries = [await store.load(thread) for thread in ("a", "b")]

        assert [("a", 0), ("b", 0)] == [(e.checkpoint.thread_id, e.sequence) for e in entries if e is not None]
