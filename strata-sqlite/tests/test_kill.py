"""Processes killed in the middle of their work, with deltas, offload and a blob folder on."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from sqlite_support import query, start

from strata_core.blobs import FileSystemBlobStore
from strata_core.options import Deltas, Offload
from strata_core.records import LogEntry
from strata_core.store import RowStore
from strata_sqlite import SqliteBackend

KILLS = 500 if os.environ.get("STRATA_SOAK") == "1" else 25


def work_until_killed(path: Path, blobs: Path, name: str, acknowledgements: int) -> dict[str, int]:
    """Kill a worker after so many acknowledgements; return the last acknowledged sequence of each thread."""
    process = start("work_until_killed.py", path, blobs, name)
    assert process.stdout is not None
    assert process.stderr is not None
    lines = [process.stdout.readline() for _ in range(acknowledgements)]
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()  # what it had said before it died
    errors = process.stderr.read()
    process.wait()
    process.stdout.close()
    process.stderr.close()

    assert (-signal.SIGKILL, "") == (process.returncode, errors)
    last: dict[str, int] = {}
    for line in lines:
        if line.endswith("\n"):
            thread_id, sequence = line.split()
            last[thread_id] = int(sequence)
    return last


async def log_of(store: RowStore, thread_id: str) -> list[LogEntry]:
    return list((await store.get_log(thread_id, limit=1000)).entries)


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_and_nothing_is_half_written(tmp_path: Path) -> None:
    async def check(killed: dict[str, int]) -> None:
        offload = Offload(threshold=250, blobs=FileSystemBlobStore(blobs))
        async with RowStore(SqliteBackend(path), deltas=Deltas(full_every=8), offload=offload) as store:
            for thread_id, last in killed.items():
                entries = await log_of(store, thread_id)

                assert len(entries) in {last + 1, last + 2}  # the last one may have been done unheard
                assert list(range(len(entries))) == [entry.checkpoint.frozen_state["number"] for entry in entries]
                for entry in entries:
                    number = entry.checkpoint.frozen_state["number"]

                    assert f"{thread_id} {number // 3} " * 40 == entry.checkpoint.frozen_state["large"]
                    assert "x" * 300 == entry.checkpoint.frozen_state["same"]

    path, blobs = tmp_path / "store.db", tmp_path / "blobs"
    seeded = random.Random(20261030)
    everything: dict[str, int] = {}
    for number in range(KILLS):
        killed = work_until_killed(path, blobs, f"w{number}", seeded.randint(1, 120))
        asyncio.run(check(killed))
        everything |= killed
    asyncio.run(check(everything))

    assert [("ok",)] == query(path, "PRAGMA integrity_check")
