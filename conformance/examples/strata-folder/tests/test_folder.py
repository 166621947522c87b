"""What the folder store does beyond the contract: its layout, its formats, its URL, its errors."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import strata_folder
from strata_core import open_store
from strata_core.errors import (
    CorruptCheckpointError,
    InvalidInputError,
    ReadOnlyError,
    SchemaVersionError,
    StoreBusyError,
    StoreUnavailableError,
)
from strata_core.options import Offload, Setup
from strata_core.records import Checkpoint, CheckpointStatus, ThreadState
from strata_core.rows import Commit
from strata_core.store import RowStore
from strata_folder import FolderBackend, _files

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def checkpoint(n: int = 0, thread_id: str = "t", **state: Any) -> Checkpoint:
    return Checkpoint(thread_id, CheckpointStatus.RUNNING, {"n": n} | state, NOW)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two checkpoints of the thread ``t``, the second with a blob."""

    async def main() -> None:
        async with RowStore(FolderBackend(tmp_path / "store"), offload=Offload(threshold=100)) as store:
            await store.save(checkpoint(0))
            await store.save(checkpoint(1, big="x" * 200))

    asyncio.run(main())
    return tmp_path / "store"


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file with its content and when it was last changed."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_thread_is_a_folder_of_files(root: Path) -> None:
    """Its name is the hex of the thread ID, that of a blob its digest, and nothing else is left."""
    names = set(tree(root))
    (blob,) = [name for name in names if len(Path(name).name) == 64]

    assert {"lock", "format", "token", "threads/74/head", "threads/74/0.row", "threads/74/1.row", blob} == names
    assert b'"' + b"x" * 200 + b'"' == (root / blob).read_bytes()
    assert b"strata-folder 1\n" == (root / "format").read_bytes()


def test_an_id_that_is_too_long_for_a_name_is_hashed(root: Path) -> None:
    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            for thread_id in ("x" * 127, "x" * 128):
                await store.save(checkpoint(thread_id=thread_id))
            assert {"t", "x" * 127, "x" * 128} == {t.thread_id for t in (await store.list_threads()).threads}

    asyncio.run(main())
    names = {path.name for path in (root / "threads").iterdir()}

    assert {"74", "78" * 127} < names
    assert 1 == sum(name.startswith("sha256-") and len(name) == 71 for name in names)


def test_a_purge_leaves_no_file(root: Path) -> None:
    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            await store.purge(NOW + timedelta(days=1), states={ThreadState.RUNNING})

    asyncio.run(main())

    assert {"lock", "format", "token"} == set(tree(root))


def cut(content: bytes) -> bytes:
    return content[:-1]


