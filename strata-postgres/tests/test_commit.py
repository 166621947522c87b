"""The write primitive where others write at the same time, and at its limits; what it decides, the suite holds."""

import asyncio
import os
import random
from typing import Any

import psycopg
import pytest
from postgres_support import DIGEST, EXAMPLE_TIME, called, opened, query, save, with_backend

from strata_core.errors import InvalidInputError, StoreBusyError, StoreUnavailableError
from strata_core.rows import NOTHING, Commit, Committed, Drop, Head, HeadQuery, Refusal, Refused, Take
from strata_postgres import PostgresBackend
from strata_postgres._address import Address
from strata_postgres._options import PostgresOptions


def kinds(outcomes: Any) -> list[str]:
    return [outcome.why.value if isinstance(outcome, Refused) else "done" for outcome in outcomes]


def test_outcomes_come_in_the_order_of_the_batch_whatever_that_of_the_locks(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        threads = [f"t{number}" for number in range(40)] + ["ä", "\U0001f600", "Z", "￿"]
        random.Random(5).shuffle(threads)
        for at, thread_id in enumerate(threads):
            for _ in range(at % 3):
                await backend.commit([save(thread_id)])
        outcomes = await backend.commit([save(each, after=0) for each in threads])

        assert ["changed", "done", "changed"] * 14 + ["changed", "done"] == kinds(outcomes)
        assert {1} == {outcome.sequence for outcome in outcomes if isinstance(outcome, Committed)}

    with_backend(url, check)


def test_two_commits_of_one_thread_in_a_batch_are_refused(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        with pytest.raises(InvalidInputError, match="batch: has two commits of one thread"):
            await backend.commit([save("t"), save("u"), save("t")])
        assert [] == await backend.commit([])
        assert [] == await backend.list_heads(HeadQuery())

    with_backend(url, check)


def test_a_state_that_this_release_does_not_know_is_refused(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        with pytest.raises(InvalidInputError, match=r"row\.state: is 'paused'.*upgrade strata-postgres"):
            await backend.commit([save("t", "paused")])

    with_backend(url, check)


def test_of_two_stores_that_create_the_same_threads_at_once_one_creates_each(url: str) -> None:
    """In opposite orders, thread for thread: neither a deadlock nor a second head."""

    async def check() -> None:
        async with opened(url) as one, opened(url) as two:
            for round_ in range(10):
                threads = [f"{round_}.{number}" for number in range(30)]
                calls = [
                    backend.commit([save(each, after=NOTHING) for each in order])
                    for backend, order in ((one, threads), (two, threads[::-1]), (one, threads[5:]), (two, threads[:9]))
                ]
                outcomes = [outcome for answer in await asyncio.gather(*calls) for outcome in answer]
                assert 30 == kinds(outcomes).count("done")
                assert {"done", "changed"} == set(kinds(outcomes))

    asyncio.run(check())

    assert [(300, 300)] == query(url, "SELECT count(*), count(DISTINCT thread) FROM strata_heads")
    assert [(300,)] == query(url, "SELECT count(*) FROM strata_rows")


def test_random_batches_of_many_backends_never_lock_each_other_out(url: str) -> None:
    """Saves, leases and erasures of few threads, new ones among them."""

    async def work(backend: PostgresBackend, seed: int) -> int:
        choose = random.Random(seed)
        done = 0
        for _ in range(40):
            batch = []
            for thread_id in choose.sample("abcdefghijkl", 6):
                kind = choose.random()
                if kind < 0.6:
                    batch.append(save(thread_id, after=choose.choice([NOTHING, -2, -2])))
                elif kind < 0.8:
                    batch.append(Commit(thread_id, os.urandom(8), erase=True))
                else:
                    batch.append(Commit(thread_id, os.urandom(8), lease=Take("me", 1, closing=kind < 0.9)))
            done += kinds(await backend.commit(batch)).count("done")
        return done

    async def check() -> None:
        async with opened(url) as one, opened(url) as two, opened(url) as three:
            done = await asyncio.gather(*(work(backend, seed) for seed, backend in enumerate((one, two, three) * 2)))

        assert min(done) > 0

    asyncio.run(check())

    ranges = "SELECT thread, count(*) = max(sequence) + 1 FROM strata_rows GROUP BY thread"
    assert {True} >= {whole for _, whole in query(url, ranges)}
    listed = (
        "SELECT count(*) FROM strata_heads AS h FULL JOIN (SELECT * FROM strata_listing WHERE facet = 0) AS l "
        "USING (thread_id) WHERE h.state IS DISTINCT FROM l.state OR h.place IS DISTINCT FROM l.place"
    )
    assert [(0,)] == query(url, listed)


def test_fifty_tasks_on_one_thread_take_turns_and_lose_nothing(url: str) -> None:
    async def check() -> None:
        async with opened(url) as one, opened(url) as two:
            outcomes = await asyncio.gather(*([one, two][n % 2].commit([save("t")]) for n in range(50)))
            rows = await one.read("t", 0, None)

        assert list(range(50)) == sorted(outcome.sequence for (outcome,) in outcomes if isinstance(outcome, Committed))
        assert list(range(50)) == [row.sequence for row in rows]

    asyncio.run(check())


def test_a_call_that_another_one_undoes_is_made_again(url: str) -> None:
    """Another transaction creates the thread and is not done yet: the call waits, begins again, and finds it."""

    async def check(backend: PostgresBackend) -> None:
        address = Address.of(url, PostgresOptions())
        with psycopg.connect(address.conninfo) as other:
            called(other, f'"{address.options.schema}".strata_commit_1', save("t"))
            waiting = asyncio.create_task(backend.commit([save("s", after=NOTHING), save("t", after=NOTHING)]))
            while query(url, "SELECT 1 FROM pg_locks WHERE NOT granted") == []:
                await asyncio.sleep(0.01)
            other.commit()

        assert ["done", "changed"] == kinds(await waiting)

    with_backend(url, check)


def test_a_call_that_is_undone_again_and_again_is_busy(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        query(
            url,
            "CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE serialization_failure; END $$; "
            "CREATE TRIGGER undo BEFORE INSERT ON strata_heads EXECUTE FUNCTION undo()",
        )
        with pytest.raises(StoreBusyError, match="others write to the same threads all the time") as caught:
            await backend.commit([save("t")])

        assert not caught.value.maybe_written

    with_backend(url, check)


def test_the_lease_is_judged_by_the_clock_behind_the_lock(url: str) -> None:
    """A lease that runs out while a commit waits for the thread has run out."""

    async def check(backend: PostgresBackend) -> None:
        (taken,) = await backend.commit([save("t", lease=Take("me", 200_000))])
        assert isinstance(taken, Committed)
        address = Address.of(url, PostgresOptions())
        with psycopg.connect(address.conninfo) as other:
            other.execute(f'SELECT FROM "{address.options.schema}".strata_heads FOR UPDATE'.encode())
            waiting = asyncio.create_task(backend.commit([save("t", token=taken.token), save("u")]))
            while query(url, "SELECT 1 FROM pg_locks WHERE NOT granted") == []:
                await asyncio.sleep(0.01)
            while query(url, "SELECT extract(epoch FROM clock_timestamp()) * 1e6 <= %s", taken.expires) == [(True,)]:
                await asyncio.sleep(0.01)

        assert ["lost", "done"] == kinds(await waiting)

    with_backend(url, check)


def test_a_batch_of_four_megabytes_is_stored_as_it_is(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        bodies = {f"t{number}": b'"%s"' % os.urandom(32_768).hex().encode() for number in range(64)}
        blobs = {thread_id: ((DIGEST, os.urandom(1_000)), (f"{DIGEST[:-1]}1", b"")) for thread_id in bodies}
        await backend.commit([save(each, body=body, blobs=blobs[each]) for each, body in bodies.items()])
        for thread_id, body in bodies.items():
            (row,) = await backend.read(thread_id, None, None)
            assert body == row.body
            assert dict(blobs[thread_id]) == await backend.read_blobs(thread_id, [DIGEST, f"{DIGEST[:-1]}1"])

    with_backend(url, check)


@pytest.mark.parametrize(
    "text", ['"', "\\", "{", "}", ",", "NULL", "null", "'", "$strata$", "%s", "\n", "\\x41", " ", "é\u0301"]
)
def test_any_text_is_taken_literally(url: str, text: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        more = {"metadata": {text: text}, "graph_id": text, "graph_version": text}
        done = await backend.commit([save(each, lease=Take(text, 10**9), **more) for each in (text, f"{text}2")])  # type: ignore[arg-type]
        head = await backend.read_head(text)
        (refused,) = await backend.commit([save(text, lease=Take("you", 1))])

        assert ["done", "done"] == kinds(done)
        assert head is not None
        assert (text, text, text, {text: text}) == (head.owner, head.graph_id, head.graph_version, head.metadata)
        assert isinstance(refused, Refused)
        assert isinstance(refused.head, Head)
        assert (Refusal.HELD, text) == (refused.why, refused.head.owner)
        for asked in (
            HeadQuery(metadata={text: text}),
            HeadQuery(graph_id=text),
            HeadQuery(graph_version=text),
            HeadQuery(past=(EXAMPLE_TIME, f"{text}3")),
        ):
            assert 2 == len(await backend.list_heads(asked))

    with_backend(url, check)


def test_a_lease_of_a_thread_without_rows_leaves_nothing_when_it_is_dropped(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        (taken,) = await backend.commit([Commit("t", b"take0000", lease=Take("me", 10**9), external=True)])
        assert isinstance(taken, Committed)
        await backend.commit([Commit("t", b"drop0000", token=taken.token, lease=Drop())])

    with_backend(url, check)

    assert [(0, 0)] == query(url, "SELECT (SELECT count(*) FROM strata_heads), count(*) FROM strata_listing")


def test_ordinary_saves_are_done_without_the_rule_book_and_all_others_with_it(url: str) -> None:
    """It is replaced by one that refuses to work."""
    more: Any = {"metadata": {"tenant": "acme"}, "graph_id": "g", "updated": EXAMPLE_TIME + 1}

    async def check(backend: PostgresBackend) -> None:
        (taken,) = await backend.commit([save("t", write_id=b"t-first.", lease=Take("me", 10**12), **more)])
        await backend.commit([save("u", **more), save("v", **more)])
        assert isinstance(taken, Committed)
        query(
            url,
            "CREATE OR REPLACE FUNCTION strata_judge_1(numbers bigint[], texts text[], contents bytea, done integer[], "
            "locked integer[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'it was asked'; END $$",
        )
        held = Commit(
            "t", b"t-second", after=0, after_id=b"t-first.", token=taken.token, row=save("t", whole=False, **more).row
        )
        outcomes = await backend.commit([save("u", **more), held])
        assert [1, 1] == [outcome.sequence for outcome in outcomes if isinstance(outcome, Committed)]
        (again,) = await backend.commit([save("t", after=1, token=taken.token, **more)])
        assert isinstance(again, Committed)
        assert (2, taken.token, taken.expires) == (again.sequence, again.token, again.expires)
        for other in (
            held,  # repeated
            save("t", token=taken.token + 1, **more),
            save("t", **more),
            save("u", after=0, **more),
            save("u", after=NOTHING, **more),
            save("u", "interrupted", **more),
            save("u", **more | {"metadata": {"tenant": "else"}}),
            save("u", **more | {"graph_id": "h"}),
            save("u", due=EXAMPLE_TIME, **more),
            save("u", lease=Take("me", 1), **more),
            save("u", blobs=((DIGEST, b"content"),), **more),
            save("new", **more),
            Commit("u", b"external", external=True, row=save("u", **more).row),
            Commit("u", b"u-erase.", erase=True),
        ):
            with pytest.raises(StoreUnavailableError, match="it was asked"):
                await backend.commit([save("v", **more), other])

    with_backend(url, check)

    # What is asked about takes the ordinary save beside it along.
    assert [("t", 2), ("u", 1), ("v", 0)] == query(url, "SELECT thread_id, sequence FROM strata_heads ORDER BY 1")


def test_a_write_id_across_two_others_is_a_new_one(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        for number, write_id in enumerate((b"abcdefgh", b"ijklmnop", b"mnopabcd", b"ijklmnop", b"mnopabcd")):
            (outcome,) = await backend.commit([save("t", write_id=write_id)])

            assert isinstance(outcome, Committed)
            assert [0, 1, 2, 1, 2][number] == outcome.sequence
            assert (number > 2) == outcome.repeated

    with_backend(url, check)


def test_a_save_whose_transaction_fails_behind_its_answer_has_failed(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        query(
            url,
            "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too late'; END $$; "
            "CREATE CONSTRAINT TRIGGER never AFTER INSERT ON strata_rows DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION never()",
        )
        with pytest.raises(StoreUnavailableError, match="too late"):
            await backend.commit([save("t")])
        assert await backend.read_head("t") is None

    with_backend(url, check)
