"""Behind PgBouncer in transaction mode: a connection belongs to a client for one transaction, then to the next client.

Nothing is prepared and no state of a session is used, so nothing of one call is needed by the next.
"""

import asyncio
import functools
import os
from collections.abc import Iterator
from typing import Any

import attrs
import psycopg
import pytest
from postgres_faults import LATER, checkpoint
from postgres_support import contents, opened, query, save

from strata_conformance import Footprint, OpenBackend, OpenStore, Reference, RowBackendTests
from strata_conformance.servers import Database, MissingServerError, PgBouncer, PostgresServer
from strata_conformance.suite import (
    CheckpointStoreTests,
    ConditionalSaveTests,
    LeasedSaveTests,
    QueryTests,
    RetentionTests,
    RowLeaseTests,
)
from strata_core import CheckpointPolicy, Completed, StateGraph, open_store
from strata_core.options import Deltas, Offload
from strata_core.store import RowStore
from strata_postgres import PostgresBackend, PostgresOptions
from strata_postgres._address import Address


@pytest.fixture(scope="module")
def bouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """Two connections to each database, whoever asks."""
    try:
        started = PgBouncer(postgres_server, pool_size=2).start()
    except MissingServerError as missing:
        pytest.skip(str(missing))
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def through(bouncer: PgBouncer, url: str) -> str:
    """The URL of a store that was never set up, through PgBouncer."""
    return bouncer.in_front_of(url)


class TestThroughPgBouncer(
    CheckpointStoreTests, ConditionalSaveTests, LeasedSaveTests, QueryTests, RetentionTests, RowLeaseTests
):
    """A part of the suite, from saves and leases to listing and purge; the whole of it in the large run below."""

    @pytest.fixture
    def open_backend(self, through: str) -> OpenBackend:
        return lambda: PostgresBackend(through)

    @pytest.fixture
    def open_store(self, open_backend: OpenBackend) -> OpenStore:
        return lambda **options: RowStore(open_backend(), **options)

    @pytest.fixture
    def reference(self, through: str) -> Reference:
        return functools.partial(PostgresBackend, through)

    @pytest.fixture
    def footprint(self, url: str) -> Footprint:
        return lambda: contents(url)


if os.environ.get("STRATA_SOAK") == "1":

    @pytest.mark.soak
    class TestAllThroughPgBouncer(RowBackendTests):
        """The whole suite."""

        @pytest.fixture
        def open_backend(self, through: str) -> OpenBackend:
            return lambda: PostgresBackend(through)

        @pytest.fixture
        def reference(self, through: str) -> Reference:
            return functools.partial(PostgresBackend, through)

        @pytest.fixture
        def footprint(self, url: str) -> Footprint:
            return lambda: contents(url)


@attrs.frozen
class Count:
    n: int = 0


def test_the_engine_runs_many_clients_on_two_connections(bouncer: PgBouncer, postgres_database: Database) -> None:
    """Twenty stores, each a pool of its own, with leases, deltas and offload; every node of every run is stored.

    Counted on one connection that stays, in a database that nobody else is connected to.
    """
    url = postgres_database.url
    through = bouncer.in_front_of(url)
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )

    async def check(counting: psycopg.Connection[Any]) -> set[Any]:
        graph = StateGraph(Count)
        for number in range(5):
            graph.add_node(f"n{number}", lambda state: Count(state.n + 1))
        for number in range(4):
            graph.add_edge(f"n{number}", f"n{number + 1}")
        compiled = graph.compile(checkpointing=CheckpointPolicy.EVERY_NODE)
        seen = set()

        async def client(number: int) -> None:
            async with open_store(through, deltas=Deltas(), offload=Offload()) as store:
                for run in range(3):
                    assert Completed(f"{number}.{run}", Count(5)) == await compiled.run(
                        f"{number}.{run}", Count(), store
                    )
                    seen.update(counting.execute(others).fetchall())

        async with open_store(through):
            await asyncio.gather(*(client(number) for number in range(20)))
        return seen

    with psycopg.connect(url, autocommit=True) as counting:
        seen = asyncio.run(check(counting))

    assert {(1,), (2,)} >= seen
    assert [(60,)] == query(url, "SELECT count(*) FROM threads WHERE state = 'completed' AND checkpoints >= 5")


def test_the_connection_changes_from_call_to_call(through: str) -> None:
    """And it makes no difference: each call finds all that it needs."""
    conninfo = Address.of(through, PostgresOptions()).conninfo

    def hold(client: psycopg.Connection[Any]) -> int:
        (process,) = client.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        return int(process)

    async def check() -> tuple[list[int], list[Any], int]:
        async with opened(through, options=PostgresOptions(max_connections=1)) as backend:
            assert backend._pool is not None
            with (
                psycopg.connect(conninfo, prepare_threshold=None) as one,
                psycopg.connect(conninfo, prepare_threshold=None) as other,
            ):
                # In a transaction each keeps one of the two connections, so that the other one is all there is.
                held = [hold(one), hold(other)]
                got = []
                for client in (one, other, one, other):
                    client.rollback()
                    await backend.commit([save("t")])
                    got += [process for (process,) in await backend._pool.fetch("SELECT pg_backend_pid()", ())]
                    hold(client)
            return held, got, len(await backend.read("t", 0, None))

    held, got, rows = asyncio.run(check())

    assert 2 == len(set(held))
    assert held * 2 == got
    assert 4 == rows


def test_a_pooler_that_loses_its_server_connections_is_told_and_serves_again(
    bouncer: PgBouncer, through: str, url: str
) -> None:
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = %s"

    async def check() -> None:
        async with RowStore(PostgresBackend(through)) as store:
            for number in range(10):
                query(url, end, url.rpartition("/")[2].partition("?")[0])
                assert number == await store.save(checkpoint("t", number))
            assert 0 == await store.purge(LATER)

    asyncio.run(check())
