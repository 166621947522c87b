"""Processes that die while they save or purge threads with blobs in S3, at every step; by SIGKILL."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
from s3_support import Place

from strata_blobs_s3 import S3BlobStore
from strata_core import Checkpoint, CheckpointStatus, Offload
from strata_core.records import LogEntry
from strata_core.store import RowStore
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend

PROGRAM = Path(__file__).parent / "programs" / "die_at_each_step.py"
NOW = datetime.now(UTC)
STATE = {f"big{n}": f"{n}" * 200 for n in range(2)}


class Mortal:
    """Does what it is told in a process that dies on the way."""

    def __init__(self, threads: Path, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", PROGRAM, threads, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, verb: str, thread: str, last: int) -> str:
        """Return ``killed`` or ``done``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{verb} {thread} {last}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
def mortal(threads: Path, moto: Place) -> Iterator[Mortal]:
    mortal = Mortal(threads, moto.url("strata"))
    yield mortal
    mortal.close()


@attrs.frozen
class Survivor:
    """Looks after the thread when somebody died on it."""

    threads: Path
    blobs: S3BlobStore
    moto: Place

    def store(self, clock: FakeClock) -> RowStore:
        return RowStore(SqliteBackend(self.threads, clock=clock), offload=Offload(threshold=100, blobs=self.blobs))

    async def purge(self) -> tuple[LogEntry | None, list[str]]:
        """Return the thread as it stands, and what is left of it after a purge when every reservation has passed."""
        clock = FakeClock(datetime.now(UTC))
        async with self.store(clock) as store:
            found = await store.load("t")
            clock.advance(61)
            await store.purge(NOW)
            assert await store.load("t") is None
        return found, list(self.moto.keys())

    async def save(self) -> None:
        """Save the thread from its beginning."""
        async with self.store(FakeClock(datetime.now(UTC))) as store:
            assert 0 == await store.save(Checkpoint("t", CheckpointStatus.COMPLETED, STATE, NOW - timedelta(days=1)))


@pytest.fixture
def survivor(threads: Path, moto: Place) -> Iterator[Survivor]:
    blobs = moto.store("strata")
    asyncio.run(blobs.__aenter__())
    yield Survivor(threads, blobs, moto)
    asyncio.run(blobs.close())


def test_a_save_that_dies_at_any_step_leaves_a_whole_thread_or_orphans_that_a_purge_takes(
    mortal: Mortal, survivor: Survivor
) -> None:
    outcomes: list[str] = []
    orphans = 0
    while outcomes[-1:] in ([], ["killed"]):
        outcomes.append(mortal.do("save", "t", len(outcomes) + 1))
        there = len(survivor.moto.keys())
        found, left = asyncio.run(survivor.purge())
        orphans += there if found is None else 0
        assert found is None or STATE == found.checkpoint.frozen_state
        assert [] == left

    # Two puts of a request each and two commits, before and after each, and one run to its end.
    assert ["killed"] * 8 + ["done"] == outcomes
    assert orphans > 0


def test_a_purge_that_dies_at_any_step_leaves_nothing_half_deleted_that_can_be_reached(
    mortal: Mortal, survivor: Survivor
) -> None:
    outcomes: list[str] = []
    while outcomes[-1:] in ([], ["killed"]):
        asyncio.run(survivor.save())
        outcomes.append(mortal.do("purge", "t", len(outcomes) + 1))
        found, left = asyncio.run(survivor.purge())
        assert (STATE if len(outcomes) == 1 else None) == (None if found is None else found.checkpoint.frozen_state)
        assert [] == left

    # Two commits, and two pages of a listing and a delete, before and after each, and one run to its end.
    assert ["killed"] * 12 + ["done"] == outcomes
