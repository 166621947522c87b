"""Round trips, messages and transactions do not vary from machine to machine, so they are pinned."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from postgres_support import DIGEST, EXAMPLE_TIME, called, opened, query, save, with_backend

from strata_conformance.servers import FaultProxy, PostgresServer, Recording
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus, ThreadQuery
from strata_core.rows import Commit, Committed, Drop, Extend, HeadQuery, Take
from strata_core.store import RowStore
from strata_postgres import PostgresBackend
from strata_postgres._address import Address
from strata_postgres._facets import LAG
from strata_postgres._options import PostgresOptions

ONE_STATEMENT = {"Parse": 1, "Bind": 1, "Describe": 1, "Execute": 1, "Sync": 1}
"""The messages of a statement with arguments that nobody prepared: sent together, one round trip."""


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    with FaultProxy.before(postgres_server) as proxy:
        yield proxy


def sent(recording: Recording) -> dict[str, int]:
    """The messages that were sent, without the farewell of the connection that looked at the schema."""
    return {kind: count for kind, count in recording.messages.items() if kind != "Terminate"}


def commits(token: int = 0) -> dict[str, Commit]:
    return {
        "first save": save("new"),
        "save": save("t", updated=EXAMPLE_TIME + 1),
        "conditional save": save("t", after=1),
        "save with blobs": save("t", blobs=((DIGEST, b"content"),), whole=False),
        "save that takes a lease": save("u", lease=Take("me", 10**9)),
        "save that gives one back": save("t", token=token, lease=Drop()),
        "refused save": save("t", after=77),
        "lease": Commit("v", b"take0000", lease=Take("me", 10**9)),
        "renewal": Commit("t", b"renew000", token=token, lease=Extend(10**9)),
        "erase": Commit("u", b"erase000", erase=True),
    }


@pytest.mark.parametrize("name", commits())
def test_every_commit_is_one_round_trip_of_one_statement(proxy: FaultProxy, url: str, name: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        (taken,) = await backend.commit([save("t", lease=Take("me", 10**12))])
        assert isinstance(taken, Committed)
        with proxy.recording() as recording:
            await backend.commit([commits(taken.token)[name]])

        assert (1, 1) == (recording.round_trips, len(recording.requests))
        assert ONE_STATEMENT == sent(recording)

    with_backend(proxy.url(url), check)


def checkpoint(thread_id: str, number: int = 0) -> Checkpoint:
    text = {"step": number, "text": "x" * 5_000, "large": "y" * 70_000}
    return Checkpoint(thread_id, CheckpointStatus.RUNNING, text, datetime(2026, 10, 30, tzinfo=UTC))


def small(thread_id: str) -> Checkpoint:
    return Checkpoint(thread_id, CheckpointStatus.RUNNING, {"step": 1}, datetime(2026, 10, 30, tzinfo=UTC))


def test_fifty_waiting_saves_are_one_round_trip_and_one_transaction(proxy: FaultProxy, url: str) -> None:
    """With deltas, blobs and conditions; one transaction is one flush of the server's log."""

    async def check() -> None:
        backend = PostgresBackend(proxy.url(url))
        async with RowStore(backend, deltas=Deltas(), offload=Offload()) as store:
            for number in range(2):
                with proxy.recording() as recording:
                    await asyncio.gather(*(store.save(checkpoint(f"t{each}", number)) for each in range(50)))

                assert 1 == recording.round_trips
                assert ONE_STATEMENT == sent(recording)

    asyncio.run(check())

    assert [(2, 100)] == query(url, "SELECT count(DISTINCT xmin::text), count(*) FROM strata_rows")
    assert [(50,)] == query(url, "SELECT count(*) FROM strata_blobs")
    assert [("1.8.0", 50), ("1.9.0", 50)] == query(
        url, "SELECT version, count(*) FROM strata_rows GROUP BY 1 ORDER BY 1"
    )


def test_a_hundred_waiting_saves_are_two_round_trips_under_way_at_once(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        async with RowStore(PostgresBackend(proxy.url(url))) as store:
            await store.save(small("t"))
            held = proxy.hang("reply", match=b"strata_commit")
            saves = asyncio.gather(*(store.save(small(f"t{each}")) for each in range(100)))
            while query(url, "SELECT count(*) FROM strata_rows") != [(101,)]:
                await asyncio.sleep(0.01)
            held.wait()
            proxy.release(held)
            await saves

    asyncio.run(check())

    assert [(3, 101)] == query(url, "SELECT count(DISTINCT xmin::text), count(*) FROM strata_rows")


def test_every_read_is_one_round_trip_of_one_statement(proxy: FaultProxy, url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save(f"t{number}", blobs=((DIGEST, b"content"),)) for number in range(60)])
        for read in (
            lambda: backend.read_head("t1"),
            lambda: backend.read("t1", None, None),
            lambda: backend.read("t1", 0, 5),
            lambda: backend.read_blobs("t1", [DIGEST]),
            lambda: backend.list_heads(HeadQuery(limit=50)),
            lambda: backend.list_heads(HeadQuery(metadata={"a": "b"}, due_until=5, leased=True)),
            backend.ping,
        ):
            with proxy.recording() as recording:
                await read()

            assert (1, ONE_STATEMENT) == (recording.round_trips, sent(recording))

    with_backend(proxy.url(url), check)


