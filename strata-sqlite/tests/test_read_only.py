"""Opening without the right to write: by a process that has none, with and without a writer."""

import asyncio
import hashlib
import json
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from sqlite_support import finish, golden_version_1, opened, save, start, with_backend

from strata_core.errors import StoreBusyError, StoreUnavailableError
from strata_sqlite import SqliteBackend
from strata_sqlite._readonly import ReadOnlyConnection


@pytest.fixture
def folder() -> Generator[Path]:
    """A folder that everybody may read and nobody but its owner may write to."""
    path = Path(tempfile.mkdtemp(prefix="strata-"))
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def read_as_nobody(path: Path) -> object:
    """Return what an unprivileged process reads, or the error it gets; the folder is not writable for it."""
    path.parent.chmod(0o555)
    out = finish(start("read_only.py", path, cwd="/"))
    path.parent.chmod(0o755)
    return json.loads(out) if out.startswith("{") else out


async def write_two_threads(backend: SqliteBackend) -> None:
    await backend.commit([save("a", blobs=(("sha256:1", b"content"),)), save("b", updated=1)])
    await backend.commit([save("a")])


WRITTEN = {"b": [[0], []], "a": [[0, 1], ["content"]]}


def test_a_closed_store_is_read_and_every_byte_stays(folder: Path) -> None:
    path = folder / "store.db"
    with_backend(path, write_two_threads)
    path.chmod(0o444)
    before = contents(folder)

    assert WRITTEN == read_as_nobody(path)
    assert before == contents(folder)
    assert ["store.db"] == list(before)


def test_beside_a_live_writer_the_newest_rows_are_read(folder: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await write_two_threads(backend)
        before = contents(folder)

        assert WRITTEN == read_as_nobody(path)
        await backend.commit([save("b", updated=1)])
        assert WRITTEN | {"b": [[0, 1], []]} == read_as_nobody(path)
        after = contents(folder)
        assert before["store.db"] == after["store.db"]
        assert set(before) == set(after)

    path = folder / "store.db"
    with_backend(path, check)


def copy_as_left_by_a_killed_writer(folder: Path, *, with_index: bool) -> Path:
    async def copy(backend: SqliteBackend) -> None:
        await write_two_threads(backend)
        for suffix in ("", "-wal", "-shm") if with_index else ("", "-wal"):
            shutil.copy(folder / f"original.db{suffix}", folder / f"store.db{suffix}")

    with_backend(folder / "original.db", copy)
    (folder / "original.db").unlink()
    return folder / "store.db"


def test_a_store_whose_writer_was_killed_is_read(folder: Path) -> None:
    path = copy_as_left_by_a_killed_writer(folder, with_index=True)
    before = contents(folder)

    assert WRITTEN == read_as_nobody(path)
    assert before == contents(folder)


def test_a_log_that_cannot_be_recovered_without_rights_is_said_and_never_passed_over(folder: Path) -> None:
    path = copy_as_left_by_a_killed_writer(folder, with_index=False)
    before = contents(folder)
    answer = read_as_nobody(path)

    assert str(answer).startswith(f"StoreUnavailableError {path}: its -wal file has to be read")
    assert before == contents(folder)
    with_backend(path, lambda backend: backend.read_head("a"))
    assert WRITTEN == read_as_nobody(path)


def test_an_old_file_is_read_without_rights(folder: Path) -> None:
    path = golden_version_1(folder / "store.db")

    assert ["order-3", "order-1", "注文-2"] == list(read_as_nobody(path))  # type: ignore[call-overload]
    assert ["store.db"] == [each.name for each in folder.iterdir()]


def test_a_file_without_the_right_to_read_is_unavailable(folder: Path) -> None:
    path = folder / "store.db"
    with_backend(path, write_two_threads)
    path.chmod(0o000)
    answer = str(read_as_nobody(path))

    assert answer.startswith(f"StoreUnavailableError {path}: the database file cannot be opened; check its permissions")


def test_a_file_in_a_closed_folder_is_unavailable(folder: Path) -> None:
    path = folder / "closed" / "store.db"
    path.parent.mkdir()
    with_backend(path, write_two_threads)
    folder.chmod(0o700)
    answer = str(read_as_nobody(path))

    assert answer.startswith(f"StoreUnavailableError {path}: the database file cannot be read: [Errno 13]")


def test_a_missing_file_is_named_and_not_made(tmp_path: Path) -> None:
    async def check() -> None:
        with pytest.raises(StoreUnavailableError, match=r"missing\.db: the database file does not exist"):
            async with opened(tmp_path / "missing.db", read_only=True):
                pass

    asyncio.run(check())

    assert [] == list(tmp_path.iterdir())


def test_a_reader_that_began_without_a_writer_sees_what_is_written_later(tmp_path: Path) -> None:
    """The file was read as immutable at first, which it then is no more."""

    async def check() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as writer:
            await writer.commit([save("t")])
        async with opened(path, read_only=True) as reader:
            for sequence in range(1, 4):
                assert [sequence - 1] == [row.sequence for row in await reader.read("t", None, None)]
                async with opened(path) as writer:
                    await writer.commit([save("t")])
                    if sequence % 2:
                        assert [sequence] == [row.sequence for row in await reader.read("t", None, None)]

                assert [sequence] == [row.sequence for row in await reader.read("t", None, None)]

    asyncio.run(check())


def test_a_read_during_which_the_file_changes_is_done_again(tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as writer:
            await writer.commit([save("t")])

        def write_elsewhere() -> None:
            with_backend(path, lambda backend: backend.commit([save("t")]))

        def count(db: sqlite3.Connection, changes: list[int]) -> int:
            found = int(db.execute("SELECT count(*) FROM strata_rows").fetchone()[0])
            if changes:
                changes.pop()
                write_elsewhere()  # on this thread, in a loop of its own
            return found

        async with opened(path, read_only=True) as reader:
            connection = reader._reader
            assert isinstance(connection, ReadOnlyConnection)

            assert 3 == await connection.read(count, [1, 2])
            with pytest.raises(StoreBusyError, match="changes faster than it can be read"):
                await connection.read(count, [1] * 1000)

    asyncio.run(check())


def test_a_file_written_a_moment_ago_is_read_when_another_write_would_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writes within one tick of the file's clock leave the same time behind."""
    path = tmp_path / "store.db"
    with_backend(path, write_two_threads)
    written = path.stat().st_mtime_ns
    now, slept = [written + 1_000_000], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += round(seconds * 1e9)

    monkeypatch.setattr(time, "time_ns", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)
    with_backend(path, lambda backend: backend.read_head("a"), read_only=True)

    assert slept
    assert set(slept) == {0.02}
