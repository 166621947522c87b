"""Listings look at little more than they return, however many threads there are, and at no key but those they name."""

import asyncio
import itertools
import os
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import attrs
import pytest
from redis_crowd import SECOND, Bulk
from redis_support import EXAMPLE_TIME, HOUR, Place, erase, opened, save, with_backend

from strata_conformance.servers import ValkeyServer
from strata_core.rows import Commit, Head, HeadQuery, Take, matches
from strata_redis import RedisBackend
from strata_redis._calls import HEADS, WALK

COUNT = 100_000
FROZEN = frozenset({"interrupted"})
FEW = frozenset({"running", "ended", "failed"})


@attrs.define
class Reads:
    """What a listing looked at."""

    messages: int = 0
    members: int = 0
    heads: int = 0


@asynccontextmanager
async def counted(backend: RedisBackend) -> AsyncGenerator[Reads]:
    """Count what is read meanwhile."""
    server = backend._server
    assert server is not None
    run, reads = server.run, Reads()

    async def count(calls: Any, *, writes: bool = False) -> Any:
        answers: list[Any] = await run(calls, writes=writes)
        reads.messages += 1
        for call, answer in zip(calls, answers, strict=True):
            if call.script is WALK:
                reads.members += answer[0]
            elif call.script is HEADS:
                reads.heads += len(call.keys)
        return answers

    server.run = count  # type: ignore[method-assign]  # for as long as it is counted
    try:
        yield reads
    finally:
        server.run = run  # type: ignore[method-assign]  # back


@pytest.fixture(scope="module")
def bulk() -> Bulk:
    return Bulk(COUNT)


@pytest.fixture(scope="module")
def crowd(valkey_server: ValkeyServer, bulk: Bulk) -> Iterator[Place]:
    """A store with a hundred thousand threads."""
    place = Place((valkey_server,), valkey_server.url, "crowd")
    with_backend(place, lambda backend: backend.setup())
    bulk.put(place)
    yield place
    valkey_server.flush()


def expected(bulk: Bulk, query: HeadQuery) -> list[str]:
    """Return the IDs that a page should hold."""
    found = []
    for number in range(bulk.count) if query.oldest_first else reversed(range(bulk.count)):
        state, updated, due, graph, version, metadata = bulk.facts(number)
        head = Head(f"t{number}", 0, 0, b"", state, updated, due, graph, version, metadata)
        if matches(head, query, 0):
            found.append(head.thread_id)
            if len(found) == query.limit:
                break
    return found


ORDERED = {
    "the newest": HeadQuery(limit=50),
    "the oldest": HeadQuery(limit=50, oldest_first=True),
    "a page in the middle": HeadQuery(limit=50, past=(50_000 * SECOND, "t50000")),
    "of a time": HeadQuery(limit=50, updated_after=100 * SECOND, updated_before=50_000 * SECOND),
    "a common state": HeadQuery(limit=50, states=frozenset({"completed"})),
    "a rare state": HeadQuery(limit=50, states=frozenset({"running"})),
    "some states": HeadQuery(limit=50, states=FEW),
    "what a purge takes": HeadQuery(
        limit=64,
        states=frozenset({"completed", "ended"}),
        updated_before=90_000 * SECOND,
        oldest_first=True,
        leased=False,
    ),
    "what was due longest": HeadQuery(limit=50, due_until=70_000 * SECOND, oldest_first=True),
    "a tenant": HeadQuery(limit=50, metadata={"tenant": "t7"}),
    "a rare pair": HeadQuery(limit=50, metadata={"rare": "yes"}),
    "a graph": HeadQuery(limit=50, graph_id="g3"),
    "a version of a graph": HeadQuery(limit=50, graph_id="g3", graph_version="1"),
    "two pairs, one rare": HeadQuery(limit=50, metadata={"tenant": "t0", "rare": "yes"}),
    "what is due": HeadQuery(limit=50, due_until=70_000 * SECOND),
    "what is due of a state": HeadQuery(limit=20, due_until=70_000 * SECOND, states=frozenset({"completed"})),
    "a thousand": HeadQuery(limit=1000),
}


@pytest.mark.parametrize("name", ORDERED)
def test_a_page_looks_at_no_more_than_three_times_what_it_returns(crowd: Place, bulk: Bulk, name: str) -> None:
    """Of the index; of the threads themselves it reads those that it returns, and no other."""
    query = ORDERED[name]

    async def check(backend: RedisBackend) -> None:
        async with counted(backend) as reads:
            heads = await backend.list_heads(query)

        assert expected(bulk, query) == [head.thread_id for head in heads]
        assert len(heads) == reads.heads
        assert reads.members <= 3 * len(heads) + 16
        assert reads.messages <= 7

    with_backend(crowd, check)


