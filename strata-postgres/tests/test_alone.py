"""Saves that come alone: each kind has a function of its own, which does what the rule book would."""

import asyncio
import os
import random
from typing import Any

import attrs
import psycopg
import pytest
from postgres_support import EXAMPLE_TIME, opened, query, save, with_backend

from strata_core.errors import StoreUnavailableError
from strata_core.rows import ANY, NOTHING, Commit, Committed, Drop, Extend, Refused, Take
from strata_postgres import PostgresBackend
from strata_postgres._address import Address
from strata_postgres._facets import LAG
from strata_postgres._options import PostgresOptions

FACTS: list[dict[str, Any]] = [
    {},
    {"metadata": {"tenant": "acme"}, "graph_id": "g", "graph_version": "1"},
    {"metadata": {"a": '"\\', "b": "é"}, "due": EXAMPLE_TIME + 7},
]


def outcome(done: Committed | Refused) -> tuple[object, ...]:
    """What became of a commit, but for its thread's name and the clock."""
    if isinstance(done, Refused):
        head = done.head
        return (done.why, head and (head.sequence, head.write_ids, head.token > 0, head.owner, head.closing))
    return (done.sequence, done.token > 0, done.expires > 0, done.repeated)


KEPT = (
    """
    SELECT updated, place, token > 0, expires > 0, sequence, whole_at, state, external, closing, write_ids, owner,
           lease_id, facets, due, graph_id, graph_version, metadata, facts
    FROM strata_heads WHERE thread_id = %s
    """,
    "SELECT facet, state, place FROM strata_listing WHERE thread_id = %s ORDER BY 1, 2, 3",
    """
    SELECT sequence, r.whole_at, write_id, version, envelope, body
    FROM strata_rows AS r JOIN (SELECT thread FROM strata_heads WHERE thread_id = %s) AS h USING (thread) ORDER BY 1
    """,
)
"""All that is stored of a thread, but for its names, tokens and times of the server's clock."""


