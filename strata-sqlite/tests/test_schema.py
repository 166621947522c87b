"""Schema versions, set-up, and files that are not ours."""

import asyncio
import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlite_support import EXAMPLE_TIME, golden_version_1, opened, query, save, traced, with_backend, writer_of

from strata_core.errors import SchemaVersionError
from strata_core.options import Setup
from strata_core.rows import Committed, HeadQuery
from strata_sqlite import SqliteBackend, SqliteOptions
from strata_sqlite._files import open_writer, set_up


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def read_golden(backend: SqliteBackend) -> None:
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
    assert {} == await backend.read_blobs("order-1", ["sha256:0"])
    assert ["注文-2"] == [head.thread_id for head in await backend.list_heads(HeadQuery(metadata={"tier": "gold"}))]


def test_an_old_file_is_upgraded_by_a_writing_open_and_keeps_its_content(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await read_golden(backend)
        (outcome,) = await backend.commit([save("order-1", after=2, blobs=(("sha256:0", b"content"),))])

        assert isinstance(outcome, Committed)
        assert {"sha256:0": b"content"} == await backend.read_blobs("order-1", ["sha256:0"])

    path = golden_version_1(tmp_path / "store.db")
    with_backend(path, check)

    assert [(2,)] == query(path, "PRAGMA user_version")
    assert [("order-1", "sha256:0", 7)] == query(path, "SELECT thread_id, hash, length(content) FROM checkpoint_blobs")


def test_an_upgraded_file_and_a_new_one_have_the_same_schema(tmp_path: Path) -> None:
    async def nothing(backend: SqliteBackend) -> None:
        pass

    schemas = []
    for path in (golden_version_1(tmp_path / "old.db"), tmp_path / "new.db"):
        with_backend(path, nothing)
        schemas.append(query(path, "SELECT type, name, sql FROM sqlite_master ORDER BY name"))

    assert [" ".join(str(each).split()) for each in schemas[0]] == [" ".join(str(each).split()) for each in schemas[1]]


def test_an_old_file_is_read_by_a_read_only_open_and_stays_as_it_is(tmp_path: Path) -> None:
    path = golden_version_1(tmp_path / "store.db")
    before = fingerprint(path)
    with_backend(path, read_golden, read_only=True)

    assert before == fingerprint(path)
    assert [(1,)] == query(path, "PRAGMA user_version")


def test_an_old_file_is_read_but_not_written_where_set_up_is_never_done(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await read_golden(backend)
        with pytest.raises(SchemaVersionError, match=r"has schema version 1; call store\.setup\(\)") as caught:
            await backend.commit([save("t")])
        assert ("1", "2") == (caught.value.found, caught.value.supported)
        await backend.setup()
        await backend.commit([save("t")])

    with_backend(golden_version_1(tmp_path / "store.db"), check, setup=Setup.NEVER)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("setup", list(Setup))
def test_a_newer_file_is_refused_by_name_and_left_alone(tmp_path: Path, read_only: bool, setup: Setup) -> None:
    async def nothing(backend: SqliteBackend) -> None:
        raise AssertionError("it opened")

    path = golden_version_1(tmp_path / "store.db")
    query(path, "PRAGMA user_version = 3")
    before = fingerprint(path)
    with pytest.raises(
        SchemaVersionError, match="schema version 3, and this release of strata-sqlite knows up to 2"
    ) as caught:
        with_backend(path, nothing, read_only=read_only, setup=setup)

    assert ("3", "2") == (caught.value.found, caught.value.supported)
    assert before == fingerprint(path)


def make_tables(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE customers(name)")
    db.close()


def make_versioned(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 2")
    db.close()


def make_other_application(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA application_id = 77")
    db.close()


def make_text(path: Path) -> None:
    path.write_text("This is no database, and it is longer than the header of one.\n" * 20)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("make", [make_tables, make_versioned, make_other_application, make_text])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, make, read_only: bool) -> None:  # type: ignore[no-untyped-def]
    async def nothing(backend: SqliteBackend) -> None:
        raise AssertionError("it opened")

    path = tmp_path / "store.db"
    make(path)
    before = fingerprint(path)
    with pytest.raises(SchemaVersionError, match="no database of Strata") as caught:
        with_backend(path, nothing, read_only=read_only)

    assert str(path) in str(caught.value)
    assert before == fingerprint(path)
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("exists", [True, False])
def test_without_set_up_a_fresh_file_opens_and_every_operation_names_the_way_out(tmp_path: Path, exists: bool) -> None:
    async def refused(backend: SqliteBackend) -> None:
        for operation in (
            lambda: backend.commit([save("t")]),
            lambda: backend.read_head("t"),
            lambda: backend.read("t", None, None),
            lambda: backend.read_blobs("t", ["sha256:0"]),
            lambda: backend.list_heads(HeadQuery()),
        ):
            with pytest.raises(SchemaVersionError, match=r"was never set up; call store\.setup\(\)") as caught:
                await operation()
            assert "none" == caught.value.found

    async def check(backend: SqliteBackend) -> None:
        if exists:
            with traced(writer_of(backend)) as statements:
                await refused(backend)
            assert {"SELECT"} == {text.split()[0] for text in statements if not text.startswith("--")}
            assert 0 == path.stat().st_size
        else:
            await refused(backend)
            assert [] == list(tmp_path.iterdir())
        await backend.setup()
        await backend.setup()
        await backend.commit([save("t")])
        assert 1 == len(await backend.list_heads(HeadQuery()))

    path = tmp_path / "store.db"
    if exists:
        path.touch()
    with_backend(path, check, setup=Setup.NEVER)


def test_without_set_up_a_store_that_somebody_else_sets_up_begins_to_work(tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "store.db"
        async with opened(path, setup=Setup.NEVER) as waiting:
            with pytest.raises(SchemaVersionError):
                await waiting.read_head("t")
            async with opened(path) as other:
                await other.commit([save("t")])

            assert await waiting.read_head("t") is not None
            await waiting.commit([save("t")])

    asyncio.run(check())


def test_a_read_only_open_of_an_empty_file_names_the_way_out(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        with pytest.raises(SchemaVersionError, match=r"store\.setup\(\)"):
            await backend.list_heads(HeadQuery())

    path = tmp_path / "store.db"
    path.touch()
    with_backend(path, check, read_only=True)

    assert b"" == path.read_bytes()


class Overtaken:
    """Passes everything to a connection, and lets another process be first to begin the upgrade."""

    def __init__(self, driver: sqlite3.Connection, path: Path) -> None:
        self.driver = driver
        self.path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "BEGIN IMMEDIATE":
            with_backend(self.path, lambda backend: backend.commit([save("t")]))
        return self.driver.execute(statement, *values)


@pytest.mark.parametrize("version", [0, 1])
def test_whoever_comes_second_to_an_upgrade_finds_it_done(tmp_path: Path, version: int) -> None:
    path = tmp_path / "store.db"
    if version:
        golden_version_1(path)
    else:
        path.touch()
    options = SqliteOptions()
    driver = open_writer(str(path), options, create=False)
    set_up(Overtaken(driver, path), str(path), options)  # type: ignore[arg-type]
    driver.close()

    assert [(2,)] == query(path, "PRAGMA user_version")
    assert [(1,)] == query(path, "SELECT count(*) FROM checkpoints WHERE thread_id = 't'")
