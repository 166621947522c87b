"""Which blobs a store refers to, and which nobody does."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from strata_core import Checkpoint, CheckpointStatus, Deltas, Offload
from strata_core.blobs import BlobCheck, FileSystemBlobStore, InMemoryBlobStore, check_blobs, thread_folder
from strata_core.errors import CorruptCheckpointError, InvalidInputError, PluginError
from strata_core.memory import MemoryBackend
from strata_core.opening import open_blobs, open_store
from strata_core.store import RowStore, _reading
from strata_core.testing import FakeClock

BASE = datetime(2026, 3, 1, tzinfo=UTC)
DIGEST = "sha256:" + "0" * 64


def checkpoint(thread: str, **state: Any) -> Checkpoint:
    return Checkpoint(thread, CheckpointStatus.RUNNING, state, BASE)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(BASE)


@pytest.fixture
def blobs(clock: FakeClock) -> InMemoryBlobStore:
    return InMemoryBlobStore(clock)


@pytest.fixture
def opened(clock: FakeClock, blobs: InMemoryBlobStore) -> Callable[..., RowStore]:
    backend = MemoryBackend(clock)
    return lambda **options: RowStore(
        backend, **{"offload": Offload(threshold=50, blobs=blobs), "deltas": Deltas(), **options}
    )


def test_every_reference_of_a_log_is_told_without_reading_a_blob(
    opened: Callable[..., RowStore], blobs: InMemoryBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of whole rows and of deltas, also what later rows drop; across slices; small values count for nothing."""
    monkeypatch.setattr(_reading, "SLICE", 3)

    async def scenario() -> list[frozenset[str] | None]:
        async with opened() as store:
            for n in range(10):
                await store.save(checkpoint("t", n=n, big="x" * 100, **({"other": "y" * 100} if n == 5 else {})))
            await store.save(checkpoint("small", n=1))
        async with opened(offload=None) as store:
            return [await store.blob_references(thread) for thread in ("t", "small", "unknown")]

    t, small, unknown = asyncio.run(scenario())
    kept = frozenset(f"sha256:{name}" for name in blobs._threads[thread_folder("t")])

    assert (kept, frozenset(), None) == (t, small, unknown)
    assert 2 == len(kept)


def test_a_row_that_cannot_be_read_is_an_error(opened: Callable[..., RowStore]) -> None:
    async def scenario() -> None:
        async with opened() as store:
            await store.save(checkpoint("t", big="x" * 100))
            row = store._link.backend._rows["t"][0]  # type: ignore[attr-defined]
            row.body = row.body.replace(b"sha256:", b"md5:")
            with pytest.raises(CorruptCheckpointError, match="'t' #0 has a blob reference at 'big' that is no sha256"):
                await store.blob_references("t")

    asyncio.run(scenario())


def checks(store: Any, blobs: Any, older_than: datetime) -> Any:
    async def collect() -> list[BlobCheck]:
        return [check async for check in check_blobs(store, blobs, older_than=older_than)]

    return collect()


def test_orphans_are_what_no_checkpoint_refers_to_and_is_old_enough(
    opened: Callable[..., RowStore], blobs: InMemoryBlobStore, clock: FakeClock
) -> None:
    long, lost = "x" * 200, "y" * 200

    async def scenario() -> list[BlobCheck]:
        async with opened() as store:
            for thread in ("t", long):
                await store.save(checkpoint(thread, big="x" * 100))
            for thread in ("t", "gone", lost):
                await blobs.put(thread, DIGEST, b"1")
            clock.advance(10)
            await blobs.put("young", DIGEST, b"1")
            found: list[BlobCheck] = await checks(store, blobs, BASE + timedelta(seconds=5))
            return found

    found = {check.folder: check for check in asyncio.run(scenario())}

    assert {
        thread_folder("t"): ("t", True, 2, 1),
        thread_folder(long): (long, True, 1, 0),
        thread_folder("gone"): ("gone", False, 1, 1),
        thread_folder(lost): (None, False, 1, 1),
        thread_folder("young"): ("young", False, 1, 0),
    } == {
        folder: (check.thread_id, check.has_thread, len(check.blobs), len(check.orphans))
        for folder, check in found.items()
    }


