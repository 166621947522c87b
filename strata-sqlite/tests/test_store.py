"""The backend under core's `RowStore`, as users have it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlite_support import query, traced, writer_of

from strata_core import open_store
from strata_core.errors import ConflictError, InvalidInputError
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus, ThreadQuery, ThreadState
from strata_core.store import RowStore
from strata_sqlite import SqliteBackend, SqliteOptions

START = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
RUNNING, COMPLETED = CheckpointStatus.RUNNING, CheckpointStatus.COMPLETED


def checkpoint(thread_id: str, number: int = 0, status: CheckpointStatus = RUNNING, **state: object) -> Checkpoint:
    return Checkpoint(thread_id, status, {**state, "step": number}, START + timedelta(seconds=number))


def test_fifty_waiting_saves_are_one_commit_and_a_conflict_among_them_fails_alone(tmp_path: Path) -> None:
    async def check() -> None:
        backend = SqliteBackend(tmp_path / "store.db")
        async with RowStore(backend) as store:
            await store.save(checkpoint("t25"))
            with traced(writer_of(backend)) as statements:
                saves = (store.save_if_latest(checkpoint(f"t{number}"), None) for number in range(50))
                outcomes = await asyncio.gather(*saves, return_exceptions=True)

            assert 1 == statements.count("COMMIT")
            assert isinstance(outcomes.pop(25), ConflictError)
            assert [0] * 49 == outcomes

    asyncio.run(check())


def test_the_documented_run_with_deltas_and_offload_is_stored_as_documented(tmp_path: Path) -> None:
    async def check() -> None:
        evidence = "x" * 100_000
        async with open_store(path, deltas=Deltas(), offload=Offload()) as store:
            await store.save(Checkpoint("report-1", RUNNING, {"evidence": "", "step": 0}, START))
            for step in range(3):
                await store.save(Checkpoint("report-1", RUNNING, {"evidence": evidence, "step": step}, START))
            await store.save(Checkpoint("report-1", COMPLETED, {"evidence": evidence, "step": 3}, START))
        async with open_store(path, read_only=True) as store:
            latest = await store.load("report-1")

        assert latest is not None
        assert 100_024 == len(json.dumps(dict(latest.checkpoint.frozen_state), separators=(",", ":")))

    path = str(tmp_path / "reports.sqlite")
    asyncio.run(check())
    rows = query(
        Path(path),
        "SELECT sequence, status, schema_version, length(frozen_state) FROM checkpoints WHERE thread_id = 'report-1';",
    )

    assert [
        ("running", "1.7.0"),
        ("running", "1.9.0"),
        ("running", "1.8.0"),
        ("running", "1.8.0"),
        ("completed", "1.9.0"),
    ] == [row[1:3] for row in rows]
    assert [('{"evidence":"","step":0}',)] == query(
        Path(path), "SELECT frozen_state FROM checkpoints WHERE sequence = 0"
    )
    assert all(size < 200 for *_, size in rows)
    assert [("sha256:55bb3c98333f4f20aa23ec49458f604541b9b5413cdf3b90ad17ceae5653b036", 100_002)] == query(
        Path(path), "SELECT hash, length(content) FROM checkpoint_blobs;"
    )


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_a_store_opens_from_a_url_and_from_a_bare_path(tmp_path: Path, form: str) -> None:
    async def check() -> None:
        url = form.format(tmp_path / "orders 1.db")
        async with open_store(url, options=SqliteOptions(synchronous="NORMAL")) as store:
            await store.save(checkpoint("t"))
        async with open_store(url, read_only=True) as store:
            page = await store.list_threads(ThreadQuery(states={ThreadState.RUNNING}))

        assert ["t"] == [thread.thread_id for thread in page.threads]

    asyncio.run(check())

    assert ["orders 1.db"] == [path.name for path in tmp_path.iterdir()]


def test_a_url_with_a_host_or_options_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    async def check(url: str) -> None:
        with pytest.raises(InvalidInputError):
            async with open_store(url):
                pass

    for url in ("sqlite://host/a.db", f"sqlite:///{tmp_path}/a.db?mode=memory"):
        asyncio.run(check(url))

    assert [] == list(tmp_path.iterdir())


def test_a_purge_takes_old_finished_threads_whole(tmp_path: Path) -> None:
    async def check() -> None:
        backend = SqliteBackend(tmp_path / "store.db")
        async with RowStore(backend, deltas=Deltas(), offload=Offload(threshold=10)) as store:
            for number in range(30):
                await store.save(checkpoint(f"t{number}", 0, text="x" * 50))
                await store.save(checkpoint(f"t{number}", number, COMPLETED if number % 3 else RUNNING, text="x" * 50))
            purged = await store.purge(START + timedelta(seconds=20), limit=1000)
            left = await store.list_threads(ThreadQuery(limit=100))

        assert 13 == purged
        assert 17 == len(left.threads)

    asyncio.run(check())

    assert [(17, 34, 17)] == query(
        tmp_path / "store.db",
        "SELECT (SELECT count(*) FROM strata_heads), (SELECT count(*) FROM strata_rows), count(*) FROM strata_blobs",
    )
