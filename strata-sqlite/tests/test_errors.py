"""The driver's errors never leak: each becomes one of ours, from its cause, and the backend goes on."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlite_support import FailingCommit, opened, save, with_backend, writer_of

from strata_core.errors import (
    CorruptCheckpointError,
    InvalidInputError,
    ReadOnlyError,
    SchemaVersionError,
    StoreBusyError,
    StoreUnavailableError,
)
from strata_core.options import Setup
from strata_core.rows import HeadQuery
from strata_sqlite import SqliteBackend, SqliteOptions
from strata_sqlite._errors import translate


def test_a_locked_file_is_busy_and_nothing_was_written(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match="kept the database locked") as caught:
            await backend.commit([save("t")])

        assert not caught.value.maybe_written
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert str(path) in str(caught.value)
        assert 1 == len(await backend.read("t", 0, None))  # a reader does not wait
        other.execute("ROLLBACK")
        other.close()
        await backend.commit([save("t")])
        assert 2 == len(await backend.read("t", 0, None))

    path = tmp_path / "store.db"
    with_backend(path, check, options=SqliteOptions(busy_timeout=timedelta(0)))


def test_a_full_disk_is_unavailable_and_takes_nothing(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        writer = writer_of(backend)
        pages = writer.execute("PRAGMA page_count").fetchone()[0]
        writer.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreUnavailableError, match="full") as caught:
            await backend.commit([save("u"), save("t", body=b'"' + b"x" * 100_000 + b'"')])

        assert not caught.value.maybe_written
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert await backend.read_head("u") is None
        writer.execute("PRAGMA max_page_count = 1000000")
        await backend.commit([save("u")])
        assert ["t", "u"] == sorted(head.thread_id for head in await backend.list_heads(HeadQuery()))

    with_backend(tmp_path / "store.db", check)


@pytest.mark.parametrize("done", [True, False])
def test_a_commit_that_fails_at_the_very_end_may_have_been_written_and_can_be_repeated(
    tmp_path: Path, done: bool
) -> None:
    async def check(backend: SqliteBackend) -> None:
        writer = writer_of(backend)
        assert backend._writer is not None
        backend._writer._connection = FailingCommit(writer, done=done)  # type: ignore[assignment]
        commit = save("t")
        with pytest.raises(StoreUnavailableError, match="whether it was done is unknown") as caught:
            await backend.commit([commit])
        backend._writer._connection = writer

        assert caught.value.maybe_written
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        (outcome,) = await backend.commit([commit])
        assert (0, done) == (outcome.sequence, outcome.repeated)  # type: ignore[union-attr]
        assert 1 == len(await backend.read("t", 0, None))

    with_backend(tmp_path / "store.db", check)


def test_a_damaged_page_is_a_corrupt_checkpoint(tmp_path: Path) -> None:
    async def fill(backend: SqliteBackend) -> None:
        for number in range(40):
            await backend.commit([save(f"t{number}", body=b'"' + b"x" * 3_000 + b'"')])

    async def check(backend: SqliteBackend) -> None:
        with pytest.raises(CorruptCheckpointError, match="is damaged") as caught:
            await asyncio.gather(*(backend.read(f"t{number}", 0, None) for number in range(40)))
        assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)
        assert (caught.value.thread_id[0], caught.value.sequence) == ("t", None)
        with pytest.raises(CorruptCheckpointError, match="is damaged"):
            await backend.list_heads(HeadQuery(limit=1000))

    path = tmp_path / "store.db"
    with_backend(path, fill)
    content = bytearray(path.read_bytes())
    for page in range(13, len(content) // 8192):
        content[page * 8192 : page * 8192 + 100] = b"\xff" * 100
    path.write_bytes(content)
    with_backend(path, check)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.parent.rmdir(), "does not exist"),
    ],
)
def test_a_path_that_cannot_be_opened_is_named(
    tmp_path: Path, make: Callable[[Path], None], message: str, read_only: bool
) -> None:
    async def check() -> None:
        backend = SqliteBackend(path)
        with pytest.raises(StoreUnavailableError) as caught:
            await backend.open(read_only=read_only, setup=Setup.AUTO)

        assert str(path) in str(caught.value)
        assert message in str(caught.value)
        await backend.close()

    path = tmp_path / "folder" / "store.db"
    path.parent.mkdir()
    make(path)
    asyncio.run(check())


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b", b"bytes.db"])
def test_a_path_that_names_no_file_is_refused(path: Any) -> None:
    with pytest.raises(InvalidInputError, match="path: "):
        SqliteBackend(path)


def test_a_write_to_a_read_only_store_is_refused(tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as backend:
            await backend.commit([save("t")])
        async with opened(path, read_only=True) as backend:
            for write in (lambda: backend.commit([save("t")]), backend.setup):
                with pytest.raises(ReadOnlyError, match="was opened read-only"):
                    await write()

    asyncio.run(check())


@pytest.mark.parametrize("name", ["100% #1?&mode=memory", "日本 %41", "a+b;c=d", "file:x", "-"])
def test_any_file_name_is_taken_literally(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with_backend(name, lambda backend: backend.commit([save("t")]))
    with_backend(tmp_path / name, lambda backend: backend.read_head("t"), read_only=True)

    assert [name] == [path.name for path in tmp_path.iterdir()]


def test_a_relative_path_is_that_of_the_moment_of_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(backend: SqliteBackend) -> None:
        monkeypatch.chdir("/")
        await backend.commit([save("t")])
        await backend.read_head("t")

    monkeypatch.chdir(tmp_path)
    with_backend("store.db", check)

    assert (tmp_path / "store.db").exists()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusyError),
        (sqlite3.SQLITE_LOCKED, StoreBusyError),
        (sqlite3.SQLITE_IOERR_WRITE, StoreUnavailableError),
        (sqlite3.SQLITE_FULL, StoreUnavailableError),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailableError),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreUnavailableError),
        (sqlite3.SQLITE_NOMEM, StoreUnavailableError),
        (sqlite3.SQLITE_CORRUPT, CorruptCheckpointError),
        (sqlite3.SQLITE_NOTADB, CorruptCheckpointError),
        (sqlite3.SQLITE_TOOBIG, InvalidInputError),
    ],
)
def test_each_code_of_sqlite_has_its_error(code: int, expected: type[Exception]) -> None:
    error = sqlite3.OperationalError("a text")
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_NAME"
    found = translate(error, "/a/path", "t")

    assert expected is type(found)
    assert "a text (SQLITE_NAME)" in str(found)


def test_an_error_without_a_code_is_unavailable() -> None:
    assert StoreUnavailableError is type(translate(sqlite3.ProgrammingError("a text"), "/a/path"))


def test_a_file_removed_under_a_read_only_store_is_unavailable(tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as backend:
            await backend.commit([save("t")])
        async with opened(path, read_only=True) as backend:
            path.unlink()
            with pytest.raises(StoreUnavailableError, match="does not exist"):
                await backend.read_head("t")
            path.write_bytes(b"x" * 5000)
            with pytest.raises(SchemaVersionError):
                await backend.read_head("t")
            path.unlink()
            async with opened(path) as writer:
                await writer.commit([save("u")])
            assert await backend.read_head("u") is not None

    asyncio.run(check())
