"""Schema versions, set-up, and schemas that are not ours."""

import asyncio
from typing import Any

import psycopg
import pytest
from postgres_support import DIGEST, EXAMPLE_TIME, contents, golden_version_1, opened, query, save, with_backend

from strata_conformance.servers import Database
from strata_core.errors import SchemaVersionError, StoreUnavailableError
from strata_core.options import Setup
from strata_core.rows import Committed, Drop, HeadQuery, Take
from strata_postgres import PostgresBackend, _setup
from strata_postgres._schema import NAMES, STEPS, VERSION


async def nothing(backend: PostgresBackend) -> None:
    pass


async def never(backend: PostgresBackend) -> None:
    raise AssertionError("it opened")


async def read_golden(backend: PostgresBackend) -> None:
    order = await backend.read("order-1", 0, None)
    waiting = await backend.read_head("注文-2")
    leased = await backend.read_head("order-3")
    rowless = await backend.list_heads(HeadQuery(rowless=True))

    assert [(0, 0, "1.7.0"), (1, 0, "1.8.0"), (2, 2, "1.7.0")] == [(r.sequence, r.whole_at, r.version) for r in order]
    assert b'{"amount":100,"note":"a\\u0000b"}' == order[0].body
    assert waiting is not None
    assert {"tenant": "acme", "tier": "gold"} == waiting.metadata
    assert ("interrupted", EXAMPLE_TIME + 10, "orders", "3") == (
        waiting.state,
        waiting.due,
        waiting.graph_id,
        waiting.graph_version,
    )
    assert leased is not None
    assert (1, "worker-7", EXAMPLE_TIME + 60_000_000) == (leased.token, leased.owner, leased.expires)
    assert ["order-4"] == [head.thread_id for head in rowless]
    assert {} == await backend.read_blobs("order-1", [DIGEST])
    for asked in (
        HeadQuery(metadata={"tier": "gold"}),
        HeadQuery(graph_id="orders"),
        HeadQuery(graph_version="3"),
        HeadQuery(graph_id="orders", graph_version="3"),
        HeadQuery(due_until=EXAMPLE_TIME + 10),
    ):
        assert ["注文-2"] == [head.thread_id for head in await backend.list_heads(asked)]


