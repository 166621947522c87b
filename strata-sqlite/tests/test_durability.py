"""What makes a commit durable, and what is left behind."""

import asyncio
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from sqlite_support import opened, query, save, with_backend, writer_of

from strata_core.errors import InvalidInputError
from strata_sqlite import SqliteBackend, SqliteOptions, Synchronous


@pytest.mark.parametrize(("synchronous", "number"), [("FULL", 2), ("NORMAL", 1)])
def test_the_live_connections_have_the_settings_that_were_asked_for(
    tmp_path: Path, synchronous: str, number: int
) -> None:
    async def check(backend: SqliteBackend) -> None:
        def pragma(db, name):  # type: ignore[no-untyped-def]
            return db.execute(f"PRAGMA {name}").fetchone()[0]

        assert backend._writer is not None
        for connection in (backend._writer, backend._reader, backend._lister):
            assert connection is not None
            # The writer asks again and again by itself, up to the same time.
            timeout = 8 if connection is backend._writer else 1500
            expected = {"journal_mode": "wal", "page_size": 8192, "busy_timeout": timeout, "foreign_keys": 0}
            assert expected == {name: await connection.run(pragma, name) for name in expected}
        assert number == await backend._writer.run(pragma, "synchronous")
        assert int(number == 2) == await backend._writer.run(pragma, "fullfsync")
        assert 0 == await backend._writer.run(pragma, "query_only")
        for connection in (backend._reader, backend._lister):
            assert connection is not None
            assert 1 == await connection.run(pragma, "query_only")

    options = SqliteOptions(synchronous=Synchronous(synchronous), busy_timeout=timedelta(seconds=1.5))
    with_backend(tmp_path / "store.db", check, options=options)


def test_full_is_the_default() -> None:
    assert Synchronous.FULL is SqliteOptions().synchronous


@pytest.mark.parametrize("value", ["OFF", "full", "", None, 2])
def test_any_other_synchronous_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="synchronous: must be 'FULL' or 'NORMAL'"):
        SqliteOptions(synchronous=value)


@pytest.mark.parametrize("value", [timedelta(seconds=-1), timedelta(hours=2), 5, None])
def test_a_timeout_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="busy_timeout: must be a timedelta from 0 to one hour"):
        SqliteOptions(busy_timeout=value)  # type: ignore[arg-type]


def test_the_folder_is_synced_after_the_tables_are_there_and_before_the_store_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    original = os.fsync

    def fsync(descriptor: int) -> None:
        assert stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), query(path, "PRAGMA user_version")))
        original(descriptor)

    async def check(backend: SqliteBackend) -> None:
        assert [(str(tmp_path), [(2,)])] == synced

    path = tmp_path / "store.db"
    monkeypatch.setattr(os, "fsync", fsync)
    with_backend(path, check)


def test_a_file_system_that_cannot_sync_folders_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    with_backend(tmp_path / "store.db", lambda backend: backend.commit([save("t")]))

    assert [("t",)] == query(tmp_path / "store.db", "SELECT thread_id FROM threads")


def test_close_leaves_nothing_but_the_database(tmp_path: Path) -> None:
    async def work(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])

        assert {"store.db", "store.db-wal", "store.db-shm"} == {path.name for path in tmp_path.iterdir()}

    with_backend(tmp_path / "store.db", work)

    assert ["store.db"] == [path.name for path in tmp_path.iterdir()]


def test_the_last_writer_empties_the_log_although_a_reader_stays(tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "store.db"
        writer = opened(path)
        backend = await writer.__aenter__()
        await backend.commit([save("t")])
        async with opened(path, read_only=True) as reader:
            assert await reader.read_head("t") is not None
            await writer.__aexit__(None, None, None)

            assert 0 == (tmp_path / "store.db-wal").stat().st_size
            assert await reader.read_head("t") is not None

    asyncio.run(check())


def test_a_reader_never_blocks_a_writer_and_sees_one_state(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        assert backend._lister is not None
        assert backend._lister._connection is not None
        listing = backend._lister._connection
        listing.execute("BEGIN")
        before = listing.execute("SELECT count(*) FROM strata_rows").fetchone()
        for _ in range(3):
            await backend.commit([save("t")])

        assert before == listing.execute("SELECT count(*) FROM strata_rows").fetchone()
        assert [3] == [row.sequence for row in await backend.read("t", None, None)]
        listing.execute("ROLLBACK")

    with_backend(tmp_path / "store.db", check, options=SqliteOptions(busy_timeout=timedelta(0)))


def test_no_transaction_is_left_open_by_any_call(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t"), save("u", after=5)])
        await backend.read("t", 0, None)

        for connection in (backend._writer, backend._reader, backend._lister):
            assert connection is not None
            assert connection._connection is not None
            assert not connection._connection.in_transaction
        assert not writer_of(backend).in_transaction

    with_backend(tmp_path / "store.db", check)
