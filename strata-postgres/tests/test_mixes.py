"""Seeded random work: under random faults of the wire, and by many that lock the same threads in other orders."""

import asyncio
import os
import random
from contextlib import AsyncExitStack, suppress
from typing import Any

import attrs
import pytest
from postgres_faults import COMPLETED, LATER, LONG, checkpoint, store_at
from postgres_support import opened, query, save

from strata_conformance.servers import FaultProxy
from strata_core.errors import ConflictError, StoreUnavailableError
from strata_core.records import Lease
from strata_core.rows import Commit, Committed, Drop, Take
from strata_core.store import RowStore
from strata_postgres import PostgresBackend

SOAK = os.environ.get("STRATA_SOAK") == "1"
CALLS = 10_000 if SOAK else 300
TASKS = 5
"""At most so many rows pass a write between two attempts, which is below the eight that a head remembers."""


@attrs.define
class Told:
    """What the callers were told of their writes, each of which has a number of its own."""

    done: dict[tuple[str, int], int] = attrs.Factory(dict)
    undone: set[int] = attrs.Factory(set)
    unknown: set[int] = attrs.Factory(set)
    finished: set[str] = attrs.Factory(set)
    purged: int = 0


class Caller:
    """Makes random calls, and repeats some of those whose outcome it was not told."""

    def __init__(self, store: RowStore, seed: int, told: Told) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.told = told
        self._numbers = iter(range(seed * 1_000_000, (seed + 1) * 1_000_000))
        self._leases: dict[str, Lease] = {}

    async def call(self) -> None:
        store, thread_id = self.store, self.random.choice("abcd")
        kind = self.random.randrange(8)
        if kind < 3:
            await self._write(thread_id, store.save)
        elif kind == 3:
            entry = await store.load(thread_id)
            expected = None if entry is None else entry.revision
            await self._write(thread_id, lambda row, **more: store.save_if_latest(row, expected, **more))
        elif kind == 4:
            await self._under_lease(thread_id)
        elif kind == 5:
            await store.list_threads()
        elif kind == 6:
            await store.get_log(thread_id, limit=5)
        else:
            await self._finish()

    async def _under_lease(self, thread_id: str) -> None:
        lease = self._leases.pop(thread_id, None)
        if lease is None:
            taken = await self.store.acquire_lease(thread_id, owner="o", ttl=LONG)
            if taken is not None:
                self._leases[thread_id] = taken
            return
        release = self.random.random() < 0.5
        await self._write(
            thread_id, lambda row, **more: self.store.save_under_lease(row, lease, release=release, **more)
        )
        if not release:
            self._leases[thread_id] = lease

    async def _write(self, thread_id: str, write: Any) -> None:
        number, write_id = next(self._numbers), os.urandom(8)
        while True:
            try:
                sequence = await write(checkpoint(thread_id, number), write_id=write_id)
            except StoreUnavailableError as error:
                if error.maybe_written and self.random.random() < 0.7:
                    continue
                (self.told.unknown if error.maybe_written else self.told.undone).add(number)
            except ConflictError:
                self.told.undone.add(number)
            else:
                self.told.done[thread_id, sequence] = number
            return

    async def _finish(self) -> None:
        thread_id = f"finished {next(self._numbers)}"
        self.told.finished.add(thread_id)
        await self.store.save(checkpoint(thread_id, 0, COMPLETED))
        if self.random.random() < 0.5:
            gone = await self.store.purge(LATER)
            self.told.purged += gone


def plan_faults(proxy: FaultProxy, seed: int) -> None:
    """Let one request of twelve come to harm."""
    choose = random.Random(seed)

    def one_of(share: float) -> Any:
        return lambda _: choose.random() < share

    proxy.reset("request", match=one_of(0.02), times=None)
    proxy.reset("reply", match=one_of(0.03), times=None)
    proxy.cut("request", 9, match=one_of(0.01), times=None)
    proxy.cut("reply", 9, match=one_of(0.01), times=None)
    proxy.hang("reply", match=one_of(0.01), times=3)
    proxy.delay(replies=0.001)


