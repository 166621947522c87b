"""Saves on a condition."""

from __future__ import annotations

import asyncio
import os

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, SHORT, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._time import outlive
from strata_core.capabilities import Capability
from strata_core.errors import ConflictError, LeaseHeldError
from strata_core.records import Revision
from strata_core.testing import FakeClock

__all__ = ["ConditionalSaveTests"]


class ConditionalSaveTests(PortTests):
    """Saves that depend on what is latest."""

    @promise("conditional-1")
    async def test_a_conditional_save_appends_when_the_expected_checkpoint_is_the_latest(
        self, open_store: OpenStore
    ) -> None:
        """A conditional save appends when the thread's latest checkpoint is the expected one: None for no
        checkpoint, a sequence, or a revision.
        """
        async with open_store() as one, open_store() as two:
            first = await one.save_if_latest(checkpoint(state={"n": 0}), None)
            second = await two.save_if_latest(checkpoint(state={"n": 1}), 0)
            latest = await one.load("t")
            assert latest is not None
            third = await two.save_if_latest(checkpoint(state={"n": 2}), latest.revision)
            await one.acquire_lease("only leased", owner="o", ttl=LONG)
            leased = await two.save_if_latest(checkpoint("only leased"), None)

        assert [0, 1, 2] == [first, second, third]
        assert 0 == leased

    @promise("conditional-2")
    async def test_a_conditional_save_is_refused_when_another_checkpoint_is_the_latest(
        self, open_store: OpenStore
    ) -> None:
        """A conditional save on anything but the latest checkpoint raises ConflictError, which names the thread and
        the latest sequence, and appends nothing.
        """
        async with open_store() as one, open_store() as two:
            await one.save(checkpoint(state={"n": 0}))
            stale = await two.load("t")
            assert stale is not None
            await one.save(checkpoint(state={"n": 1}))
            refused = []
            for expected in (None, 0, 2, 2**31 - 1, stale.revision, Revision(1, os.urandom(8))):
                with pytest.raises(ConflictError) as caught:
                    await two.save_if_latest(checkpoint(state={"n": "refused"}), expected)
                refused.append((caught.value.thread_id, caught.value.latest))
            latest = await one.load("t")

        assert [("t", 1)] * 6 == refused
        assert latest is not None
        assert (1, {"n": 1}) == (latest.sequence, latest.checkpoint.frozen_state)

    @promise("conditional-3")
    async def test_a_thread_without_checkpoints_has_no_latest_one(self, open_store: OpenStore) -> None:
        """On a thread without checkpoints a conditional save on a sequence or revision raises ConflictError, and
        makes no thread.
        """
        async with open_store() as store:
            for expected in (0, 5, Revision(0, os.urandom(8))):
                with pytest.raises(ConflictError) as caught:
                    await store.save_if_latest(checkpoint(), expected)

                assert caught.value.latest is None
            assert await store.load("t") is None
            assert 0 == await store.save(checkpoint())

    @promise("conditional-4")
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_revision_tells_a_purged_and_restarted_thread_from_its_earlier_life(
        self, open_store: OpenStore
    ) -> None:
        """A revision of a thread that was purged and has started anew is not the latest, though the sequence is the
        same: a save that depends on it raises ConflictError.
        """
        async with open_store() as one, open_store() as two:
            await one.save(completed())
            old = await one.load("t")
            assert old is not None
            purged = await two.purge(BASE.replace(year=2030))
            await two.save(checkpoint(state={"n": "new life"}))
            with pytest.raises(ConflictError):
                await one.save_if_latest(checkpoint(state={"n": "old life"}), old.revision)
            with pytest.raises(ConflictError):
                await one.acquire_lease("t", owner="o", ttl=LONG, expected=old.revision)
            latest = await one.load("t")

        assert 1 == purged
        assert latest is not None
        assert (0, {"n": "new life"}) == (latest.sequence, latest.checkpoint.frozen_state)

    @promise("conditional-5")
    async def test_of_many_conditional_saves_at_once_exactly_one_wins(self, open_store: OpenStore) -> None:
        """Of fifty conditional saves on the same checkpoint, from two handles at once, one appends and 49 raise
        ConflictError.
        """
        async with open_store() as one, open_store() as two:
            await one.save(checkpoint())
            calls = [(one if n % 2 else two).save_if_latest(checkpoint(state={"n": n}), 0) for n in range(50)]
            got = await asyncio.gather(*calls, return_exceptions=True)
            latest = await one.load("t")

        winners = [n for n, outcome in enumerate(got) if outcome == 1]
        assert 1 == len(winners)
        assert 49 == sum(type(outcome) is ConflictError for outcome in got)
        assert latest is not None
        assert (1, {"n": winners[0]}) == (latest.sequence, latest.checkpoint.frozen_state)

    @promise("conditional-6")
    async def test_an_unleased_save_is_refused_while_somebody_holds_the_thread(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """A conditional save with unleased=True raises LeaseHeldError, which names the owner, while a live lease holds
        the thread, appends nothing, and passes once the lease is released or has expired.
        """
        async with open_store() as one, open_store() as two:
            lease = await one.acquire_lease("t", owner="worker-7", ttl=LONG, save=checkpoint())
            assert lease is not None
            with pytest.raises(LeaseHeldError) as caught:
                await two.save_if_latest(checkpoint(state={"n": 1}), 0, unleased=True)
            held = await two.load("t")
            await one.release_lease(lease)
            second = await two.save_if_latest(checkpoint(state={"n": 1}), 0, unleased=True)
            lease = await one.acquire_lease("t", owner="worker-7", ttl=SHORT)
            assert lease is not None
            await outlive(two, clock, lease, SHORT)
            third = await two.save_if_latest(checkpoint(state={"n": 2}), 1, unleased=True)

        assert ("worker-7", "t", 0) == (caught.value.owner, caught.value.thread_id, caught.value.latest)
        assert held is not None
        assert 0 == held.sequence
        assert [1, 2] == [second, third]