def test_a_page_of_one_looks_at_one_member_a_bucket(crowd: Place) -> None:
    """And whether running threads stand behind it that belong before it."""

    async def check(backend: RedisBackend) -> None:
        async with counted(backend) as reads:
            heads = await backend.list_heads(HeadQuery(limit=1))

        assert ["t99999"] == [head.thread_id for head in heads]
        assert Reads(messages=3, members=16, heads=1) == reads

    with_backend(crowd, check)


COMBINED = {
    "a tenant and a state": (
        HeadQuery(limit=50, metadata={"tenant": "t7"}, states=frozenset({"interrupted"})),
        1000,
        0,
    ),
    "a graph and a common pair": (HeadQuery(limit=50, metadata={"rare": "no"}, graph_id="g2"), 150, 0),
    "two common pairs": (HeadQuery(limit=50, metadata={"rare": "no", "tenant": "t7"}), 150, 0),
    "a version of any graph": (HeadQuery(limit=50, graph_version="1"), 300, 100),
    "a state without a lease": (HeadQuery(limit=50, states=frozenset({"running"}), leased=False), 150, 0),
    "what is due in far future": (HeadQuery(limit=50, due_until=2**53), 500, 200),
    "what is leased": (HeadQuery(limit=50, leased=True), 0, 0),
    "what nobody has": (HeadQuery(limit=50, metadata={"tenant": "t100"}), 0, 0),
}


@pytest.mark.parametrize("name", COMBINED)
def test_filters_together_begin_at_the_rarest(crowd: Place, bulk: Bulk, name: str) -> None:
    """What the others leave out is looked up in the index, but for versions without a graph, due times and leases."""
    query, members, more_heads = COMBINED[name]

    async def check(backend: RedisBackend) -> None:
        async with counted(backend) as reads:
            heads = await backend.list_heads(query)

        assert expected(bulk, query) == [head.thread_id for head in heads]
        assert reads.members <= members
        assert reads.heads <= len(heads) + more_heads

    with_backend(crowd, check)


def test_a_walk_through_all_pages_sees_each_thread_once(crowd: Place, bulk: Bulk) -> None:
    query = HeadQuery(states=FEW, limit=997)

    async def check(backend: RedisBackend) -> list[str]:
        seen: list[str] = []
        past = None
        while heads := await backend.list_heads(attrs.evolve(query, past=past)):
            seen += [head.thread_id for head in heads]
            past = (heads[-1].updated, heads[-1].thread_id)
        return seen

    seen = with_backend(crowd, check)

    assert expected(bulk, attrs.evolve(query, limit=COUNT)) == seen


def test_no_operation_scans_keys(crowd: Place) -> None:
    """Saves, loads, listings and purges name every key they use."""
    (server,) = crowd.servers
    server.command("CONFIG", "RESETSTAT")

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("mine", "completed", lease=Take("me", 1))])
        await backend.read("mine", None, None)
        await backend.list_heads(HeadQuery(metadata={"tenant": "t7"}, states=FEW, due_until=5))
        await backend.list_heads(HeadQuery(rowless=True))
        await backend.commit([erase("mine")])

    with_backend(crowd, check, finished_thread_ttl=timedelta(hours=1))
    lines = server.command("INFO", "commandstats").decode().splitlines()
    commands = {line.partition(":")[0].removeprefix("cmdstat_") for line in lines if line.startswith("cmdstat_")}

    assert set() == commands & {"scan", "keys", "hscan", "zscan", "sscan", "randomkey", "hgetall", "zrange", "sort"}
    assert {"evalsha", "hset", "zadd", "zrem", "zrangebylex", "zlexcount"} <= commands