def test_a_row_that_is_written_after_its_blob_was_listed_counts(
    opened: Callable[..., RowStore], blobs: InMemoryBlobStore
) -> None:
    content = b'"' + b"x" * 100 + b'"'

    async def scenario() -> list[BlobCheck]:
        async with opened() as store:
            await blobs.put("t", f"sha256:{hashlib.sha256(content).hexdigest()}", content)
            real = blobs.list_blobs

            async def listed() -> Any:
                async for blob in real():
                    yield blob
                await store.save(checkpoint("t", big="x" * 100))

            blobs.list_blobs = listed  # type: ignore[method-assign]
            found: list[BlobCheck] = await checks(store, blobs, BASE + timedelta(days=1))
            return found

    assert [(True, [])] == [(check.has_thread, list(check.orphans)) for check in asyncio.run(scenario())]


@pytest.mark.parametrize("lacking", ["store", "blobs"])
def test_who_cannot_tell_is_named(opened: Callable[..., RowStore], blobs: InMemoryBlobStore, lacking: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_blobs(
            object() if lacking == "store" else opened(),  # type: ignore[arg-type]
            object() if lacking == "blobs" else blobs,  # type: ignore[arg-type]
            older_than=BASE,
        )

    assert lacking == caught.value.argument


def test_a_naive_time_is_refused(opened: Callable[..., RowStore], blobs: InMemoryBlobStore) -> None:
    with pytest.raises(InvalidInputError, match="older_than: must be an aware datetime"):
        check_blobs(opened(), blobs, older_than=datetime(2026, 1, 1))  # noqa: DTZ001  # that is the mistake


def test_a_folder_lists_blobs_and_nothing_else(tmp_path: Path) -> None:
    """No unfinished file, no link, no folder that is no thread's; and a folder that is not there has none."""
    blobs = FileSystemBlobStore(tmp_path / "blobs")

    async def listed() -> list[tuple[str, str, int]]:
        return [(blob.folder, blob.digest, blob.size) async for blob in blobs.list_blobs()]

    assert [] == asyncio.run(listed())
    asyncio.run(blobs.put("t", DIGEST, b"123"))
    folder = tmp_path / "blobs" / "74"
    (folder / f".{'0' * 64}.tmp").touch()
    (folder / ("1" * 64)).mkdir()
    (folder / ("2" * 64)).symlink_to("0" * 64)
    (tmp_path / "blobs" / "readme").mkdir()
    (tmp_path / "blobs" / "75").touch()
    (tmp_path / "blobs" / "76").symlink_to(folder)

    assert [("74", DIGEST, 3)] == asyncio.run(listed())


def test_a_blob_store_is_opened_by_its_url(tmp_path: Path) -> None:
    async def scenario() -> Any:
        async with open_blobs(tmp_path / "blobs") as blobs:
            await blobs.put("t", DIGEST, b"1")
            return await blobs.get("t", DIGEST)

    async def unknown() -> None:
        async with open_blobs("nosuch:x"):
            pass

    assert b"1" == asyncio.run(scenario())
    with pytest.raises(PluginError, match="blob store for 'nosuch' URLs"):
        asyncio.run(unknown())
    with pytest.raises(InvalidInputError, match="url: must be a URL or a path"):
        open_blobs(5)  # type: ignore[arg-type]


def test_a_store_that_finds_a_false_content_itself_gets_the_place_of_it_told(tmp_path: Path) -> None:
    class Verifying(InMemoryBlobStore):
        async def get(self, thread_id: str, digest: str) -> bytes | None:
            raise CorruptCheckpointError(thread_id, None, "has a false blob")

    async def scenario() -> CorruptCheckpointError:
        async with open_store("memory://", offload=Offload(threshold=50, blobs=Verifying())) as store:
            await store.save(checkpoint("t", big="x" * 100))
            with pytest.raises(CorruptCheckpointError) as caught:
                await store.load("t")
        return caught.value

    error = asyncio.run(scenario())

    assert ("t", 0) == (error.thread_id, error.sequence)
    assert "at 'big', whose content does not match that hash" in str(error)