def flip(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


@pytest.mark.parametrize("damage", [cut, flip, lambda _: b"", lambda _: b"\x80\xff", lambda c: c + b"x"])
@pytest.mark.parametrize(("file", "sequence"), [("head", None), ("1.row", 1)])
def test_a_damaged_file_is_an_error(
    root: Path, file: str, sequence: int | None, damage: Callable[[bytes], bytes]
) -> None:
    """It names the thread, the sequence where that is known, and the file; nothing is skipped or stepped back over."""
    path = root / "threads/74" / file
    path.write_bytes(damage(path.read_bytes()))

    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            for call in (store.load("t"), store.list_threads()):
                with pytest.raises(
                    CorruptCheckpointError, match=f"cannot be read: .*{file} has a wrong check"
                ) as caught:
                    await call
                assert ("t", sequence) == (caught.value.thread_id, caught.value.sequence)
            if file == "head":
                with pytest.raises(CorruptCheckpointError):
                    await store.save(checkpoint(2))

    asyncio.run(main())


def test_a_damaged_token_counter_is_an_error(root: Path) -> None:
    """No lease is given out that might have been given out before; saves go on."""
    (root / "token").write_bytes(b"")

    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            with pytest.raises(CorruptCheckpointError, match="token is damaged"):
                await store.acquire_lease("t", owner="o", ttl=timedelta(hours=1))
            assert 2 == await store.save(checkpoint(2))

    asyncio.run(main())


def test_a_missing_row_is_an_error(root: Path) -> None:
    (root / "threads/74/0.row").unlink()

    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            assert await store.load("t") is not None
            with pytest.raises(CorruptCheckpointError, match=r"0\.row is missing"):
                await store.load("t", at=0)

    asyncio.run(main())


def test_a_row_beyond_the_head_does_not_exist(root: Path) -> None:
    """A process that was killed before its head was in place has not committed; the next row takes the number."""
    folder = root / "threads/74"
    (folder / "2.row").write_bytes((folder / "1.row").read_bytes())
    (folder / "head.new").write_bytes(b"half a head")

    async def main() -> list[int]:
        async with RowStore(FolderBackend(root)) as store:
            assert await store.load("t", at=2) is None
            assert 2 == await store.save(checkpoint(5))
            return [entry.checkpoint.frozen_state["n"] for entry in (await store.get_log("t")).entries]

    assert [0, 1, 5] == asyncio.run(main())


def test_a_save_is_durable_in_this_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a new thread, its blobs and row, their names, then the head that counts them in, and its name."""
    steps: list[str] = []

    def noted(function: Callable[..., None]) -> Callable[..., None]:
        def note(path: Path, *content: bytes) -> None:
            steps.append(f"{function.__name__} {path.relative_to(root)}")
            function(path, *content)

        return note

    for function in (_files.put, _files.sync):
        monkeypatch.setattr(f"strata_folder._backend.{function.__name__}", noted(function))

    async def main() -> None:
        async with RowStore(FolderBackend(root), offload=Offload(threshold=100)) as store:
            await store.save(checkpoint(0, "u", big="y" * 200))
            await store.purge(NOW + timedelta(days=1), states={ThreadState.RUNNING}, limit=1)

    asyncio.run(main())
    (blob,) = [step for step in steps if len(step) > 70]

    assert [
        "sync threads",
        blob,
        "put threads/75/0.row",
        "sync threads/75",
        "put threads/75/head",
        "sync threads/75",
        "sync threads",
    ] == steps


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content is on the disk before it gets its name; when that fails, the old file stays."""
    path = tmp_path / "head"
    path.write_bytes(b"old")
    seen: list[bytes] = []

    def fails(_: int) -> None:
        seen.append(path.read_bytes())
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="Input/output"):
            _files.put(path, b"new")
    before = path.read_bytes()
    _files.put(path, b"new")

    assert [b"old"] == seen
    assert b"old" == before
    assert b"new" == path.read_bytes()


def test_a_newer_format_is_refused(root: Path) -> None:
    """By its name, before anything is read or written, however it is opened."""
    (root / "format").write_bytes(b"strata-folder 2\n")
    before = {name: content for name, (content, _) in tree(root).items()}

    async def main(**options: Any) -> None:
        with pytest.raises(SchemaVersionError) as caught:
            async with RowStore(FolderBackend(root), **options) as store:
                await store.save(checkpoint())
        assert ("strata-folder 2", "strata-folder 1") == (caught.value.found, caught.value.supported)

    for options in ({}, {"read_only": True}, {"setup": Setup.NEVER}):
        asyncio.run(main(**options))

    assert before == {name: content for name, (content, _) in tree(root).items()}


def test_a_read_only_store_changes_no_file(root: Path) -> None:
    before = tree(root)

    async def main() -> None:
        async with RowStore(FolderBackend(root), read_only=True) as store:
            assert await store.load("t") is not None
            assert 1 == len((await store.list_threads()).threads)
            with pytest.raises(ReadOnlyError):
                await store.save(checkpoint())
        backend = FolderBackend(root)
        await backend.open(read_only=True, setup=Setup.AUTO)
        with pytest.raises(ReadOnlyError):
            await backend.commit([Commit("t", os.urandom(8), erase=True)])

    asyncio.run(main())

    assert before == tree(root)


