"""Roles that may do less than everything: each does what it may, and is told what it may not."""

import asyncio

import pytest
from postgres_support import DIGEST, contents, opened, save, with_backend

from strata_conformance.servers import Database
from strata_core.errors import ReadOnlyError, StoreUnavailableError
from strata_core.options import Setup
from strata_core.records import Checkpoint
from strata_core.rows import Commit, HeadQuery, Take
from strata_core.store import RowStore
from strata_postgres import PostgresBackend


async def fill(backend: PostgresBackend) -> None:
    await backend.commit(
        [save(f"t{number}", blobs=((DIGEST, b"content"),), metadata={"a": "b"}) for number in range(5)]
    )


@pytest.fixture
def database(postgres_database: Database) -> Database:
    """A database with a store of five threads."""
    with_backend(postgres_database.url, fill)
    return postgres_database


@pytest.mark.parametrize("setup", list(Setup))
def test_a_role_that_may_only_read_lists_loads_and_inspects(database: Database, setup: Setup) -> None:
    async def check(backend: PostgresBackend) -> None:
        assert 5 == len(await backend.list_heads(HeadQuery(metadata={"a": "b"})))
        assert 1 == len(await backend.read("t1", None, None))
        assert {DIGEST: b"content"} == await backend.read_blobs("t1", [DIGEST])
        assert await backend.read_head("t1") is not None
        await backend.ping()

    before = contents(database.url)
    with_backend(database.reader(), check, read_only=True, setup=setup)

    assert before == contents(database.url)


def test_a_role_that_may_only_read_sees_the_views(database: Database) -> None:
    from postgres_support import query

    reader = database.reader()

    assert 5 == len(query(reader, "SELECT thread_id, frozen_state FROM checkpoints"))
    assert 5 == len(query(reader, "SELECT thread_id, updated_at FROM threads"))
    assert 5 == len(query(reader, "SELECT hash FROM checkpoint_blobs"))


def test_a_write_of_a_role_that_may_only_read_is_refused_and_says_what_is_lacking(database: Database) -> None:
    async def check(backend: PostgresBackend) -> None:
        for commit in (save("t1"), save("new"), Commit("t1", b"erase000", erase=True)):
            with pytest.raises(ReadOnlyError, match=r"lacks a privilege; grant it .*permission denied.*42501"):
                await backend.commit([commit])
        assert 5 == len(await backend.list_heads(HeadQuery()))

    before = contents(database.url)
    with_backend(database.reader(), check)

    assert before == contents(database.url)


@pytest.mark.parametrize("setup", list(Setup))
def test_a_role_that_may_not_create_runs_a_store_that_is_set_up(database: Database, setup: Setup) -> None:
    async def check() -> None:
        async with opened(url, setup=setup) as backend:
            await backend.commit([save("t1"), save("new", lease=Take("me", 10**9), blobs=((DIGEST, b"x"),))])
            await backend.commit([Commit("t2", b"erase000", erase=True)])
            assert 5 == len(await backend.list_heads(HeadQuery()))
        async with RowStore(PostgresBackend(url), setup=setup) as store:
            latest = await store.load("t1")
            assert latest is not None
            assert isinstance(latest.checkpoint, Checkpoint)

    url = database.writer()
    asyncio.run(check())


@pytest.mark.parametrize("schema", ["public", "strata"])
def test_a_role_that_may_not_create_cannot_set_up_and_is_told_the_way_out(
    postgres_database: Database, schema: str
) -> None:
    async def never(backend: PostgresBackend) -> None:
        raise AssertionError("it opened")

    url = f"{postgres_database.writer()}?schema={schema}"
    before = contents(f"{postgres_database.url}?schema={schema}")
    with pytest.raises(ReadOnlyError, match=r'may not set the store up \(permission denied.*setup="never"'):
        with_backend(url, never)

    assert before == contents(f"{postgres_database.url}?schema={schema}")


def test_a_role_that_may_create_a_schema_needs_no_more_to_set_up_and_run(postgres_database: Database) -> None:
    async def use(backend: PostgresBackend) -> None:
        await backend.commit([save("t", lease=Take("me", 10**9), blobs=((DIGEST, b"x"),))])
        assert 1 == len(await backend.list_heads(HeadQuery(leased=True)))

    url = postgres_database.writer()
    postgres_database.execute(f'GRANT CREATE ON DATABASE "{postgres_database.name}" TO "{postgres_database.roles[-1]}"')
    with_backend(f"{url}?schema=strata", use)


def test_a_role_without_any_right_to_the_schema_is_told_what_it_needs(database: Database) -> None:
    database.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC; CREATE SCHEMA apart")
    reader = database.reader()
    database.execute(f'REVOKE ALL ON SCHEMA public FROM "{database.roles[-1]}"')
    database.execute(f'REVOKE ALL ON ALL TABLES IN SCHEMA public FROM "{database.roles[-1]}"')

    async def never(backend: PostgresBackend) -> None:
        raise AssertionError("it opened")

    with pytest.raises(StoreUnavailableError, match="grant it USAGE on the schema and SELECT on its tables"):
        with_backend(reader, never, read_only=True)


def test_a_database_that_takes_no_writes_says_so(database: Database) -> None:
    """As a standby does, or a primary in maintenance."""

    async def check(backend: PostgresBackend) -> None:
        with pytest.raises(ReadOnlyError, match="takes no writes; connect to the primary"):
            await backend.commit([save("t1")])
        assert 5 == len(await backend.list_heads(HeadQuery()))

    database.execute(f'ALTER DATABASE "{database.name}" SET default_transaction_read_only = on')
    with_backend(database.url, check)