def test_threads_that_move_while_a_page_is_read_are_returned_where_they_stand(place: Place) -> None:
    """Between the index and the heads one goes, one moves away, and one no longer matches."""
    query = HeadQuery(states=frozenset({"running"}), limit=10)

    async def check(oldest_first: bool) -> list[tuple[str, int]]:
        async with opened(place) as backend:
            await backend.commit([save(f"t{number}", updated=100 + number) for number in range(8)])
            server = backend._server
            assert server is not None
            run = server.run

            async def meanwhile(calls: Any, *, writes: bool = False) -> Any:
                if calls[0].script is HEADS:
                    server.run = run  # type: ignore[method-assign]  # once
                    await backend.commit([erase("t1"), save("t2", updated=500), save("t3", "interrupted", updated=501)])
                return await run(calls, writes=writes)

            server.run = meanwhile  # type: ignore[method-assign]  # once
            heads = await backend.list_heads(attrs.evolve(query, oldest_first=oldest_first))
            await backend.commit([erase(f"t{number}") for number in range(8)])
            return [(head.thread_id, head.updated) for head in heads]

    newest, oldest = asyncio.run(check(False)), asyncio.run(check(True))

    assert [("t2", 500), ("t7", 107), ("t6", 106), ("t5", 105), ("t4", 104), ("t0", 100)] == newest
    assert newest[::-1] == oldest


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize(
    "more", [{}, {"states": frozenset({"running"})}, {"due_until": 3}, {"metadata": {"half": "1"}}], ids=str
)
def test_running_threads_that_stand_a_little_too_early_are_listed_in_order(
    valkey: Place, oldest_first: bool, more: dict[str, Any]
) -> None:
    """Page by page, and between bounds of time, each of which some of them stand before."""
    rng = random.Random(7)

    async def check(backend: RedisBackend) -> None:
        heads: dict[str, Head] = {}
        for _ in range(4):
            commits = []
            for number in range(60):
                facts: dict[str, Any] = {
                    "state": rng.choice(["running", "running", "failed"]),
                    "updated": EXAMPLE_TIME + rng.randrange(2_500_000),
                    "due": rng.choice([None, 2, 4]),
                    "metadata": {"half": str(number % 2)},
                }
                commits.append(save(f"t{number}", **facts))
                heads[f"t{number}"] = Head(f"t{number}", 0, 0, b"", **facts)
            await backend.commit(commits)
        bounds = [None, EXAMPLE_TIME + 400_000, EXAMPLE_TIME + 1_800_000]
        for after, before in itertools.product(bounds, bounds):
            query = HeadQuery(oldest_first=oldest_first, updated_after=after, updated_before=before, limit=7, **more)
            matching = [head for head in heads.values() if matches(head, query, 0)]
            matching.sort(key=lambda head: (head.updated, head.thread_id), reverse=not oldest_first)
            seen: list[Head] = []
            while page := await backend.list_heads(query):
                seen += page
                query = attrs.evolve(query, past=(page[-1].updated, page[-1].thread_id))

            assert [head.thread_id for head in matching] == [head.thread_id for head in seen]

    with_backend(valkey, check)


def test_the_engine_s_own_metadata_is_found_without_an_index(place: Place) -> None:
    """It changes with each save, and nobody lists by it; but a filter is never ignored."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit(
            [
                save(f"t{number}", updated=number, metadata={"strata.visit": str(number), "kind": "a"})
                for number in range(30)
            ]
        )
        found = await backend.list_heads(HeadQuery(metadata={"strata.visit": "3"}))
        both = await backend.list_heads(HeadQuery(metadata={"strata.visit": "4", "kind": "a"}))
        neither = await backend.list_heads(HeadQuery(metadata={"strata.visit": "4", "kind": "b"}))

        assert (["t3"], ["t4"], []) == tuple([head.thread_id for head in heads] for heads in (found, both, neither))
        assert 3 * 30 == len(place.index())

    with_backend(place, check)


def test_live_leases_are_found_among_dead_ones(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save(f"dead{n}", updated=n, lease=Take("gone", 1)) for n in range(40)])
        await backend.commit([save(f"live{n}", updated=1000 + n % 7, lease=Take("me", HOUR)) for n in range(40)])
        await backend.commit([Commit("rowless", os.urandom(8), lease=Take("me", HOUR))])
        live = await backend.list_heads(HeadQuery(leased=True, limit=12))
        rest = await backend.list_heads(HeadQuery(leased=False, limit=100))
        rowless = await backend.list_heads(HeadQuery(rowless=True))

        by_age = sorted((1000 + n % 7, f"live{n}") for n in range(40))
        assert [name for _, name in by_age[::-1]][:12] == [head.thread_id for head in live]
        assert [f"dead{n}" for n in reversed(range(40))] == [head.thread_id for head in rest]
        assert ["rowless"] == [head.thread_id for head in rowless]

    with_backend(place, check)


def test_a_cursor_at_the_end_of_time_finds_nothing_more(place: Place) -> None:
    latest = 2**63 - 1

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", updated=EXAMPLE_TIME)])
        for query in (
            HeadQuery(updated_after=latest),
            HeadQuery(past=(latest, "t"), oldest_first=True),
            HeadQuery(past=(-latest, "t")),
            HeadQuery(updated_after=5, updated_before=5),
        ):
            assert [] == await backend.list_heads(query)
        for query in (HeadQuery(past=(latest, "t")), HeadQuery(past=(-latest, "t"), oldest_first=True)):
            assert ["t"] == [head.thread_id for head in await backend.list_heads(query)]
        assert [] == await backend.list_heads(HeadQuery(due_until=latest))

    with_backend(place, check)
