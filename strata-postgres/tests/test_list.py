"""Listings: the right heads, in order."""

import random
from typing import Any

import attrs
import pytest
from postgres_support import EXAMPLE_TIME, opened, save, with_backend

from strata_core.memory import MemoryBackend
from strata_core.rows import Commit, Head, HeadQuery, Take
from strata_postgres import PostgresBackend, _list
from strata_postgres._facets import LAG

STATES = ["running", "running", "interrupted", "completed", "ended"]


def random_commit(choose: random.Random, thread_id: str) -> Commit:
    lease = choose.choice([None, None, None, Take("me", choose.choice([1, 10**12]))])
    if choose.random() < 0.1:
        return Commit(thread_id, choose.randbytes(8), lease=Take("me", choose.choice([1, 10**12])))
    return save(
        thread_id,
        choose.choice(STATES),
        write_id=choose.randbytes(8),
        updated=EXAMPLE_TIME + choose.choice([choose.randrange(40), choose.randrange(4 * LAG), LAG, LAG - 1]),
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

    times = [EXAMPLE_TIME + offset for offset in (*range(-1, 42, 3), *range(0, 4 * LAG, LAG // 7))]
    return HeadQuery(
        states=maybe(
            *(frozenset(choose.sample([*STATES[1:], "no such state"], count)) for count in (0, 1, 1, 2, 3)),
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


def plain(head: Head) -> dict[str, Any]:
    """A head without what the server's clock gave it."""
    return attrs.asdict(head) | {"now": 0, "expires": 0, "token": 0, "metadata": dict(head.metadata)}


@pytest.mark.parametrize("seed", range(4))
def test_random_queries_list_what_the_rule_lists(url: str, seed: int) -> None:
    """Threads are saved several times within the time for which a running thread keeps its place."""

    async def check(backend: PostgresBackend) -> None:
        model = MemoryBackend()
        threads = [choose.choice("aAzä日\U0001f600") + str(number) for number in range(100)]
        for _ in range(6):
            batch = [random_commit(choose, thread_id) for thread_id in choose.sample(threads, 60)]
            await model.commit(batch)
            await backend.commit(batch)
        for _ in range(150):
            query = random_query(choose)

            expected = [plain(head) for head in await model.list_heads(query)]
            assert expected == [plain(head) for head in await backend.list_heads(query)], query

    choose = random.Random(seed)
    with_backend(url, check)


@pytest.mark.parametrize("oldest_first", [True, False])
def test_pages_show_every_thread_once_also_where_times_are_equal(url: str, oldest_first: bool) -> None:
    async def check(backend: PostgresBackend) -> None:
        threads = [f"{letter}{number}" for letter in "aBäß日\U0001f600" for number in range(9)]
        for lag in (0, LAG // 2):
            await backend.commit(
                [save(each, STATES[at % 4], updated=EXAMPLE_TIME + at % 3 + lag) for at, each in enumerate(threads)]
            )
        seen: list[Head] = []
        past = None
        while page := await backend.list_heads(HeadQuery(past=past, oldest_first=oldest_first, limit=7)):
            seen += page
            past = (page[-1].updated, page[-1].thread_id)

        places = [(head.updated, head.thread_id.encode()) for head in seen]
        assert sorted(threads) == sorted(head.thread_id for head in seen)
        assert sorted(places, reverse=not oldest_first) == places

    with_backend(url, check)


def test_a_query_may_name_any_number_of_metadata_pairs(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        pairs = {f"key '{number}\\\"é": f"value {number}\n😀" for number in range(2_000)}
        one_less = dict(list(pairs.items())[1:])
        await backend.commit([save("all", metadata=pairs), save("one less", metadata=one_less)])
        with_all = await backend.list_heads(HeadQuery(metadata=pairs))
        with_one_less = await backend.list_heads(HeadQuery(metadata=one_less))

        assert ["all"] == [head.thread_id for head in with_all]
        assert ["one less", "all"] == [head.thread_id for head in with_one_less]

    with_backend(url, check)


def test_pairs_whose_hashes_are_equal_are_told_apart(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds two such pairs can neither see another tenant's threads nor hide them."""
    monkeypatch.setattr(_list, "pair_facet", lambda key, value: 77)
    monkeypatch.setattr("strata_postgres._facets._hashed", lambda *parts: 77)

    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save(f"t{n}", metadata={"tenant": "ab"[n % 2], "x": "y"}) for n in range(20)])
        for tenant in "ab":
            heads = await backend.list_heads(HeadQuery(metadata={"tenant": tenant}))

            assert 10 == len(heads)
            assert {tenant} == {head.metadata["tenant"] for head in heads}

    with_backend(url, check)


def test_two_schemas_of_one_database_never_see_each_other(url: str, server_url: str, schema: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        other_url = f"{server_url}?schema={schema}_2"
        try:
            async with opened(other_url) as other:
                await backend.commit([save("t", metadata={"tenant": "acme"})])
                assert await other.read_head("t") is None
                assert [] == await other.list_heads(HeadQuery(metadata={"tenant": "acme"}))
                await other.commit([save("t"), save("u")])
                await other.commit([Commit("t", b"12345678", erase=True)])

            assert ["t"] == [head.thread_id for head in await backend.list_heads(HeadQuery())]
            assert 1 == len(await backend.read("t", 0, None))
        finally:
            from postgres_support import query

            query(url, f'DROP SCHEMA "{schema}_2" CASCADE')

    with_backend(url, check)
