"""Listings: the right heads, in order, and not many more looked at than returned."""

import random
import sqlite3
from pathlib import Path
from typing import Any

import attrs
import pytest
from sqlite_support import EXAMPLE_TIME, save, traced, with_backend

from strata_core.clock import from_micros
from strata_core.memory import MemoryBackend
from strata_core.rows import Commit, Head, HeadQuery, Take
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend, _list

STATES = ["running", "interrupted", "completed", "ended"]


def random_commit(choose: random.Random, number: int) -> Commit:
    thread_id = choose.choice("aAzä日\U0001f600") + str(number)
    lease = choose.choice([None, None, Take("me", choose.choice([1_000_000, 10**12]))])
    if choose.random() < 0.1:
        return Commit(thread_id, choose.randbytes(8), lease=Take("me", choose.choice([1_000_000, 10**12])))
    return save(
        thread_id,
        choose.choice(STATES),
        write_id=choose.randbytes(8),
        updated=EXAMPLE_TIME + choose.randrange(40),
        due=choose.choice([None, None, EXAMPLE_TIME + choose.randrange(20)]),
        graph_id=choose.choice([None, "g", "h"]),
        graph_version=choose.choice([None, "1", "2"]),
        metadata={
            key: choose.choice("xy") for key in choose.sample(["tenant", "a' OR 1=1 --", "k%"], choose.randrange(4))
        },
        lease=lease,
    )


def random_query(choose: random.Random) -> HeadQuery:
    def maybe(*values: Any) -> Any:
        return choose.choice([None, None, *values])

    times = [EXAMPLE_TIME + offset for offset in range(-1, 42, 3)]
    return HeadQuery(
        states=maybe(
            *(frozenset(choose.sample([*STATES, "no such state"], count)) for count in (0, 1, 1, 2, 3)),
        ),
        metadata={
            key: choose.choice("xy") for key in choose.sample(["tenant", "a' OR 1=1 --"], choose.choice([0, 0, 1, 2]))
        },
        updated_after=maybe(*times),
        updated_before=maybe(*times),
        graph_id=maybe("g", "h", "no such graph"),
        graph_version=maybe("1", "2"),
        due_until=maybe(*times),
        leased=maybe(True, False),
        rowless=choose.random() < 0.1,
        oldest_first=choose.random() < 0.5,
        past=maybe(*((time, choose.choice(["", "a3", "ä5", "\U0001f600"])) for time in times)),
        limit=choose.choice([1, 3, 10, 1000]),
    )