def test_a_read_only_store_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    async def main() -> None:
        async with RowStore(FolderBackend(tmp_path / "none"), read_only=True):
            pass

    with pytest.raises(StoreUnavailableError, match="there is no such folder"):
        asyncio.run(main())
    assert [] == list(tmp_path.iterdir())


def test_a_store_is_set_up_only_on_request(tmp_path: Path) -> None:
    """Without setup nothing is created, every call says what to do, and `setup` does it."""
    folder = tmp_path / "store"

    async def main() -> None:
        async with RowStore(FolderBackend(folder), setup=Setup.NEVER) as store:
            for call in (store.save(checkpoint()), store.load("t"), store.list_threads()):
                with pytest.raises(SchemaVersionError, match=r"was never set up: call store.setup\(\) once") as caught:
                    await call
                assert "none" == caught.value.found
            assert not folder.exists()
            await store.setup()
            assert 0 == await store.save(checkpoint())

    asyncio.run(main())


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    """Whoever gives the wrong path loses nothing, not even in a folder that is called like ours."""
    (tmp_path / "threads/novel").mkdir(parents=True)
    (tmp_path / "threads/novel/chapter").write_text("It was a dark and stormy night.")
    before = tree(tmp_path)

    async def main() -> None:
        with pytest.raises(SchemaVersionError, match="holds something else: give the path of a new folder"):
            async with RowStore(FolderBackend(tmp_path)):
                pass

    asyncio.run(main())

    assert before == tree(tmp_path)


def test_a_file_that_is_not_ours_stays(root: Path) -> None:
    (root / "threads/.DS_Store").touch()

    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            assert 1 == len((await store.list_threads()).threads)

    asyncio.run(main())

    assert (root / "threads/.DS_Store").exists()


def test_a_lock_that_is_never_free_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was written, and the store says so instead of waiting for ever."""
    monkeypatch.setattr(_files, "PATIENCE", 0.0)

    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            with _files.locked(root / "lock", exclusive=True):
                with pytest.raises(StoreBusyError, match="another process held the lock"):
                    await store.save(checkpoint(2))
                with pytest.raises(StoreBusyError):
                    await store.load("t")
            assert 2 == await store.save(checkpoint(2))

    asyncio.run(main())


def test_a_full_disk_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was under way is not there, and the error says that its outcome is unknown."""

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    async def main() -> None:
        async with RowStore(FolderBackend(root)) as store:
            with monkeypatch.context() as patch:
                patch.setattr("strata_folder._backend.put", full)
                with pytest.raises(StoreUnavailableError, match="No space left") as caught:
                    await store.save(checkpoint(2))
                assert caught.value.maybe_written
            assert 2 == await store.save(checkpoint(2))

    asyncio.run(main())


def test_a_place_that_cannot_be_a_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def main() -> None:
        async with RowStore(FolderBackend(tmp_path / "file")):
            pass

    with pytest.raises(StoreUnavailableError, match="cannot be set up"):
        asyncio.run(main())


def test_listing_plugins_does_not_import_the_backend() -> None:
    """It is imported once a store is wanted: by its name, or by the plugin's factory."""
    code = (
        "import sys, strata_folder._plugin; print('strata_folder._backend' in sys.modules);"
        "strata_folder.FolderBackend; print('strata_folder._backend' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ["False", "True"] == done.stdout.split()


def test_a_name_that_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'strata_folder' has no attribute 'FileBackend'"):
        strata_folder.FileBackend  # noqa: B018


def test_the_url_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes are relative, four absolute, through the entry point like any other store."""
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with open_store("folder:///relative") as store:
            await store.save(checkpoint())
        async with open_store(f"folder:///{tmp_path}/relative", read_only=True) as store:
            assert await store.load("t") is not None

    asyncio.run(main())

    assert (tmp_path / "relative/threads/74/head").exists()


def test_a_url_without_a_folder_is_refused() -> None:
    async def main() -> None:
        async with open_store("folder://orders"):
            pass

    with pytest.raises(InvalidInputError, match="names no file"):
        asyncio.run(main())
