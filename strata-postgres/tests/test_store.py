"""The backend under core's `RowStore`, as users have it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from postgres_support import query

from strata_core import open_store
from strata_core.errors import ConflictError
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus, ThreadQuery, ThreadState
from strata_core.store import RowStore
from strata_postgres import PostgresBackend, PostgresOptions

START = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
RUNNING, COMPLETED = CheckpointStatus.RUNNING, CheckpointStatus.COMPLETED


def checkpoint(thread_id: str, number: int = 0, status: CheckpointStatus = RUNNING, **state: object) -> Checkpoint:
    return Checkpoint(thread_id, status, {**state, "step": number}, START + timedelta(seconds=number))


def test_a_conflict_among_fifty_waiting_saves_fails_alone(url: str) -> None:
    async def check() -> None:
        async with RowStore(PostgresBackend(url)) as store:
            await store.save(checkpoint("t25"))
            saves = (store.save_if_latest(checkpoint(f"t{number}"), None) for number in range(50))
            outcomes = await asyncio.gather(*saves, return_exceptions=True)

            assert isinstance(outcomes.pop(25), ConflictError)
            assert [0] * 49 == outcomes

    asyncio.run(check())


def test_the_documented_run_with_deltas_and_offload_is_stored_as_documented(url: str) -> None:
    async def check() -> None:
        evidence = "x" * 100_000
        async with open_store(url, deltas=Deltas(), offload=Offload()) as store:
            await store.save(Checkpoint("report-1", RUNNING, {"evidence": "", "step": 0}, START))
            for step in range(3):
                await store.save(Checkpoint("report-1", RUNNING, {"evidence": evidence, "step": step}, START))
            await store.save(Checkpoint("report-1", COMPLETED, {"evidence": evidence, "step": 3}, START))
        async with open_store(url, read_only=True) as store:
            latest = await store.load("report-1")

        assert latest is not None
        assert 100_024 == len(json.dumps(dict(latest.checkpoint.frozen_state), separators=(",", ":")))

    asyncio.run(check())

    assert [
        (0, "running", "1.7.0"),
        (1, "running", "1.9.0"),
        (2, "running", "1.8.0"),
        (3, "running", "1.8.0"),
        (4, "completed", "1.9.0"),
    ] == query(url, "SELECT sequence, status, schema_version FROM checkpoints ORDER BY sequence")
    assert [("sha256:55bb3c98333f4f20aa23ec49458f604541b9b5413cdf3b90ad17ceae5653b036", 100_002)] == query(
        url, "SELECT hash, length(content) FROM checkpoint_blobs;"
    )


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_store_opens_from_a_url_with_options(server_url: str, schema: str, scheme: str) -> None:
    async def check() -> None:
        url = server_url.replace("postgresql:", f"{scheme}:")
        options = PostgresOptions(schema=schema, max_connections=2)
        async with open_store(url, options=options) as store:
            await store.save(checkpoint("t"))
        async with open_store(f"{url}?schema={schema}", read_only=True) as store:
            page = await store.list_threads(ThreadQuery(states={ThreadState.RUNNING}))

        assert ["t"] == [thread.thread_id for thread in page.threads]

    asyncio.run(check())


def test_a_purge_takes_old_finished_threads_whole(url: str) -> None:
    async def check() -> None:
        async with RowStore(PostgresBackend(url), deltas=Deltas(), offload=Offload(threshold=10)) as store:
            for number in range(30):
                await store.save(checkpoint(f"t{number}", 0, text="x" * 50))
                await store.save(checkpoint(f"t{number}", number, COMPLETED if number % 3 else RUNNING, text="x" * 50))
            purged = await store.purge(START + timedelta(seconds=20), limit=1000)
            left = await store.list_threads(ThreadQuery(limit=100))

        assert 13 == purged
        assert 17 == len(left.threads)

    asyncio.run(check())

    assert [(17, 34, 17, 17)] == query(
        url,
        "SELECT (SELECT count(*) FROM strata_heads), (SELECT count(*) FROM strata_rows), "
        "(SELECT count(*) FROM strata_blobs), count(*) FROM strata_listing",
    )
