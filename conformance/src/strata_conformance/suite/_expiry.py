"""Finished threads that expire by themselves: nowhere unless it is asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, SHORT, checkpoint, completed
from strata_conformance.suite._base import OpenExpiringStore, OpenStore, PortTests, Store
from strata_core.blobs import InMemoryBlobStore
from strata_core.capabilities import Capability
from strata_core.errors import LeaseLostError, UnsupportedError
from strata_core.options import Offload
from strata_core.records import Checkpoint, CheckpointStatus, GraphIdentity, ThreadQuery, ThreadState, Wait, WaitKind
from strata_core.testing import FakeClock

__all__ = ["ExpiryTests", "expired"]

LATER: Final = BASE + timedelta(days=1)
expires = pytest.mark.requires(Capability.EXPIRY)


async def _saved_under_lease(store: Store, record: Checkpoint) -> None:
    lease = await store.acquire_lease(record.thread_id, owner="o", ttl=LONG)
    assert lease is not None
    await store.save_under_lease(record, lease, release=True)


async def _saved_with_an_acquire(store: Store, record: Checkpoint) -> None:
    lease = await store.acquire_lease(record.thread_id, owner="o", ttl=LONG, save=record)
    assert lease is not None
    await store.release_lease(lease)


WAYS: Final[dict[str, Callable[[Store, Checkpoint], Awaitable[Any]]]] = {
    "save": lambda store, record: store.save(record),
    "save_if_latest": lambda store, record: store.save_if_latest(record, 0),
    "save_under_lease": _saved_under_lease,
    "acquire_lease": _saved_with_an_acquire,
}


async def expired(store: Store, clock: FakeClock, ttl: timedelta, thread_ids: Iterable[str]) -> None:
    """Return when these threads are gone, whose ttl has begun; an injected clock is moved to the very moment."""
    if Capability.SERVER_CLOCK not in store.capabilities:
        clock.advance(ttl)
        return
    end = time.monotonic() + ttl.total_seconds() + 10
    for thread_id in thread_ids:
        while await store.load(thread_id) is not None:
            assert time.monotonic() < end, "a finished thread outlived its ttl by ten seconds"
            await asyncio.sleep(0.01)


async def _listed(store: Store, query: ThreadQuery) -> list[str]:
    """Return what is listed, newest first, over all pages; each but the last must be full."""
    listed: list[str] = []
    while True:
        page = await store.list_threads(query)
        listed += [thread.thread_id for thread in page.threads]
        if page.next_cursor is None:
            return listed
        assert query.limit == len(page.threads)
        query = attrs.evolve(query, cursor=page.next_cursor)


class ExpiryTests(PortTests):
    """A ttl for finished threads: define the fixture ``open_expiring_store`` if the store has one."""

    @promise("expiry-1")
    async def test_a_finished_thread_stays_until_it_is_purged(self, open_store: OpenStore, clock: FakeClock) -> None:
        """A store that was not told to let threads expire keeps a finished thread whole, however old it is and however
        much time passes, until a purge takes it.
        """
        async with open_store() as store:
            for thread_id, at in (("old", BASE.replace(year=1970)), ("t", BASE)):
                await store.save(checkpoint(thread_id, at=at))
                await store.save(completed(thread_id, at=at, state={"n": 1}))
            clock.advance(timedelta(days=36_500))
        async with open_store() as store:
            entries = [await store.load(thread_id, at=at) for thread_id in ("old", "t") for at in (0, None)]

        assert [0, 1, 0, 1] == [None if entry is None else entry.sequence for entry in entries]

    @promise("expiry-2")
    @expires
    @pytest.mark.parametrize("way", list(WAYS))
    @pytest.mark.parametrize("status", [CheckpointStatus.COMPLETED, CheckpointStatus.ENDED])
    async def test_a_finished_thread_expires_whole(
        self, open_expiring_store: OpenExpiringStore, clock: FakeClock, status: CheckpointStatus, way: str
    ) -> None:
        """A thread whose latest checkpoint is completed or ended, by whichever call it was saved, is gone whole once
        the ttl has passed since: no checkpoint at any sequence, for any handle, and no write ID is remembered; the ID
        starts over at sequence 0.
        """
        write_id = b"remember"
        async with open_expiring_store(SHORT) as store, open_expiring_store(LONG) as other:
            await store.save(checkpoint(state={"big": "x" * 1000}), write_id=write_id)
            await WAYS[way](store, checkpoint(status=status, state={"n": 1}))
            before = await other.load("t")
            await expired(store, clock, SHORT, ["t"])
            loads = [await handle.load("t", at=at) for handle in (store, other) for at in (0, 1, None)]
            first = await other.save(checkpoint(state={"n": "new"}), write_id=write_id)
            entry, old = await store.load("t"), await store.load("t", at=1)

        assert before is None or 1 == before.sequence  # a server's clock may have been fast
        assert [None] * 6 == loads
        assert 0 == first
        assert old is None
        assert entry is not None
        assert {"n": "new"} == entry.checkpoint.frozen_state

    @promise("expiry-3")
    @expires
    async def test_other_threads_never_expire(self, open_expiring_store: OpenExpiringStore, clock: FakeClock) -> None:
        """A thread that is not finished never expires, nor does a resumed one, whatever its status."""
        kept = [status for status in CheckpointStatus if status.value not in ("completed", "ended")]
        async with open_expiring_store(SHORT) as store:
            for status in kept:
                await store.save(checkpoint(status.value, status))
            for status in CheckpointStatus:
                await store.save(checkpoint(f"resumed {status.value}", status, resumed_at=BASE))
            await store.save(completed("finished"))
            await expired(store, clock, SHORT, ["finished"])
            threads = [*(status.value for status in kept), *(f"resumed {status.value}" for status in CheckpointStatus)]
            loads = [await store.load(thread_id) for thread_id in [*threads, "finished"]]

        assert [*([0] * len(threads)), None] == [None if entry is None else entry.sequence for entry in loads]

    @promise("expiry-4")
    @expires
    @pytest.mark.parametrize("way", [way for way in WAYS if way != "save_if_latest"])
    async def test_a_save_that_goes_on_clears_the_ttl(
        self, open_expiring_store: OpenExpiringStore, clock: FakeClock, way: str
    ) -> None:
        """A save that leaves the thread unfinished, by whichever call, clears the ttl; the next one that finishes the
        thread begins another, a whole one.
        """
        ttl = timedelta(seconds=1)
        async with open_expiring_store(ttl) as store:
            await store.save(completed())
            await WAYS[way](store, checkpoint(state={"n": 1}))
            await store.save(completed("mark"))
            await expired(store, clock, ttl, ["mark"])
            went_on = await store.load("t")
            await store.save(completed(state={"n": 2}))
            if Capability.SERVER_CLOCK not in store.capabilities:
                clock.advance(ttl / 2)
                await store.save(completed(state={"n": 3}))
                clock.advance(ttl / 2)
                assert await store.load("t") is not None
            await expired(store, clock, ttl, ["t"])
            gone = await store.load("t")

        assert went_on is not None
        assert 1 == went_on.sequence
        assert gone is None

    @promise("expiry-5")
    @expires
    @pytest.mark.requires(Capability.QUERY)
    async def test_an_expired_thread_is_not_listed(
        self, open_expiring_store: OpenExpiringStore, clock: FakeClock
    ) -> None:
        """An expired thread is in no listing, by whatever filter, nor due, has no log, and makes no page shorter; once
        its ID has started over it is found by what it is now, and not by what it was.
        """
        wait = Wait(WaitKind.TIMER, None, BASE)
        async with open_expiring_store(SHORT) as store:
            for n in range(12):
                finished = n % 2 == 0
                save = completed if finished else checkpoint
                fields: dict[str, Any] = {"metadata": {"k": "v"}, "graph": GraphIdentity("g", "1")}
                await store.save(checkpoint(f"t{n:02}", CheckpointStatus.INTERRUPTED, at=_at(n), wait=wait, **fields))
                await store.save(save(f"t{n:02}", at=_at(n), **fields))
            gone, kept = [f"t{n:02}" for n in range(0, 12, 2)], [f"t{n:02}" for n in range(11, 0, -2)]
            await expired(store, clock, SHORT, gone)
            queries = [
                ThreadQuery(limit=2),
                ThreadQuery(metadata={"k": "v"}, limit=2),
                ThreadQuery(graph_id="g"),
                ThreadQuery(graph_version="1"),
                ThreadQuery(updated_before=LATER),
                ThreadQuery(leased=False),
            ]
            pages = [await _listed(store, query) for query in queries]
            empty = [
                await _listed(store, ThreadQuery(states={ThreadState.COMPLETED})),
                await _listed(store, ThreadQuery(due_before=LATER)),
                list((await store.get_log(gone[0])).entries),
            ]
            await store.save(checkpoint("t00", at=LATER, metadata={"k": "new"}))
            anew = [
                await _listed(store, query)
                for query in (
                    ThreadQuery(metadata={"k": "new"}),
                    ThreadQuery(updated_after=LATER - LONG),
                    ThreadQuery(states={ThreadState.RUNNING}, limit=3),
                    *queries[1:5],
                    ThreadQuery(states={ThreadState.COMPLETED}),
                )
            ]

        assert [kept] * len(queries) == pages
        assert [[], [], []] == empty
        assert [["t00"], ["t00"], ["t00", *kept], kept, kept, kept, kept, []] == anew

    @promise("expiry-6")
    @expires
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_purge_passes_expired_threads(
        self, open_expiring_store: OpenExpiringStore, clock: FakeClock
    ) -> None:
        """A purge does not count threads that have expired, nor do they use up `limit`; it takes none that has started
        over since.
        """
        async with open_expiring_store(SHORT) as store, open_expiring_store(LONG) as slow:
            for n in range(4):
                await store.save(completed(f"gone {n}", at=_at(n)))
                await slow.save(completed(f"old {n}", at=_at(n + 10)))
            await expired(store, clock, SHORT, [f"gone {n}" for n in range(4)])
            await store.save(checkpoint("gone 0"))
            got = [await store.purge(LATER, limit=3), await store.purge(LATER, limit=3), await slow.purge(LATER)]
            kept = [n for n in range(4) if await store.load(f"old {n}") is not None]
            entry = await store.load("gone 0")

        assert [3, 1, 0] == got
        assert [] == kept
        assert entry is not None
        assert 0 == entry.sequence

    @promise("expiry-7")
    @expires
    async def test_tokens_grow_across_expiry(self, open_expiring_store: OpenExpiringStore, clock: FakeClock) -> None:
        """An expired thread gets a larger token than any lease on it before, and a holder from before is refused."""
        async with open_expiring_store(SHORT) as store:
            early = await store.acquire_lease("t", owner="o", ttl=SHORT, save=completed())
            assert early is not None
            await expired(store, clock, SHORT, ["t"])
            live = await store.live_lease("t")
            late = await store.acquire_lease("t", owner="o", ttl=LONG)
            with pytest.raises(LeaseLostError):
                await store.save_under_lease(checkpoint(), early)
            entry = await store.load("t")

        assert live is None
        assert late is not None
        assert late.token > early.token
        assert entry is None

    @promise("expiry-8")
    @expires
    async def test_expiry_refuses_a_separate_blob_store(self, open_expiring_store: OpenExpiringStore) -> None:
        """A store whose finished threads expire raises UnsupportedError when it is opened with a separate blob store:
        nobody would delete the blobs there.
        """
        with pytest.raises(UnsupportedError) as caught:
            async with open_expiring_store(SHORT, offload=Offload(threshold=1, blobs=InMemoryBlobStore())):
                pass

        assert Capability.EXTERNAL_BLOBS is caught.value.capability


def _at(n: int) -> datetime:
    return BASE + timedelta(seconds=n)
