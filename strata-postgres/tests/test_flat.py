"""At a hundred thousand threads, a listing looks at few more than it returns: counted by the server itself."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres_bulk import GAP, THREADS, fill
from postgres_support import EXAMPLE_TIME, query, with_backend

from strata_conformance.servers import PostgresServer
from strata_core.rows import HeadQuery
from strata_postgres import PostgresBackend
from strata_postgres._list import PLANNER, page_statement

MIDDLE = EXAMPLE_TIME + GAP * THREADS // 2
ALL_STATES = frozenset({"interrupted", "failed", "cancelled", "running", "completed", "ended", "resumed"})
QUERIES = {
    "newest": HeadQuery(limit=50),
    "oldest": HeadQuery(limit=50, oldest_first=True),
    **{state: HeadQuery(states=frozenset({state}), limit=50) for state in ("interrupted", "running", "failed")},
    "running, oldest": HeadQuery(states=frozenset({"running"}), oldest_first=True, limit=50),
    "a state that no thread has": HeadQuery(states=frozenset({"ended"}), limit=50),
    "several states": HeadQuery(states=frozenset({"interrupted", "running", "ended"}), limit=50),
    "every state": HeadQuery(states=ALL_STATES, limit=50),
    "updated after": HeadQuery(updated_after=EXAMPLE_TIME + GAP * (THREADS - 200), limit=50),
    "updated before": HeadQuery(updated_before=MIDDLE, limit=50),
    "updated between": HeadQuery(updated_after=MIDDLE, updated_before=MIDDLE + 40 * GAP, limit=50),
    "deep page": HeadQuery(past=(MIDDLE, "t1"), limit=50),
    "deep page, oldest": HeadQuery(past=(MIDDLE, "t1"), oldest_first=True, limit=50),
    "deep page of a tenant": HeadQuery(past=(MIDDLE, "t1"), metadata={"tenant": "acme"}, limit=50),
    "common pair": HeadQuery(metadata={"tenant": "acme"}, limit=50),
    "common pair, one state": HeadQuery(metadata={"tenant": "acme"}, states=frozenset({"interrupted"}), limit=50),
    "rare pair": HeadQuery(metadata={"order": "7"}, limit=50),
    "unknown pair": HeadQuery(metadata={"nobody": "has this"}, limit=50),
    "to wake": HeadQuery(
        states=frozenset({"interrupted"}),
        graph_id="common",
        due_until=EXAMPLE_TIME * 2,
        oldest_first=True,
        limit=50,
    ),
    "the next to wake": HeadQuery(
        states=frozenset({"interrupted"}),
        graph_id="common",
        due_until=EXAMPLE_TIME * 2,
        past=(MIDDLE, "t1"),
        oldest_first=True,
        limit=50,
    ),
    "to recover": HeadQuery(
        states=frozenset({"running"}),
        graph_id="common",
        leased=False,
        oldest_first=True,
        limit=50,
    ),
    "common graph": HeadQuery(graph_id="common", limit=50),
    "rare graph": HeadQuery(graph_id="rare", limit=50),
    "rare version of a graph": HeadQuery(graph_id="rare", graph_version="1", limit=50),
    "unknown version of a graph": HeadQuery(graph_id="common", graph_version="1", limit=50),
    "common version": HeadQuery(graph_version="2", limit=50),
    "rare version": HeadQuery(graph_version="1", limit=50),
    "few are due": HeadQuery(due_until=EXAMPLE_TIME + 200 * 1000, limit=50),
    "all are due": HeadQuery(due_until=EXAMPLE_TIME * 2, limit=50),
    "none is due": HeadQuery(due_until=EXAMPLE_TIME - 1, limit=50),
    "leased": HeadQuery(leased=True, limit=50),
    "not leased": HeadQuery(leased=False, limit=50),
    "to purge": HeadQuery(
        states=frozenset({"completed", "failed", "cancelled", "ended"}),
        leased=False,
        updated_before=EXAMPLE_TIME * 2,
        oldest_first=True,
        limit=64,
    ),
    "the next to purge": HeadQuery(
        states=frozenset({"completed", "failed", "cancelled", "ended"}),
        leased=False,
        updated_before=EXAMPLE_TIME * 2,
        past=(MIDDLE, "t1"),
        oldest_first=True,
        limit=64,
    ),
    "left behind by a purge": HeadQuery(rowless=True, leased=False, oldest_first=True, limit=64),
}
PROBED = {"few are due": 1, "all are due": 1, "to wake": 3, "the next to wake": 3}
"""How often they count first whether few are due, of a graph, or either: up to two entries a thread returned."""
SLACK = 12
"""Entries that a merge of seven ranges has in hand, and running threads that saved within a second of the last one."""


@pytest.fixture(scope="module")
def filled(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a store with a hundred thousand threads, of which the planner has no statistics."""

    async def nothing(backend: PostgresBackend) -> None:
        pass

    with postgres_server.fresh_database() as database:
        with_backend(database.url, nothing)
        for table in ("strata_heads", "strata_listing", "strata_rows"):
            query(database.url, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        fill(database.url)
        yield database.url


def examined(url: str, heads_query: HeadQuery) -> tuple[int, Counter[str]]:
    """Run a listing, and return how many heads it gave and how many records of each table were looked at."""
    page = page_statement(heads_query)
    assert page is not None
    statement, values = page
    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in PLANNER.items():
            connection.execute(f"SET {name} = {value}".encode())
        text = statement.replace("{s}", "public").replace("%", "%%").replace("$1", "%s::jsonb")
        cursor = psycopg.ClientCursor(connection)
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}".encode(), [values] * text.count("%s::jsonb"))
        record = cursor.fetchone()
    assert record is not None
    (plan,) = record[0] if isinstance(record[0], list) else json.loads(record[0])
    counts: Counter[str] = Counter()
    _count(plan["Plan"], counts)
    return round(plan["Plan"]["Actual Rows"]), counts


