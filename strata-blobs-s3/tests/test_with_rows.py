"""Blobs in S3 and rows in SQLite together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from s3_support import Place, digest_of

from strata_blobs_s3 import S3BlobStore
from strata_conformance import ExternalBlobTests, OpenStore
from strata_conformance.servers import FaultProxy, MotoServer
from strata_core import Checkpoint, CheckpointStatus, Deltas, Offload, open_store
from strata_core.blobs import BlobCheck, check_blobs, thread_folder
from strata_core.errors import CorruptCheckpointError, StoreUnavailableError
from strata_core.opening import open_blobs
from strata_core.ports import BlobStore
from strata_core.testing import FakeClock

BIG = "x" * 50_000
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
LATER = datetime.now(UTC) + timedelta(hours=1)


class TestRowsInSqlite(ExternalBlobTests):
    """What the suite says of rows and a blob store together; `conftest.py` leaves the long ones to soak."""

    @pytest.fixture
    def open_store(self, tmp_path: Path, clock: FakeClock) -> OpenStore:
        return lambda **options: open_store(tmp_path / "threads.db", clock=clock, **options)

    @pytest.fixture
    def external_blobs(self, moto: Place) -> Iterator[BlobStore]:
        blobs = moto.store("strata")
        asyncio.run(blobs.__aenter__())
        yield blobs
        asyncio.run(blobs.close())


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


def checkpoint(thread: str, state: dict[str, Any], status: str = "completed") -> Checkpoint:
    return Checkpoint(thread, CheckpointStatus(status), state, YESTERDAY)


@asynccontextmanager
async def opened(threads: Path, moto: Place, **options: Any) -> AsyncIterator[Any]:
    offload = Offload(threshold=1000, blobs=moto.url("strata"))
    async with open_store(threads, offload=offload, deltas=Deltas(), **options) as store:
        yield store


def test_a_url_is_all_that_it_takes(moto: Place, threads: Path) -> None:
    """Values come back in another process's place; a purge takes the objects of its threads and no others."""

    async def scenario() -> list[Any]:
        async with opened(threads, moto) as store:
            for step in range(3):
                await store.save(checkpoint("gone", {"big": BIG, "step": step}, "running"))
            await store.save(checkpoint("gone", {"big": BIG, "step": 3}))
            await store.save(checkpoint("kept", {"big": BIG}, "running"))
        async with opened(threads, moto) as store:
            loaded = (await store.load("gone")).checkpoint.frozen_state
            assert 2 == len(moto.keys())
            return [loaded, await store.purge(LATER), await store.load("gone")]

    assert [{"big": BIG, "step": 3}, 1, None] == asyncio.run(scenario())
    assert [f"strata/{thread_folder('kept')}/{digest_of(f'{chr(34)}{BIG}{chr(34)}'.encode())[7:]}"] == moto.keys()


def test_a_purge_between_a_put_that_found_its_blob_and_the_row_costs_the_save_nothing(
    moto: Place, threads: Path
) -> None:
    """The blob is there, so it is not sent; then a purge takes it; then the row is refused, and all is done again."""

    async def scenario() -> dict[str, Any]:
        async with opened(threads, moto) as store, opened(threads, moto) as other, moto.store("strata") as blobs:
            await other.save(checkpoint("t", {"big": BIG}))
            real = type(blobs).put
            purged: list[int] = []

            async def put(self: Any, *arguments: Any) -> None:
                await real(self, *arguments)
                if not purged:
                    purged.append(await other.purge(LATER))
                    assert [] == moto.keys()

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(blobs), "put", put)
                await store.save(checkpoint("t", {"big": BIG, "again": True}))
            assert [1] == purged
            entry = await other.load("t")
        assert 0 == entry.sequence
        return entry.checkpoint.frozen_state  # type: ignore[no-any-return]

    assert {"big": BIG, "again": True} == asyncio.run(scenario())


def test_an_object_that_was_tampered_with_is_an_error_that_names_its_place(moto: Place, threads: Path) -> None:
    async def scenario() -> CorruptCheckpointError:
        async with opened(threads, moto) as store:
            await store.save(checkpoint("t", {"big": BIG}))
            (key,) = moto.keys()
            moto.client.put_object(Bucket=moto.bucket, Key=key, Body=b'"' + b"y" * 50_000 + b'"')
            with pytest.raises(CorruptCheckpointError) as caught:
                await store.load("t")
        return caught.value

    error = asyncio.run(scenario())

    assert ("t", 0) == (error.thread_id, error.sequence)
    assert "at 'big', whose content does not match that hash" in str(error)


def test_a_purge_leaves_a_thread_whose_bucket_it_cannot_reach_and_says_so(
    moto: Place, threads: Path, caplog: pytest.LogCaptureFixture, moto_server: MotoServer
) -> None:
    """Opened without the blob store, it skips the thread.  Where the service goes away meanwhile, nothing of the thread
    can be reached any more, but it is there to be purged again, and nothing is left behind.
    """

    async def scenario(proxy: FaultProxy) -> list[Any]:
        clock = FakeClock(datetime.now(UTC))
        async with opened(threads, moto, clock=clock) as store:
            await store.save(checkpoint("t", {"big": BIG}))
        async with open_store(threads, clock=clock) as store:
            with caplog.at_level(logging.WARNING):
                skipped = await store.purge(LATER), (await store.list_threads()).threads[0].thread_id
        behind = Place(proxy.url(moto.endpoint_url), moto.bucket, moto.client)
        async with S3BlobStore.from_url(behind.url("strata", "&max_attempts=1")) as blobs:
            offload = Offload(threshold=1000, blobs=blobs)
            async with open_store(threads, offload=offload, clock=clock) as store:
                proxy.refuse()
                proxy.reset_all()
                with pytest.raises(StoreUnavailableError, match="cannot delete the blobs in s3://"):
                    await store.purge(LATER)
                half = await store.load("t"), len(moto.keys())
                proxy.accept()
                clock.advance(61)
                await store.purge(LATER)
        return [skipped, half, moto.keys()]

    with FaultProxy.before(moto_server) as proxy:
        assert [(0, "t"), (None, 1), []] == asyncio.run(scenario(proxy))
    assert "'t' was not purged" in caplog.text


def test_orphans_are_found_and_only_those(moto: Place, threads: Path) -> None:
    """A thread that the store does not have, and a blob that no checkpoint refers to; with hashed folder names too."""
    long, lost = "x" * 300, "y" * 300

    async def scenario() -> list[BlobCheck]:
        async with opened(threads, moto) as store, open_blobs(moto.url("strata")) as blobs:
            for thread in ("t", long):
                await store.save(checkpoint(thread, {"big": BIG}, "running"))
                await store.save(checkpoint(thread, {"big": BIG + "y", "n": 1}, "running"))
            for thread in ("t", "gone", lost):
                await blobs.put(thread, digest_of(b"1"), b"1")
            checks = [check async for check in check_blobs(store, blobs, older_than=LATER)]
            young = [check async for check in check_blobs(store, blobs, older_than=YESTERDAY)]
        assert [] == [orphan for check in young for orphan in check.orphans]
        return checks

    found = {check.folder: check for check in asyncio.run(scenario())}

    assert {
        thread_folder("t"): ("t", True, 3, [digest_of(b"1")]),
        thread_folder(long): (long, True, 2, []),
        thread_folder("gone"): ("gone", False, 1, [digest_of(b"1")]),
        thread_folder(lost): (None, False, 1, [digest_of(b"1")]),
    } == {
        folder: (check.thread_id, check.has_thread, len(check.blobs), [orphan.digest for orphan in check.orphans])
        for folder, check in found.items()
    }
