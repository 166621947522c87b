"""The driver's errors never leak: each becomes one of ours, and the backend goes on."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from postgres_support import EXAMPLE_TIME, opened, query, save, with_backend
from psycopg_pool import PoolTimeout

from strata_conformance.servers import Database, FaultProxy, PostgresServer
from strata_core.errors import (
    CorruptCheckpointError,
    InvalidInputError,
    ReadOnlyError,
    SchemaVersionError,
    StoreBusyError,
    StoreClosedError,
    StoreUnavailableError,
    UsageError,
)
from strata_core.options import Setup
from strata_core.rows import Committed, HeadQuery
from strata_postgres import PostgresBackend, PostgresOptions
from strata_postgres._address import Address
from strata_postgres._errors import translate

SECRET = "hunter2secret"
ADDRESS = Address.of(f"postgresql://app:{SECRET}@db/orders", PostgresOptions())


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    with FaultProxy.before(postgres_server) as proxy:
        yield proxy


class Said(psycopg.OperationalError):
    """An error of the server with a code."""

    def __init__(self, code: str | None, text: str = "a text") -> None:
        super().__init__(text)
        self.sqlstate = code


def told(error: BaseException | None) -> str:
    """All that a traceback says of an error and those behind it, but for the lines of this test."""
    text = ""
    while error is not None:
        text += f"{error!r} {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return text


@pytest.mark.parametrize(
    ("code", "expected", "maybe_written"),
    [
        ("55P03", StoreBusyError, False),  # lock_timeout
        ("40001", StoreBusyError, False),
        ("40P01", StoreBusyError, False),
        ("57014", StoreUnavailableError, False),  # statement_timeout: the server undid it
        ("53100", StoreUnavailableError, False),  # disk full
        ("53200", StoreUnavailableError, False),
        ("57P01", StoreUnavailableError, True),  # may come behind a commit that waits for a standby
        ("57P02", StoreUnavailableError, True),
        (None, StoreUnavailableError, True),
        ("25006", ReadOnlyError, None),
        ("42501", ReadOnlyError, None),
        ("42P01", SchemaVersionError, None),
        ("42883", SchemaVersionError, None),
        ("3F000", SchemaVersionError, None),
        ("XX001", CorruptCheckpointError, None),
        ("XX002", CorruptCheckpointError, None),
        ("54000", InvalidInputError, None),
        ("22P05", InvalidInputError, None),
        ("22021", InvalidInputError, None),
        ("XX000", StoreUnavailableError, False),
    ],
)
def test_each_code_of_a_failed_write_has_its_error(
    code: str | None, expected: type[Exception], maybe_written: bool | None
) -> None:
    found = translate(Said(code), ADDRESS, writing=True, thread_id="t")

    assert expected is type(found)
    assert maybe_written == getattr(found, "maybe_written", None)


@pytest.mark.parametrize("code", [None, "57P01", "57014"])
def test_a_failed_read_and_a_write_that_never_left_wrote_nothing(code: str | None) -> None:
    for found in (translate(Said(code), ADDRESS), translate(Said(code), ADDRESS, writing=True, sent=False)):
        assert isinstance(found, StoreUnavailableError)
        assert not found.maybe_written


def test_a_read_that_lacks_a_privilege_is_unavailable() -> None:
    assert StoreUnavailableError is type(translate(Said("42501"), ADDRESS))


def test_no_connection_in_time_wrote_nothing() -> None:
    found = translate(PoolTimeout("couldn't get a connection"), ADDRESS, writing=True, sent=False)

    assert StoreUnavailableError is type(found)
    assert not getattr(found, "maybe_written", True)


def test_messages_hold_no_password() -> None:
    found = translate(Said(None, f'connection to "postgresql://app:{SECRET}@db/orders" failed'), ADDRESS)

    assert SECRET not in str(found)
    assert SECRET not in repr(PostgresBackend(ADDRESS.url))
    assert SECRET not in repr(ADDRESS)
    assert "postgresql://app:***@db/orders (schema 'public')" in str(found)


@pytest.mark.parametrize("read_only", [True, False])
def test_nothing_that_a_failed_open_raises_or_logs_holds_the_password(
    server_url: str, read_only: bool, caplog: pytest.LogCaptureFixture
) -> None:
    place = server_url.partition("@")[2].partition("/")[0]
    host, _, _port = place.partition(":")
    for url in (
        f"postgresql://nobody_here:{SECRET}@{place}/postgres",
        f"postgresql://postgres:{SECRET}@{place}/no_such_database",
        f"postgresql://postgres:{SECRET}@{host}:1/postgres",
        f"postgresql://postgres:{SECRET}@{host}:port/postgres",
        f"postgresql://postgres:1/{SECRET}@{place}/postgres",
        f"postgresql://postgres:{SECRET}@no.such.host.invalid/postgres",
        f"postgresql://postgres@{place}/no_such_database?password={SECRET}",
    ):
        backend = PostgresBackend(url, options=PostgresOptions(connect_timeout=timedelta(seconds=3)))
        with pytest.raises(StoreUnavailableError) as caught:
            asyncio.run(backend.open(read_only=read_only, setup=Setup.AUTO))

        assert not caught.value.maybe_written
        assert SECRET not in told(caught.value)
        asyncio.run(backend.close())
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://app:{SECRET}%zz@host/db",
        f"postgresql://app:hunter@{SECRET}@host/db",
        f"postgresql://app:{SECRET}@hunter@host/db",
        f"postgresql://app:{SECRET} 9@host/db",
        f"postgresql://app:9 {SECRET}@host/db",
        f"postgresql://app:{SECRET}@host/db?no_such_option=1",
        f"postgresql://app@host/db?password={SECRET}&no_such_option",
        f"mysql://app:{SECRET}@host/db",
        f"postgresql://app:{SECRET}@host/db?schema=a-b",
        f"host=db password={SECRET}",
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        PostgresBackend(url)

    assert SECRET not in told(caught.value)


def test_the_state_stands_in_no_error(url: str) -> None:
    """The server quotes the row that broke a constraint."""

    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        query(url, "ALTER TABLE strata_rows ADD CHECK (sequence = 0)")
        with pytest.raises(StoreUnavailableError, match="check constraint") as caught:
            await backend.commit([save("t", body=b'{"card":"4111 1111"}')])

        assert "4111" not in told(caught.value)
        assert b"4111".hex() not in told(caught.value)

    with_backend(url, check)


def test_a_connection_that_the_server_ended_meanwhile_is_replaced_without_an_error(url: str, server_url: str) -> None:
    """As after a restart: nothing was sent on it, so nothing is repeated."""

    async def check(backend: PostgresBackend) -> None:
        (_first,) = await backend.commit([save("t")])
        for sequence in range(1, 4):
            query(
                url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND query LIKE %s",
                f"%{backend._schema}%",
            )
            await asyncio.sleep(0.05)  # until the farewell has come
            (outcome,) = await backend.commit([save("t")])
            assert isinstance(outcome, Committed)
            assert (sequence, False) == (outcome.sequence, outcome.repeated)

    with_backend(url, check)


def test_a_read_whose_connection_breaks_is_made_again(proxy: FaultProxy, url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        proxy.reset("reply", match=b"strata_rows AS r")

        assert 1 == len(await backend.read("t", None, None))

    with_backend(proxy.url(url), check)


@pytest.mark.parametrize("at", ["request", "reply"])
def test_a_write_whose_connection_breaks_may_have_been_done_and_can_be_repeated(
    proxy: FaultProxy, url: str, at: Any
) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        commit = save("t")
        proxy.reset(at, match=b"strata_commit")
        with pytest.raises(StoreUnavailableError) as caught:
            await backend.commit([commit])

        assert caught.value.maybe_written
        assert isinstance(caught.value.__cause__, psycopg.OperationalError)
        (outcome,) = await backend.commit([commit])
        assert isinstance(outcome, Committed)
        assert (1, at == "reply") == (outcome.sequence, outcome.repeated)
        assert 2 == len(await backend.read("t", 0, None))

    with_backend(proxy.url(url), check)


def test_of_loads_that_go_together_one_that_is_damaged_fails_alone(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save(f"t{number}") for number in range(5)])
        query(
            url,
            "CREATE FUNCTION damaged(bytea) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN "
            "IF $1 = 'damage' THEN RAISE data_corrupted; END IF; RETURN $1; END $$; "
            "UPDATE strata_rows SET body = 'damage' WHERE thread = (SELECT thread FROM strata_heads "
            "WHERE thread_id = 't3'); ALTER TABLE strata_rows RENAME TO kept; "
            f"CREATE VIEW strata_rows AS SELECT thread, sequence, whole_at, write_id, version, envelope, "
            f"{backend._schema}.damaged(body) AS body FROM kept",
        )
        loads = (backend.read(f"t{number}", None, None) for number in range(5))
        outcomes = await asyncio.gather(*loads, return_exceptions=True)

        assert isinstance(outcomes.pop(3), CorruptCheckpointError)
        assert [1] * 4 == [len(rows) for rows in outcomes if not isinstance(rows, BaseException)]

    with_backend(url, check)


def test_a_server_that_does_not_answer_loses_the_connection_and_the_next_call_works(
    proxy: FaultProxy, url: str
) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        write = proxy.hang("reply", match=b"strata_commit")
        with pytest.raises(StoreUnavailableError, match=r"did not answer within 0\.5 s") as caught:
            await backend.commit([save("t")])
        assert caught.value.maybe_written
        proxy.release(write)
        read = proxy.hang("request", match=b"strata_heads AS h WHERE")
        with pytest.raises(StoreUnavailableError, match=r"did not answer within 0\.5 s") as caught:
            await backend.read_head("t")
        assert not caught.value.maybe_written
        proxy.release(read)

        assert 2 == len(await backend.read("t", 0, None))

    options = PostgresOptions(command_timeout=timedelta(seconds=0.5))
    with_backend(proxy.url(url), check, options=options)


def test_a_server_that_is_away_is_said_with_the_reason_and_serves_again_when_it_is_back(
    proxy: FaultProxy, url: str
) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        proxy.refuse()
        proxy.reset_all()
        with pytest.raises(
            StoreUnavailableError, match=r"no connection was free or could be made in time.*refused"
        ) as caught:
            await backend.commit([save("t")])
        assert not caught.value.maybe_written
        proxy.accept()
        for _ in range(100):
            try:
                await backend.commit([save("t")])
                break
            except StoreUnavailableError:
                await asyncio.sleep(0.05)

        assert 2 == len(await backend.read("t", 0, None))

    options = PostgresOptions(pool_timeout=timedelta(seconds=0.5))
    with_backend(proxy.url(url), check, options=options)


def test_a_cancelled_read_gives_its_connection_back(proxy: FaultProxy, url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        before = proxy.connections
        for _ in range(5):
            reading = asyncio.create_task(backend.read_head("t"))
            for _ in range(3):
                await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        assert await backend.read_head("t") is not None
        assert before == proxy.connections

    with_backend(proxy.url(url), check, options=PostgresOptions(max_connections=1))


def test_a_locked_thread_is_busy_where_the_database_limits_the_wait(postgres_database: Database) -> None:
    url = postgres_database.url

    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        with psycopg.connect(url) as other:
            other.execute("SELECT FROM strata_heads FOR UPDATE")
            with pytest.raises(StoreBusyError, match="kept what is needed locked") as caught:
                await backend.commit([save("t")])

            assert not caught.value.maybe_written
            assert 1 == len(await backend.read("t", 0, None))  # a reader does not wait
        await backend.commit([save("t")])

    postgres_database.execute(f"ALTER DATABASE \"{postgres_database.name}\" SET lock_timeout = '50ms'")
    with_backend(url, check)


def test_a_backend_can_be_closed_at_any_time_and_refuses_calls_then(url: str) -> None:
    async def check() -> None:
        backend = PostgresBackend(url)
        await backend.close()
        await backend.open(read_only=False, setup=Setup.AUTO)
        with pytest.raises(UsageError, match="is open already"):
            await backend.open(read_only=False, setup=Setup.AUTO)
        reads = [asyncio.create_task(backend.read_head("t")) for _ in range(30)]
        await asyncio.sleep(0)
        await backend.close()
        await backend.close()
        assert [None] * 30 == await asyncio.gather(*reads)
        for call in (
            backend.read_head("t"),
            backend.commit([save("t")]),
            backend.list_heads(HeadQuery()),
            backend.ping(),
        ):
            with pytest.raises(StoreClosedError):
                await call
        await backend.open(read_only=False, setup=Setup.AUTO)
        await backend.commit([save("t")])
        await backend.close()

    asyncio.run(check())


def test_a_write_to_a_read_only_store_is_refused(url: str) -> None:
    async def check() -> None:
        async with opened(url) as backend:
            await backend.commit([save("t")])
        async with opened(url, read_only=True) as backend:
            for write in (lambda: backend.commit([save("t")]), backend.setup):
                with pytest.raises(ReadOnlyError, match="was opened read-only"):
                    await write()
            head = await backend.read_head("t")
            assert head is not None
            assert EXAMPLE_TIME == head.updated

    asyncio.run(check())