@pytest.mark.parametrize("rare", [0, 5, 1000])
def test_random_queries_list_what_the_rule_lists(tmp_path: Path, rare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rare` decides which of the two ways through the heads is taken."""
    monkeypatch.setattr(_list, "RARE", rare)

    async def check(backend: SqliteBackend) -> None:
        batch = [random_commit(choose, number) for number in range(300)]
        model = MemoryBackend(clock)
        await model.commit(batch)
        await backend.commit(batch)
        clock.advance(5)
        for _ in range(300):
            query = random_query(choose)

            expected = [attrs.asdict(head) for head in await model.list_heads(query)]
            assert expected == [attrs.asdict(head) for head in await backend.list_heads(query)], query

    choose = random.Random(rare)
    clock = FakeClock(from_micros(EXAMPLE_TIME))
    with_backend(tmp_path / "store.db", check, clock=clock)


@pytest.mark.parametrize("oldest_first", [True, False])
def test_pages_show_every_thread_once_also_where_times_are_equal(tmp_path: Path, oldest_first: bool) -> None:
    async def check(backend: SqliteBackend) -> None:
        threads = [f"{letter}{number}" for letter in "aBäß日\U0001f600" for number in range(9)]
        await backend.commit(
            [save(each, STATES[at % 4], updated=EXAMPLE_TIME + at % 3) for at, each in enumerate(threads)]
        )
        seen: list[Head] = []
        past = None
        while page := await backend.list_heads(HeadQuery(past=past, oldest_first=oldest_first, limit=7)):
            seen += page
            past = (page[-1].updated, page[-1].thread_id)

        places = [(head.updated, head.thread_id.encode()) for head in seen]
        assert sorted(threads) == sorted(head.thread_id for head in seen)
        assert sorted(places, reverse=not oldest_first) == places

    with_backend(tmp_path / "store.db", check)


@pytest.mark.parametrize("rare", [0, 1000])
def test_a_query_may_name_any_number_of_metadata_pairs(
    tmp_path: Path, rare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite takes about 1,000 terms in one expression."""
    monkeypatch.setattr(_list, "RARE", rare)

    async def check(backend: SqliteBackend) -> None:
        pairs = {f"key '{number}\\\"é": f"value {number}\n😀" for number in range(2_000)}
        one_less = dict(list(pairs.items())[1:])
        await backend.commit([save("all", metadata=pairs), save("one less", metadata=one_less)])
        with_all = await backend.list_heads(HeadQuery(metadata=pairs))
        with_one_less = await backend.list_heads(HeadQuery(metadata=one_less))

        assert ["all"] == [head.thread_id for head in with_all]
        assert ["one less", "all"] == [head.thread_id for head in with_one_less]

    with_backend(tmp_path / "store.db", check)


def test_however_many_pairs_are_named_the_listing_is_three_statements(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t", metadata={"tenant": "acme"})])
        assert backend._lister is not None
        assert backend._lister._connection is not None
        with traced(backend._lister._connection) as statements:
            await backend.list_heads(HeadQuery(metadata={str(number): "acme" for number in range(2_000)}))

        assert ["BEGIN", "SELECT", "SELECT", "SELECT", "ROLLBACK"] == [text.split()[0] for text in statements]

    with_backend(tmp_path / "store.db", check)


QUERIES = {
    "newest": HeadQuery(limit=50),
    "oldest": HeadQuery(oldest_first=True, limit=50),
    "state": HeadQuery(states=frozenset({"interrupted"}), limit=50),
    "several states": HeadQuery(states=frozenset({"interrupted", "running", "ended"}), limit=50),
    "several states of a rare graph": HeadQuery(
        states=frozenset({"interrupted", "running"}), graph_id="rare", oldest_first=True, limit=50
    ),
    "deep page": HeadQuery(past=(EXAMPLE_TIME + 100, "t1"), updated_before=EXAMPLE_TIME + 10**9, limit=50),
    "deep page upwards": HeadQuery(past=(EXAMPLE_TIME + 100, "t1"), oldest_first=True, updated_after=1, limit=50),
    "common pair": HeadQuery(metadata={"tenant": "acme"}, limit=50),
    "rare pair": HeadQuery(metadata={"order": "7"}, limit=50),
    "rare and common pair": HeadQuery(metadata={"tenant": "acme", "order": "7"}, limit=50),
    "unknown pair": HeadQuery(metadata={"nobody": "has this"}, limit=50),
    "due": HeadQuery(due_until=EXAMPLE_TIME + 5, states=frozenset({"interrupted"}), limit=50),
    "all due": HeadQuery(due_until=EXAMPLE_TIME * 2, limit=50),
    "leased": HeadQuery(leased=True, limit=50),
    "not leased": HeadQuery(leased=False, limit=50),
    "rare graph": HeadQuery(graph_id="rare", graph_version="1", limit=50),
    "common graph": HeadQuery(graph_id="common", limit=50),
    "to purge": HeadQuery(
        states=frozenset({"completed", "failed", "cancelled", "ended"}),
        leased=False,
        updated_before=EXAMPLE_TIME + 10**9,
        oldest_first=True,
        limit=50,
    ),
    "to recover": HeadQuery(
        states=frozenset({"running"}),
        leased=False,
        graph_id="common",
        oldest_first=True,
        limit=50,
    ),
    "rowless": HeadQuery(rowless=True, limit=50),
}


def steps(db: sqlite3.Connection, query: HeadQuery, clock: FakeClock) -> int:
    """Return how many instructions of SQLite's machine a listing takes, in hundreds."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    db.set_progress_handler(step, 100)
    try:
        _list.list_heads(db, clock, query)
    finally:
        db.set_progress_handler(None, 0)
    return count


async def fill(backend: SqliteBackend, first: int, last: int) -> None:
    for start in range(first, last, 500):
        await backend.commit(
            [
                save(
                    f"t{number}",
                    ["running", "interrupted", "completed", "failed"][number % 4],
                    updated=EXAMPLE_TIME + number,
                    metadata={"tenant": "acme", "order": str(number)},
                    due=EXAMPLE_TIME + number if number % 4 == 1 else None,
                    graph_id="rare" if number < 10 else "common",
                    graph_version="1",
                    lease=Take("me", 10**15) if number < 20 else None,
                )
                for number in range(start, min(start + 500, last))
            ]
        )


def test_a_listing_costs_the_same_in_a_store_ten_times_as_large(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await fill(backend, 0, 2_000)
        assert backend._lister is not None
        small = {name: await backend._lister.run(steps, query, clock) for name, query in QUERIES.items()}
        await fill(backend, 2_000, 20_000)
        large = {name: await backend._lister.run(steps, query, clock) for name, query in QUERIES.items()}

        # "all due" is rare at first and common then: it changes its way, and must not become dear.
        dearer = {
            name: (small[name], large[name]) for name in small if large[name] > max(1.2 * small[name], small[name] + 10)
        }
        assert {} == dearer
        assert max(large.values()) < 600
        turned = {}
        for name, query in QUERIES.items():
            other_way = attrs.evolve(query, oldest_first=not query.oldest_first)
            turned[name] = await backend._lister.run(steps, other_way, clock)
        assert {} == {name: (turned[name], large[name]) for name in turned if turned[name] > 1.2 * large[name] + 10}

    clock = FakeClock(from_micros(EXAMPLE_TIME))
    with_backend(tmp_path / "store.db", check, clock=clock)


def plan(db: sqlite3.Connection, query: HeadQuery) -> list[str]:
    statement, values = _list.page_statement(db, query, EXAMPLE_TIME)
    return [record[3] for record in db.execute("EXPLAIN QUERY PLAN " + statement, values)]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("rare", [0, 1000])
def test_no_listing_scans_a_table_or_sorts_what_an_index_has_sorted(
    tmp_path: Path, name: str, rare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_list, "RARE", rare)

    async def check(backend: SqliteBackend) -> None:
        await fill(backend, 0, 100)
        assert backend._lister is not None
        lines = await backend._lister.run(plan, QUERIES[name])

        walks = "CO-ROUTINE walk" in lines  # a part that hands out one head at a time
        scans = [line for line in lines if line.startswith("SCAN") and not line.startswith("SCAN pair VIRTUAL TABLE")]
        assert (["SCAN walk"] if walks else []) == scans
        assert walks != any("TEMP B-TREE" in line for line in lines)

    with_backend(tmp_path / "store.db", check)