def _count(node: dict[str, Any], counts: Counter[str]) -> None:
    if "Relation Name" in node:
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        counts[node["Relation Name"]] += round(node["Actual Loops"] * (node["Actual Rows"] + removed))
    for each in node.get("Plans", []):
        _count(each, counts)


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_a_listing_looks_at_no_more_than_three_times_what_it_returns(filled: str, statistics: str) -> None:
    if statistics == "fresh":
        query(filled, "VACUUM ANALYZE strata_heads, strata_listing, strata_rows")
    dear = {}
    for name, heads_query in QUERIES.items():
        returned, counts = examined(filled, heads_query)
        entries = counts["strata_listing"] - PROBED.get(name, 0) * (2 * heads_query.limit + 2)
        # Of what is returned, the envelope is fetched besides, by its key.
        if max(entries, counts["strata_heads"]) > 3 * returned + SLACK or counts["strata_rows"] > returned:
            dear[name] = (returned, counts)

    assert {} == dear


def test_the_count_tells_a_listing_that_looks_at_everything(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PLANNER:
        monkeypatch.setitem(PLANNER, name, {"jit": "off", "max_parallel_workers_per_gather": "0"}.get(name, "on"))
    for name in ("enable_indexscan", "enable_indexonlyscan"):
        monkeypatch.setitem(PLANNER, name, "off")
    _, counts = examined(filled, QUERIES["common pair"])

    assert THREADS // 2 <= counts["strata_listing"]


@pytest.mark.parametrize(
    ("name", "first"), [("newest", THREADS), ("common pair", THREADS), ("to purge", 30), ("rare pair", 7)]
)
def test_what_is_listed_is_what_was_filled_in(filled: str, name: str, first: int) -> None:
    async def check(backend: PostgresBackend) -> None:
        heads = await backend.list_heads(QUERIES[name])

        assert f"t{first}" == heads[0].thread_id
        assert EXAMPLE_TIME + GAP * first == heads[0].updated

    with_backend(filled, check)