def test_an_old_schema_is_upgraded_by_a_writing_open_and_keeps_its_content(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        await read_golden(backend)
        (outcome,) = await backend.commit([save("order-1", after=2, blobs=((DIGEST, b"content"),))])
        (other,) = await backend.commit([save("order-5")])

        assert isinstance(outcome, Committed)
        assert isinstance(other, Committed)
        assert {DIGEST: b"content"} == await backend.read_blobs("order-1", [DIGEST])

    with_backend(golden_version_1(url), check)

    assert [(VERSION,)] == query(url, "SELECT version FROM strata_version")
    assert [("order-1", DIGEST, 7)] == query(url, "SELECT thread_id, hash, length(content) FROM checkpoint_blobs")


def definitions(url: str, schema: str) -> list[Any]:
    statements = (
        "SELECT relname, relkind::text, reloptions FROM pg_class WHERE relnamespace = current_schema()::regnamespace",
        (
            "SELECT attrelid::regclass::text, attnum, attname, format_type(atttypid, atttypmod), attnotnull, "
            "attcompression::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
            "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0"
        ),
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace",
        "SELECT viewname, definition FROM pg_views WHERE schemaname = current_schema()",
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()",
    )
    return [
        [" ".join(str(part).replace(schema, "SCHEMA").split()) for record in records for part in record]
        for records in (query(url, f"{statement} ORDER BY 1, 2") for statement in statements)
    ]


def test_an_upgraded_schema_and_a_new_one_are_the_same(url: str, schema: str, server_url: str) -> None:
    other = f"{schema}_old"
    with_backend(url, nothing)
    with_backend(golden_version_1(f"{server_url}?schema={other}"), nothing)

    assert definitions(url, schema) == definitions(f"{server_url}?schema={other}", other)


def test_an_old_schema_is_read_by_a_read_only_open_and_stays_as_it_is(url: str) -> None:
    golden_version_1(url)
    before = contents(url)
    with_backend(url, read_golden, read_only=True)

    assert before == contents(url)


def test_an_old_schema_is_read_but_not_written_where_set_up_is_never_done(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        await read_golden(backend)
        with pytest.raises(SchemaVersionError, match=r"has schema version 1; call store\.setup\(\)") as caught:
            await backend.commit([save("t")])
        assert ("1", str(VERSION)) == (caught.value.found, caught.value.supported)
        await backend.setup()
        await backend.commit([save("t", blobs=((DIGEST, b"content"),))])
        assert {DIGEST: b"content"} == await backend.read_blobs("t", [DIGEST])

    with_backend(golden_version_1(url), check, setup=Setup.NEVER)


def test_an_old_schema_that_somebody_else_upgrades_serves_blobs(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        async with opened(url) as other:
            await other.commit([save("t", blobs=((DIGEST, b"content"),))])

        assert {DIGEST: b"content"} == await backend.read_blobs("t", [DIGEST])

    with_backend(golden_version_1(url), check, read_only=True)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("setup", list(Setup))
def test_a_newer_schema_is_refused_by_name_and_left_alone(url: str, read_only: bool, setup: Setup) -> None:
    with_backend(url, nothing)
    query(url, "UPDATE strata_version SET version = %s", VERSION + 1)
    before = contents(url)
    with pytest.raises(
        SchemaVersionError,
        match=f"schema version {VERSION + 1}, and this release of strata-postgres knows up to {VERSION}",
    ) as caught:
        with_backend(url, never, read_only=read_only, setup=setup)

    assert (str(VERSION + 1), str(VERSION)) == (caught.value.found, caught.value.supported)
    assert before == contents(url)


@pytest.mark.parametrize("statement", ["DELETE FROM strata_version", "INSERT INTO strata_version VALUES (2)"])
def test_a_schema_that_does_not_know_its_version_is_refused(url: str, statement: str) -> None:
    with_backend(url, nothing)
    query(url, statement)
    with pytest.raises(SchemaVersionError, match="strata_version does not hold one version"):
        with_backend(url, never)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("read_only", [True, False])
def test_tables_of_something_else_are_refused_and_left_alone(url: str, schema: str, name: str, read_only: bool) -> None:
    query(url, f'CREATE SCHEMA "{schema}"')
    query(url, f"CREATE TABLE {name}(thread_id text)")
    before = contents(url)
    with pytest.raises(SchemaVersionError, match=rf"the schema holds {name} of something else.*\?schema=") as caught:
        with_backend(url, never, read_only=read_only)

    assert "unknown" == caught.value.found
    assert before == contents(url)


def test_other_tables_may_lie_in_the_schema(url: str, schema: str) -> None:
    query(url, f'CREATE SCHEMA "{schema}"')
    query(url, "CREATE TABLE orders(id text)")
    with_backend(url, lambda backend: backend.commit([save("t")]))

    assert [(0,)] == query(url, "SELECT count(*) FROM orders")


@pytest.mark.parametrize("exists", [True, False])
def test_without_set_up_every_operation_names_the_way_out_until_somebody_sets_it_up(
    url: str, schema: str, exists: bool
) -> None:
    async def check(backend: PostgresBackend) -> None:
        for operation in (
            lambda: backend.commit([save("t")]),
            lambda: backend.read_head("t"),
            lambda: backend.read("t", None, None),
            lambda: backend.read_blobs("t", [DIGEST]),
            lambda: backend.list_heads(HeadQuery()),
            backend.ping,
        ):
            with pytest.raises(SchemaVersionError, match=r"was never set up; call store\.setup\(\)") as caught:
                await operation()
            assert "none" == caught.value.found

        assert before == contents(url)
        async with opened(url) as other:
            await other.commit([save("t")])
        assert await backend.read_head("t") is not None
        await backend.setup()
        await backend.commit([save("t")])
        assert 1 == len(await backend.list_heads(HeadQuery()))

    if exists:
        query(url, f'CREATE SCHEMA "{schema}"')
    before = contents(url)
    with_backend(url, check, setup=Setup.NEVER)


def test_a_read_only_open_of_nothing_names_the_way_out_and_makes_nothing(url: str) -> None:
    before = contents(url)
    with pytest.raises(SchemaVersionError, match=r"was never set up; call store\.setup\(\)") as caught:
        with_backend(url, never, read_only=True)

    assert "none" == caught.value.found
    assert before == contents(url)


def test_tables_that_are_dropped_under_an_open_store_are_said_to_be_missing(url: str, schema: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t")])
        query(url, f'DROP SCHEMA "{schema}" CASCADE')
        for operation in (lambda: backend.commit([save("t")]), lambda: backend.read_head("t"), backend.ping):
            with pytest.raises(SchemaVersionError, match="was never set up"):
                await operation()
        await backend.setup()
        await backend.commit([save("t")])

    with_backend(url, check)


def test_many_set_ups_at_once_are_one(url: str) -> None:
    async def check() -> None:
        async with opened(url, setup=Setup.NEVER) as one, opened(url, setup=Setup.NEVER) as two:
            await asyncio.gather(*(backend.setup() for backend in (one, two) * 5))
            await asyncio.gather(one.commit([save("t")]), two.commit([save("u")]))

    asyncio.run(check())

    assert [(VERSION,)] == query(url, "SELECT version FROM strata_version")


def test_a_set_up_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_setup, "STEPS", (*STEPS[:-1], (*STEPS[-1], "SELECT 1 / 0")))
    before = contents(url)
    with pytest.raises(StoreUnavailableError, match="division by zero"):
        with_backend(url, never)

    assert before == contents(url)


def test_a_database_that_cannot_hold_every_text_is_refused_with_the_way_out(postgres_database: Database) -> None:
    name = f"{postgres_database.name}_latin"
    postgres_database.execute(
        f"CREATE DATABASE \"{name}\" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    try:
        with pytest.raises(StoreUnavailableError, match=r"is in LATIN1.*ENCODING 'UTF8'"):
            with_backend(postgres_database.url.replace(postgres_database.name, name), never)
    finally:
        postgres_database.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_a_server_that_is_too_old_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strata_postgres._setup._OLDEST_SERVER", 990000)
    with pytest.raises(StoreUnavailableError, match=r"PostgreSQL \d+ is too old: 13 or newer"):
        with_backend(url, never)


def test_a_client_encoding_of_the_role_does_not_matter(postgres_database: Database) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("日本", metadata={"k": "é"})])
        head = await backend.read_head("日本")

        assert head is not None
        assert {"k": "é"} == head.metadata

    postgres_database.execute(f"ALTER DATABASE \"{postgres_database.name}\" SET client_encoding = 'SQL_ASCII'")
    with_backend(postgres_database.url, check)


def test_settings_of_the_role_do_not_matter(postgres_database: Database) -> None:
    async def check(backend: PostgresBackend) -> None:
        await backend.commit([save("t", blobs=((DIGEST, bytes(range(256))),))])
        await backend.commit([save("t")])

        assert {DIGEST: bytes(range(256))} == await backend.read_blobs("t", [DIGEST])
        assert 2 == len(await backend.read("t", 0, None))

    with psycopg.connect(postgres_database.url, autocommit=True) as connection:
        for setting in (
            "bytea_output = 'escape'",
            "search_path = ''",
            "extra_float_digits = 0",
            "timezone = 'Asia/Tokyo'",
        ):
            connection.execute(f'ALTER DATABASE "{postgres_database.name}" SET {setting}'.encode())
    with_backend(postgres_database.url, check)


@pytest.mark.parametrize("upgraded", [False, True])
def test_no_function_looks_along_its_callers_search_path_or_runs_in_a_parallel_plan(url: str, upgraded: bool) -> None:
    """Before version 17 of the server, a block with EXCEPTION in a parallel plan fails the query."""
    if upgraded:
        golden_version_1(url)
    with_backend(url, nothing)
    functions = query(
        url,
        "SELECT proname, proconfig::text LIKE '%%search_path=pg_catalog, pg_temp%%', proparallel::text FROM pg_proc "
        "WHERE pronamespace = to_regnamespace(%s) ORDER BY 1",
        PostgresBackend(url)._address.options.schema,
    )

    assert [
        ("strata_commit_1", True, "u"),
        ("strata_commit_first_1", True, "u"),
        ("strata_commit_last_1", True, "u"),
        ("strata_commit_next_1", True, "u"),
        ("strata_json", True, "u"),
        ("strata_judge_1", True, "u"),
        ("strata_list_1", True, "u"),
        ("strata_text", True, "u"),
    ] == functions


TRAPS = """
CREATE FUNCTION public.trap(anyelement, anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$
    BEGIN RAISE 'somebody else''s function ran'; END $$;
CREATE FUNCTION public.array_remove(bigint[], integer) RETURNS bigint[] LANGUAGE sql AS 'SELECT public.trap($1, $1)';
CREATE FUNCTION public.convert_from(bytea, text) RETURNS text LANGUAGE sql AS 'SELECT public.trap($2, $2)';
CREATE FUNCTION public.hashtextextended(text, integer) RETURNS integer LANGUAGE sql AS 'SELECT public.trap(2, 2)';
CREATE FUNCTION public.append(bigint[], bigint) RETURNS bigint[] LANGUAGE sql AS 'SELECT public.trap($1, $1)';
CREATE FUNCTION public.times(numeric, integer) RETURNS numeric LANGUAGE sql AS 'SELECT public.trap($1, $1)';
CREATE FUNCTION public.times(bigint, interval) RETURNS interval LANGUAGE sql AS 'SELECT public.trap($2, $2)';
CREATE FUNCTION public.differ(bigint[], bigint[]) RETURNS boolean LANGUAGE sql AS 'SELECT public.trap(true, true)';
CREATE OPERATOR public.|| (LEFTARG = bigint[], RIGHTARG = bigint, FUNCTION = public.append);
CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.times);
CREATE OPERATOR public.* (LEFTARG = bigint, RIGHTARG = interval, FUNCTION = public.times);
CREATE OPERATOR public.<> (LEFTARG = bigint[], RIGHTARG = bigint[], FUNCTION = public.differ);
"""
"""What anybody who may create in a schema on the search path can lay there: it fits better than PostgreSQL's own."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_others_put_on_the_search_path_is_never_run(postgres_database: Database, when: str) -> None:
    async def use(backend: PostgresBackend) -> None:
        (taken,) = await backend.commit([save("t", lease=Take("worker", 60_000_000), due=EXAMPLE_TIME)])
        assert isinstance(taken, Committed)
        await backend.commit([save("t", "completed", token=taken.token, lease=Drop())])
        await backend.read_head("t")
        for leased in (True, False):
            await backend.list_heads(HeadQuery(leased=leased, due_until=EXAMPLE_TIME))
        for view in ("threads", "checkpoints", "checkpoint_blobs"):
            query(postgres_database.url, f"SELECT * FROM {view}")

    if when == "after":
        with_backend(postgres_database.url, nothing)
    postgres_database.execute(TRAPS)
    with_backend(postgres_database.url, use)