@pytest.mark.soak
def test_random_calls_under_random_faults_are_done_once_or_not_at_all(proxy: FaultProxy, url: str) -> None:
    told = Told()

    async def check() -> None:
        async with store_at(proxy.url(url), max_connections=3) as store:
            callers = [Caller(store, seed, told) for seed in range(TASKS)]
            plan_faults(proxy, 20261130)

            async def work(caller: Caller) -> None:
                for number in range(CALLS // TASKS):
                    if number % 97 == 96:
                        proxy.reset_all()
                    with suppress(StoreUnavailableError):  # of a read, or of a call that the caller does not repeat
                        await caller.call()

            await asyncio.gather(*(work(caller) for caller in callers))
        async with store_at(url) as clean:
            await clean.purge(LATER)
            stored: dict[tuple[str, int], int] = {}
            for thread_id in "abcd":
                start: int | None = 0
                while start is not None:
                    page = await clean.get_log(thread_id, start=start, limit=1000)
                    for entry in page.entries:
                        stored[thread_id, entry.sequence] = entry.checkpoint.frozen_state["step"]
                    start = page.next_start

        assert told.done.items() <= stored.items()
        assert len(stored) == len(set(stored.values()))
        assert set(stored.values()) <= set(told.done.values()) | told.unknown
        assert not told.undone & set(stored.values())
        assert len(told.done) > CALLS // 4

    asyncio.run(check())

    # Of two purges whose answers were lost, both may count a thread: neither can tell whose erasure it was.
    assert 0 < told.purged < 2 * len(told.finished)
    orphans = "SELECT count(*) FROM {} WHERE thread NOT IN (SELECT thread FROM strata_heads WHERE sequence >= 0)"
    assert [[(0,)], [(0,)]] == [query(url, orphans.format(table)) for table in ("strata_rows", "strata_blobs")]
    assert [(4,)] == query(url, "SELECT count(*) FROM threads")


@pytest.mark.soak
def test_batches_of_the_same_threads_in_any_order_never_lock_each_other_out(url: str) -> None:
    """Four stores save, lease, end and purge the same threads; no call is undone so often that it fails."""
    rounds = 500 if SOAK else 25
    threads = [f"t{number:02}" for number in range(24)]

    async def work(backend: PostgresBackend, store: RowStore, seed: int) -> int:
        choose = random.Random(seed)
        done = 0
        for _ in range(rounds):
            batch = []
            for thread_id in choose.sample(threads, 12):
                kind = choose.random()
                if kind < 0.5:
                    batch.append(save(thread_id))
                elif kind < 0.7:
                    batch.append(save(thread_id, "completed", lease=Take("me", 1)))
                elif kind < 0.85:
                    batch.append(Commit(thread_id, os.urandom(8), lease=Take("me", 1, closing=kind < 0.75)))
                else:
                    batch.append(Commit(thread_id, os.urandom(8), token=1, lease=Drop(), erase=True))
            outcomes, _, _ = await asyncio.gather(
                backend.commit(batch), store.purge(LATER, limit=10), store.list_threads()
            )
            done += sum(isinstance(outcome, Committed) for outcome in outcomes)
        return done

    async def check() -> None:
        async with AsyncExitStack() as stack:
            backends = [await stack.enter_async_context(opened(url)) for _ in range(4)]
            stores = [await stack.enter_async_context(store_at(url, command_timeout=LONG)) for _ in backends]
            pairs = enumerate(zip(backends, stores, strict=True))
            done = await asyncio.gather(*(work(backend, store, seed) for seed, (backend, store) in pairs))

        assert min(done) > rounds

    asyncio.run(check())

    whole = "SELECT count(*) = max(r.sequence) + 1 AND max(r.sequence) = h.sequence FROM strata_rows AS r"
    assert {(True,)} >= set(query(url, f"{whole} JOIN strata_heads AS h USING (thread) GROUP BY thread, h.sequence"))


def test_fifty_tasks_on_one_thread_build_on_each_other(url: str) -> None:
    """Through two stores, with deltas: of those that expect the same row one is done, and the others try again."""

    async def append(store: RowStore, number: int) -> int:
        while True:
            entry = await store.load("t")
            try:
                return await store.save_if_latest(checkpoint("t", number), None if entry is None else entry.revision)
            except ConflictError:
                continue

    async def check() -> None:
        async with store_at(url, command_timeout=LONG) as one, store_at(url, command_timeout=LONG) as other:
            conditional = [append((one, other)[number % 2], number) for number in range(20)]
            plain = [(one, other)[number % 2].save(checkpoint("t", number)) for number in range(20, 50)]
            sequences = await asyncio.gather(*conditional, *plain)
            entries = (await one.get_log("t")).entries

        assert dict(enumerate(sequences)) == {e.checkpoint.frozen_state["step"]: e.sequence for e in entries}
        assert list(range(50)) == sorted(sequences)

    asyncio.run(check())
