"""Purging old threads."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, SHORT, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._time import outlive
from strata_core.capabilities import Capability
from strata_core.errors import UnsupportedError
from strata_core.records import CheckpointStatus, GraphIdentity, ThreadQuery, ThreadState
from strata_core.testing import FakeClock

__all__ = ["RetentionTests"]

SECOND = timedelta(seconds=1)
MICRO = timedelta(microseconds=1)
LATER = BASE + timedelta(days=1)
purges = pytest.mark.requires(Capability.RETENTION)


async def _kept(store: Store, *thread_ids: str) -> list[str]:
    return [thread_id for thread_id in thread_ids if await store.load(thread_id) is not None]


class RetentionTests(PortTests):
    """What a purge takes, and what it leaves."""

    @promise("purge-1")
    @purges
    async def test_a_purge_takes_old_finished_threads(self, open_store: OpenStore) -> None:
        """A purge takes the threads whose latest checkpoint is completed or ended and older than the cutoff, returns
        how many, and leaves all others; purging again takes nothing more.
        """
        everything = [status.value for status in CheckpointStatus] + ["resumed", "completed later", "went on"]
        async with open_store() as store:
            for status in CheckpointStatus:
                await store.save(completed(status.value))
                await store.save(checkpoint(status.value, status))
            await store.save(checkpoint("resumed", CheckpointStatus.INTERRUPTED, resumed_at=BASE))
            await store.save(completed("completed later", at=LATER))
            await store.save(completed("went on"))
            await store.save(checkpoint("went on"))
            got = [await store.purge(LATER), await store.purge(LATER)]
            kept = await _kept(store, *everything)

        assert [2, 0] == got
        assert [thread for thread in everything if thread not in ("completed", "ended")] == kept

    @promise("purge-2")
    @purges
    @pytest.mark.parametrize("state", list(ThreadState))
    async def test_a_purge_takes_the_states_that_are_named(self, open_store: OpenStore, state: ThreadState) -> None:
        """A purge with states takes old threads in these states and no others, resumed ones only when named."""
        async with open_store() as store:
            for status in CheckpointStatus:
                await store.save(checkpoint(status.value, status))
            await store.save(checkpoint("resumed", CheckpointStatus.FAILED, resumed_at=BASE))
            got = await store.purge(LATER, states={state})
            kept = await _kept(store, *(state.value for state in ThreadState))

        assert 1 == got
        assert [other.value for other in ThreadState if other is not state] == kept

    @promise("purge-3")
    @purges
    async def test_several_states_or_none_can_be_named(self, open_store: OpenStore) -> None:
        """A purge takes threads in any of the named states, oldest first whatever their state; of no states, none."""
        async with open_store() as store:
            for n, status in enumerate((CheckpointStatus.FAILED, CheckpointStatus.ENDED) * 3):
                await store.save(checkpoint(f"t{n}", status, at=BASE + n * SECOND))
            nothing = await store.purge(LATER, states=frozenset())
            some = await store.purge(LATER, states=[ThreadState.ENDED, ThreadState.FAILED], limit=3)
            kept = await _kept(store, *(f"t{n}" for n in range(6)))

        assert [0, 3] == [nothing, some]
        assert ["t3", "t4", "t5"] == kept

    @promise("purge-4")
    @purges
    @pytest.mark.parametrize(
        ("updated", "cutoff", "taken"),
        [
            (BASE, BASE, 0),
            (BASE, BASE + SECOND, 1),
            (BASE, BASE - SECOND, 0),
            (BASE - MICRO, BASE, 1),
            (BASE, BASE + MICRO, 0),
            (BASE + 900_000 * MICRO, BASE + 950_000 * MICRO, 0),
            (BASE, BASE + 999_999 * MICRO, 0),
            (BASE + 999_999 * MICRO, BASE + SECOND, 1),
            (BASE + 100_000 * MICRO, BASE + 1_900_000 * MICRO, 1),
        ],
    )
    async def test_the_cutoff_is_excluded_and_compared_to_the_second(
        self, open_store: OpenStore, updated: datetime, cutoff: datetime, taken: int
    ) -> None:
        """A thread is old when its second lies before the cutoff's second; the cutoff's own second is excluded. The
        time of a thread is the later of created_at and resumed_at.
        """
        async with open_store() as store:
            await store.save(completed("created", at=updated))
            await store.save(completed("resumed", at=BASE - LONG, resumed_at=updated))
            got = await store.purge(cutoff, states={ThreadState.COMPLETED, ThreadState.RESUMED})
            kept = await _kept(store, "created", "resumed")

        assert 2 * taken == got
        assert (["created", "resumed"] if not taken else []) == kept

    @promise("purge-5")
    @purges
    async def test_the_oldest_threads_go_first(self, open_store: OpenStore) -> None:
        """A purge takes the oldest threads first, up to `limit`."""
        ages = [3, 0, 4, 1, 2, 6, 5]
        async with open_store() as store:
            for age in ages:
                await store.save(completed(f"t{age}", at=BASE - age * SECOND))
            threads = [f"t{n}" for n in range(7)]
            rounds = [(await store.purge(LATER, limit=2), await _kept(store, *threads)) for _ in range(4)]

        assert [
            (2, ["t0", "t1", "t2", "t3", "t4"]),
            (2, ["t0", "t1", "t2"]),
            (2, ["t0"]),
            (1, []),
        ] == rounds

    @promise("purge-6")
    @purges
    async def test_a_held_thread_stays_and_does_not_use_up_the_limit(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """A purge leaves threads that a live lease holds, with their leases, and goes on past them: skipped threads do
        not use up `limit`. An expired or released lease keeps nothing.
        """
        async with open_store() as one, open_store() as two:
            for n in range(12):
                await one.save(completed(f"t{n:02}", at=BASE + n * SECOND))
            late = await one.acquire_lease("t08", owner="o", ttl=SHORT)
            back = await one.acquire_lease("t09", owner="o", ttl=LONG)
            assert late is not None
            assert back is not None
            await one.release_lease(back)
            await outlive(one, clock, late, SHORT)
            leases = [await one.acquire_lease(f"t{n:02}", owner="o", ttl=LONG) for n in range(8)]
            got = [await two.purge(LATER, limit=2) for _ in range(3)]
            kept = await _kept(two, *(f"t{n:02}" for n in range(12)))
            live = [await two.live_lease(f"t{n:02}") for n in range(8)]

        assert [2, 2, 0] == got
        assert [f"t{n:02}" for n in range(8)] == kept
        assert leases == live

    @promise("purge-7")
    @purges
    async def test_a_purged_thread_is_gone_whole(self, open_store: OpenStore, clock: FakeClock) -> None:
        """A purged thread is gone whole, for every handle: no checkpoint at any sequence, whoever has loaded it before,
        no lease, no write ID is remembered; the ID starts over at sequence 0.
        """
        write_id = b"remember"
        async with open_store() as store, open_store() as other:
            for n in range(20):
                await store.save(checkpoint(state={"n": n}))
            known = [await handle.load("t", at=n) for handle in (store, other) for n in range(20)]
            lease = await store.acquire_lease("t", owner="o", ttl=SHORT)
            assert lease is not None
            await outlive(store, clock, lease, SHORT)
            await store.save(completed(), write_id=write_id)
            purged = await store.purge(LATER)
            loads = [await handle.load("t", at=at) for handle in (store, other) for at in (*range(21), None)]
            live = await store.live_lease("t")
            first = await store.save(checkpoint(state={"n": "new"}), write_id=write_id)
            entry, old = await other.load("t", at=0), await store.load("t", at=1)

        assert 1 == purged
        assert None not in known
        assert [None] * 44 == loads
        assert live is None
        assert 0 == first
        assert old is None
        assert entry is not None
        assert {"n": "new"} == entry.checkpoint.frozen_state

    @promise("purge-8")
    @purges
    @pytest.mark.requires(Capability.QUERY)
    async def test_a_purged_thread_is_not_listed(self, open_store: OpenStore) -> None:
        """A purged thread is in no listing, by whatever filter, and has no log."""
        async with open_store() as store:
            for thread_id, at in (("t", BASE), ("kept", LATER)):
                graph = GraphIdentity("g", "1")
                await store.save(completed(thread_id, at=at, metadata={"k": "v"}, graph=graph))
            await store.purge(LATER)
            queries = [
                ThreadQuery(),
                ThreadQuery(states={ThreadState.COMPLETED}),
                ThreadQuery(metadata={"k": "v"}),
                ThreadQuery(updated_after=BASE - SECOND),
                ThreadQuery(updated_before=LATER + SECOND),
                ThreadQuery(graph_id="g"),
                ThreadQuery(graph_version="1"),
                ThreadQuery(leased=False),
            ]
            pages = [await store.list_threads(query) for query in queries]
            log = await store.get_log("t")

        assert [["kept"]] * len(queries) == [[thread.thread_id for thread in page.threads] for page in pages]
        assert [] == list(log.entries)

    @promise("purge-9")
    @purges
    async def test_purges_at_once_share_the_work(self, open_store: OpenStore) -> None:
        """Two purges at once take each thread once: together they count what was there."""
        async with open_store() as one, open_store() as two:
            await asyncio.gather(*(one.save(completed(f"t{n}")) for n in range(30)))
            got = await asyncio.gather(one.purge(LATER), two.purge(LATER))
            kept = await _kept(one, *(f"t{n}" for n in range(30)))

        assert 30 == sum(got)
        assert [] == kept

    @promise("purge-10")
    @purges
    async def test_a_save_that_races_a_purge_is_not_lost(self, open_store: OpenStore) -> None:
        """A checkpoint that is saved while a purge is under way is there afterwards, at the sequence that its save
        returned: on the old log, or first on a new one.
        """
        async with open_store() as one, open_store() as two:
            for n in range(20):
                await one.save(completed(f"t{n}"))
            saves = [two.save(checkpoint(f"t{n}", state={"n": n})) for n in reversed(range(20))]
            purged, *sequences = await asyncio.gather(one.purge(LATER), *saves)
            entries = [await one.load(f"t{n}") for n in reversed(range(20))]

        assert sequences == [entry.sequence for entry in entries if entry is not None]
        assert list(reversed(range(20))) == [e.checkpoint.frozen_state["n"] for e in entries if e is not None]
        assert purged == sequences.count(0)

    @promise("purge-12")
    @purges
    async def test_a_purge_takes_no_thread_that_is_leased_meanwhile(self, open_store: OpenStore) -> None:
        """A lease that is taken while a purge is under way is held afterwards, and its thread is whole, or was gone
        before: who holds a lease is not purged.
        """
        threads = [f"t{n}" for n in range(20)]
        async with open_store() as one, open_store() as two:
            await asyncio.gather(*(one.save(completed(thread)) for thread in threads))
            acquires = [two.acquire_lease(thread, owner="o", ttl=LONG) for thread in reversed(threads)]
            purged, leases = await asyncio.gather(one.purge(LATER), asyncio.gather(*acquires))
            live = [await one.live_lease(thread) for thread in reversed(threads)]
            kept = await _kept(one, *threads)

        assert None not in leases
        assert leases == live
        assert 20 == purged + len(kept)

    @promise("purge-13")
    @purges
    async def test_a_purge_of_hundreds_of_threads_takes_as_many_as_it_may(self, open_store: OpenStore) -> None:
        """A purge takes hundreds of threads in one call, up to `limit`, and a page lists as many."""
        threads = [f"t{n:03}" for n in range(260)]
        async with open_store() as store:
            await asyncio.gather(*(store.save(completed(thread)) for thread in threads))
            if Capability.QUERY in store.capabilities:
                page = await store.list_threads(ThreadQuery(limit=257))
                assert list(reversed(threads))[:257] == [thread.thread_id for thread in page.threads]
                assert page.next_cursor is not None
            got = [await store.purge(LATER, limit=257), await store.purge(LATER)]

        assert [257, 3] == got

    @promise("purge-11")
    @pytest.mark.refuses(Capability.RETENTION)
    async def test_a_store_that_cannot_purge_says_so(self, open_store: OpenStore) -> None:
        """A store that does not declare retention raises UnsupportedError from purge, and deletes nothing."""
        async with open_store() as store:
            await store.save(completed())
            with pytest.raises(UnsupportedError) as caught:
                await store.purge(LATER)
            kept = await _kept(store, "t")

        assert Capability.RETENTION is caught.value.capability
        assert ["t"] == kept
