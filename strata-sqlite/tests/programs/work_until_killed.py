"""Saves with deltas, offload and a blob folder until it is killed; acknowledges every save on stdout first."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta

from strata_core.blobs import FileSystemBlobStore
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.store import RowStore
from strata_sqlite import SqliteBackend

path, blobs, name = sys.argv[1:]
START = datetime(2026, 1, 1, tzinfo=UTC)


def checkpoint(thread_id: str, number: int, status: CheckpointStatus) -> Checkpoint:
    state = {"number": number, "large": f"{thread_id} {number // 3} " * 40, "same": "x" * 300}
    return Checkpoint(thread_id, status, state, START + timedelta(seconds=number), metadata={"run": name})


async def run(store: RowStore, thread_id: str) -> None:
    lease = await store.acquire_lease(
        thread_id, owner=name, ttl=timedelta(minutes=5), save=checkpoint(thread_id, 0, CheckpointStatus.RUNNING)
    )
    assert lease is not None
    acknowledge(thread_id, 0)
    for number in range(1, 30):
        await store.save_under_lease(checkpoint(thread_id, number, CheckpointStatus.RUNNING), lease)
        acknowledge(thread_id, number)
    await store.save_under_lease(checkpoint(thread_id, 30, CheckpointStatus.COMPLETED), lease, release=True)
    acknowledge(thread_id, 30)


def acknowledge(thread_id: str, sequence: int) -> None:
    os.write(1, f"{thread_id} {sequence}\n".encode())


async def main() -> None:
    backend = SqliteBackend(path)
    offload = Offload(threshold=250, blobs=FileSystemBlobStore(blobs))
    async with RowStore(backend, deltas=Deltas(full_every=8), offload=offload) as store:
        for turn in range(1_000):
            await asyncio.gather(*(run(store, f"{name}-{turn}-{number}") for number in range(6)))


asyncio.run(main())