def drawn(choose: random.Random, latest: int, ids: list[bytes]) -> Commit:
    """A commit of one thread, most often one that has a function of its own; `token` says whether there is one."""
    state = choose.choice(["running", "running", "running", "completed", "interrupted"])
    later = choose.choice([1, 2, 3, LAG // 2, LAG, 5 * LAG, -5])
    commit = save(
        "t",
        state,
        write_id=choose.choice(ids) if ids and choose.random() < 0.1 else None,
        after=choose.choice([ANY, ANY, latest, latest, NOTHING, latest - 1]),
        token=choose.choice([0, 1, 1]),
        lease=choose.choice([None, None, None, Take("me", choose.choice([1, 10**12])), Drop(), Extend(10**12)]),
        updated=EXAMPLE_TIME + later,
        whole=choose.random() < 0.7,
        **choose.choice([FACTS[0], FACTS[1], FACTS[1], choose.choice(FACTS)]),
    )
    if isinstance(commit.lease, Take):
        commit.token = 0
    commit.free = not commit.token and choose.random() < 0.3
    if choose.random() < 0.05:
        commit.row, commit.erase, commit.lease = None, True, None
    return commit


def test_a_save_alone_leaves_what_it_leaves_in_a_batch(url: str) -> None:
    """Two threads take the same random commits, the one alone, the other in a batch with a third."""
    choose = random.Random(20261201)
    address = Address.of(url, PostgresOptions())

    async def check(backend: PostgresBackend) -> None:
        tokens = {"alone": 0, "beside": 0}
        latest, ids = NOTHING, [b"no such "]
        for _ in range(150):
            commit = drawn(choose, latest, ids[-6:])
            after_id = choose.choice([b"", ids[-1]])
            ids.append(commit.write_id)
            outcomes = {}
            for thread_id, token in tokens.items():
                one = attrs.evolve(commit, thread_id=thread_id, token=commit.token and token, after_id=after_id)
                if not (one.token or isinstance(one.lease, Take)):
                    one.lease = None
                batch = [one] if thread_id == "alone" else [one, Commit("third", os.urandom(8), erase=True)]
                outcomes[thread_id] = (await backend.commit(batch))[0]
            assert outcome(outcomes["beside"]) == outcome(outcomes["alone"])
            for statement in KEPT:
                beside, alone = (looking.execute(statement, (each,)).fetchall() for each in ("beside", "alone"))
                assert beside == alone
            for thread_id, done in outcomes.items():
                if isinstance(done, Committed):
                    tokens[thread_id] = done.token or tokens[thread_id]
                    latest = done.sequence
        assert latest > NOTHING

    with psycopg.connect(address.conninfo, autocommit=True) as looking:
        looking.execute(f'SET search_path = "{address.options.schema}"'.encode())
        with_backend(url, check)


def test_the_saves_of_a_run_are_done_without_the_function_of_a_batch(url: str) -> None:
    """It is replaced by one that refuses to work."""
    more: Any = FACTS[1]

    async def check(backend: PostgresBackend) -> None:
        (taken,) = await backend.commit([save("held", lease=Take("you", 10**12), **more)])
        query(
            url,
            "CREATE OR REPLACE FUNCTION strata_commit_1(numbers bigint[], texts text[], contents bytea) RETURNS text "
            "LANGUAGE plpgsql AS $$ BEGIN RAISE 'it was asked'; END $$",
        )

        async def done(commit: Commit) -> Committed:
            (outcome,) = await backend.commit([commit])
            assert isinstance(outcome, Committed)
            return outcome

        first = await done(save("t", lease=Take("me", 10**12), **more))
        token = first.token
        assert 0 < token
        await done(save("t", token=token, updated=EXAMPLE_TIME + 1, **more))
        await done(save("t", token=token, after=1, whole=False, updated=EXAMPLE_TIME + LAG - 1, **more))
        assert 3 == (await done(save("t", "completed", token=token, lease=Drop(), **more))).sequence
        await done(save("u", after=NOTHING, due=EXAMPLE_TIME, metadata={"a": "b"}))
        await done(save("v", "interrupted", after=NOTHING))
        assert 1 == (await done(save("v", "resumed"))).sequence
        assert isinstance(taken, Committed)
        for other in (
            save("held", lease=Take("me", 1), **more),
            save("held", **more),
            save("held", token=taken.token + 1, **more),
            save("held", token=taken.token, after=7, **more),
            save("held", token=taken.token, updated=EXAMPLE_TIME + LAG, **more),
            save("held", token=taken.token),
            save("held", "completed", **more),
            save("u", "completed"),  # it was due
            save("new"),
        ):
            with pytest.raises(StoreUnavailableError, match="it was asked"):
                await backend.commit([other])

    with_backend(url, check)


@pytest.mark.parametrize("state", ["running", "completed"])
def test_the_lease_is_judged_by_the_clock_behind_the_lock(url: str, state: str) -> None:
    """A lease that runs out while a save waits for its thread, which is only locked meanwhile, has run out."""

    async def check(backend: PostgresBackend) -> None:
        (taken,) = await backend.commit([save("t", lease=Take("me", 200_000))])
        assert isinstance(taken, Committed)
        lease = None if state == "running" else Drop()
        address = Address.of(url, PostgresOptions())
        with psycopg.connect(address.conninfo) as other:
            other.execute(f'SELECT FROM "{address.options.schema}".strata_heads FOR UPDATE'.encode())
            waiting = asyncio.create_task(backend.commit([save("t", state, token=taken.token, lease=lease)]))
            while query(url, "SELECT 1 FROM pg_locks WHERE NOT granted") == []:
                await asyncio.sleep(0.01)
            while query(url, "SELECT extract(epoch FROM clock_timestamp()) * 1e6 <= %s", taken.expires) == [(True,)]:
                await asyncio.sleep(0.01)

        (refused,) = await waiting
        assert isinstance(refused, Refused)
        assert ("lost", 0) == (refused.why, refused.head and refused.head.sequence)

    with_backend(url, check)


def test_of_two_stores_that_save_a_new_thread_at_once_one_is_first(url: str) -> None:
    async def check() -> None:
        async with opened(url) as one, opened(url) as two:
            for number in range(20):
                pair = [save(f"t{number}", lease=Take(owner, 10**12)) for owner in "ab"]
                outcomes = await asyncio.gather(one.commit(pair[:1]), two.commit(pair[1:]))
                kinds = sorted(type(each).__name__ for (each,) in outcomes)
                assert ["Committed", "Refused"] == kinds

    asyncio.run(check())

    assert [(20, 20)] == query(url, "SELECT count(*), sum(sequence + 1)::integer FROM strata_heads")
    assert [(40,)] == query(url, "SELECT count(*) FROM strata_listing")