def test_fifty_waiting_loads_are_one_round_trip(proxy: FaultProxy, url: str) -> None:
    """As those of fifty threads that go on together; one of a thread that does not exist is among them."""

    async def check(backend: PostgresBackend) -> None:
        threads = [f't{number}"\\,' for number in range(50)]
        for whole in (True, False):
            await backend.commit([save(each, whole=whole, body=each.encode()) for each in threads])
        with proxy.recording() as recording:
            loads = await asyncio.gather(*(backend.read(each, None, None) for each in [*threads, "none", threads[7]]))

        assert (1, ONE_STATEMENT) == (recording.round_trips, sent(recording))
        assert [[0, 1]] * 50 + [[], [0, 1]] == [[row.sequence for row in rows] for rows in loads]
        assert [each.encode() for each in threads] == [rows[-1].body for rows in loads[:50]]

    with_backend(proxy.url(url), check)


def test_a_page_of_threads_is_one_round_trip(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        async with RowStore(PostgresBackend(proxy.url(url))) as store:
            await asyncio.gather(*(store.save(checkpoint(f"t{each}")) for each in range(60)))
            with proxy.recording() as recording:
                page = await store.list_threads(ThreadQuery(limit=50))

            assert 50 == len(page.threads)
            assert 1 == recording.round_trips

    asyncio.run(check())


def test_opening_what_is_set_up_asks_twice(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        async with opened(proxy.url(url)):
            pass
        with proxy.recording() as recording:
            async with opened(proxy.url(url)):
                pass

        assert 2 == recording.round_trips

    asyncio.run(check())


def test_no_state_of_a_session_is_left_behind(url: str) -> None:
    """So whoever gets the connection next, behind a pooler, finds it as it was."""
    looks = (
        "SELECT count(*) FROM pg_prepared_statements",
        "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT IN ('client_encoding')",
        "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'",
        "SELECT count(*) FROM pg_listening_channels()",
        "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND pg_table_is_visible(oid)",
    )

    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save(f"t{number}") for number in range(10)])
        for number in range(10):
            await backend.commit([save("t1", updated=EXAMPLE_TIME + number)])
            await backend.list_heads(HeadQuery())
            await backend.read("t1", None, None)
        assert backend._pool is not None
        for look in looks:
            assert [(0,)] == await backend._pool.fetch(look, ())

    with_backend(url, check, options=PostgresOptions(min_connections=1, max_connections=1))


def written(url: str, commit: Commit) -> tuple[int, int, int, int]:
    """Run a commit and return how many heads it updated, how many of those without an index, and how many entries of
    the listing it removed and added.
    """
    address = Address.of(url, PostgresOptions())
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(f'SET search_path = "{address.options.schema}"'.encode())
        called(connection, "strata_commit_1", commit)
        record = connection.execute(
            "SELECT pg_stat_get_xact_tuples_updated('strata_heads'::regclass), "
            "pg_stat_get_xact_tuples_hot_updated('strata_heads'::regclass), "
            "pg_stat_get_xact_tuples_deleted('strata_listing'::regclass), "
            "pg_stat_get_xact_tuples_inserted('strata_listing'::regclass)"
        ).fetchone()
        assert record is not None
        return record


def test_an_ordinary_save_writes_no_index_but_that_of_its_row(url: str) -> None:
    """A running thread that goes on within `LAG` keeps its place, also when it renews its lease."""

    async def begin(backend: PostgresBackend) -> None:
        more: Any = {"metadata": {"tenant": "acme", "order": "7"}, "graph_id": "g", "graph_version": "1"}
        await backend.commit([save("t", lease=Take("me", 10**12), **more)])

    def again(state: str = "running", later: int = LAG - 1, **changed: object) -> Commit:
        more = {"metadata": {"order": "7", "tenant": "acme"}, "graph_id": "g", "graph_version": "1"} | changed
        return save("t", state, updated=EXAMPLE_TIME + later, **more)  # type: ignore[arg-type]

    with_backend(url, begin)

    assert (1, 1, 0, 0) == written(url, again())
    assert (1, 1, 0, 0) == written(url, Commit("t", os.urandom(8), token=1, lease=Extend(10**12)))
    assert (1, 1, 0, 0) == written(url, again(token=1))
    # Later than that, in another state, or with other pairs: seven entries, one of them for the lease.
    assert (1, 1, 7, 7) == written(url, again(later=LAG))
    assert (1, 1, 7, 9) == written(url, again("interrupted", later=LAG + 5, due=EXAMPLE_TIME))
    assert (1, 1, 9, 7) == written(
        url, again("completed", later=LAG + 6, token=1, lease=Drop(), due=None, metadata={"a": "b", "c": "d", "e": "f"})
    )
    # A refused or repeated commit writes nothing.
    assert (0, 0, 0, 0) == written(url, save("t", after=77))
    repeated = again(later=LAG + 7)
    written(url, repeated)
    assert (0, 0, 0, 0) == written(url, repeated)


def test_erasing_sixty_four_threads_leaves_nothing_of_them(url: str) -> None:
    """Taken first, as a purge does, then let go of with all that is left: two statements."""

    async def check(backend: PostgresBackend) -> None:
        threads = [f"t{number}" for number in range(64)]
        await backend.commit([save(each, blobs=((DIGEST, b"content"),), metadata={"a": "b"}) for each in threads])
        await backend.commit([save(each) for each in threads])
        taken = await backend.commit(
            [Commit(each, b"take0000", lease=Take("purge", 10**9, closing=True), erase=True) for each in threads]
        )
        tokens = [outcome.token for outcome in taken if isinstance(outcome, Committed)]
        await backend.commit(
            [
                Commit(each, b"drop0000", token=token, lease=Drop(), erase=True)
                for each, token in zip(threads, tokens, strict=True)
            ]
        )

    with_backend(url, check)

    for table in ("strata_rows", "strata_blobs", "strata_heads", "strata_listing"):
        assert [(0,)] == query(url, f"SELECT count(*) FROM {table}")
