"""Seeded random work: under random faults of the wire, and by many that lock the same threads in other orders."""

import asyncio
import os
import random
from contextlib import AsyncExitStack

import pytest
from postgres_faults import LATER, LONG, checkpoint, store_at
from postgres_support import opened, query, save

from strata_conformance.servers import FaultProxy
from strata_conformance.servers.mixes import Mix
from strata_core.errors import ConflictError
from strata_core.rows import Commit, Committed, Drop, Take
from strata_core.store import RowStore
from strata_postgres import PostgresBackend

SOAK = os.environ.get("STRATA_SOAK") == "1"
FAULTS = 3_500 if SOAK else 30


@pytest.mark.soak
def test_random_calls_under_random_faults_are_done_once_or_not_at_all(proxy: FaultProxy, url: str) -> None:
    mix = Mix(proxy, FAULTS, seed=20261130)

    async def main() -> None:
        async with store_at(proxy.url(url), max_connections=3) as store:
            await mix.run(store)
        async with store_at(url) as clean:
            await mix.check(clean)

    asyncio.run(main())
    orphans = "SELECT count(*) FROM {} WHERE thread NOT IN (SELECT thread FROM strata_heads WHERE sequence >= 0)"

    assert mix.struck >= FAULTS
    assert [[(0,)], [(0,)]] == [query(url, orphans.format(table)) for table in ("strata_rows", "strata_blobs")]


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
