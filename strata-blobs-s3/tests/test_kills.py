"""Processes that die while they save or purge threads with blobs in S3, at every step; by SIGKILL."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from s3_support import Place

from strata_core import Checkpoint, CheckpointStatus, Offload, open_store
from strata_core.records import LogEntry
from strata_core.testing import FakeClock

PROGRAM = Path(__file__).parent / "programs" / "die_at_each_step.py"
NOW = datetime.now(UTC)
STATE = {f"big{n}": f"{n}" * 200 for n in range(3)}


class Mortal:
    """Does what it is told in a process that dies on the way."""

    def __init__(self, threads: Path, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", PROGRAM, threads, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONFAULTHANDLER": "1"},
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


async def afterwards(threads: Path, moto: Place, thread: str) -> tuple[LogEntry | None, list[str]]:
    """Return the thread as it stands, and what is left of it after a purge when every reservation has passed."""
    offload = Offload(threshold=100, blobs=moto.url("strata"))
    clock = FakeClock(datetime.now(UTC))
    async with open_store(threads, offload=offload, clock=clock) as store:
        found = await store.load(thread)
        clock.advance(61)
        await store.purge(NOW)
        left = list(moto.keys())
        assert await store.load(thread) is None
        assert 0 == await store.save(Checkpoint(thread, CheckpointStatus.COMPLETED, STATE, NOW - timedelta(days=1)))
        again = await store.load(thread)
        assert again is not None
        assert STATE == again.checkpoint.frozen_state
        assert 1 == await store.purge(NOW)
        assert [] == moto.keys()
    return found, left


def test_a_save_that_dies_at_any_step_leaves_a_whole_thread_or_orphans_that_a_purge_takes(
    mortal: Mortal, threads: Path, moto: Place
) -> None:
    outcomes, orphans = [], 0
    for last in range(1, 100):
        outcomes.append(mortal.do("save", f"t{last}", last))
        orphans += len(moto.keys()) if outcomes[-1] == "killed" else 0
        found, left = asyncio.run(afterwards(threads, moto, f"t{last}"))
        assert found is None or STATE == found.checkpoint.frozen_state
        assert [] == left
        if outcomes[-1] != "killed":
            break

    # Three puts of a request each and two commits, before and after each, and one run to its end.
    assert ["killed"] * 10 + ["done"] == outcomes
    assert orphans > 0


def test_a_purge_that_dies_at_any_step_leaves_nothing_half_deleted_that_can_be_reached(
    mortal: Mortal, threads: Path, moto: Place
) -> None:
    outcomes = []
    for last in range(1, 100):
        assert "done" == mortal.do("save", f"t{last}", 0)
        outcomes.append(mortal.do("purge", f"t{last}", last))
        found, left = asyncio.run(afterwards(threads, moto, f"t{last}"))
        assert found is None or STATE == found.checkpoint.frozen_state
        assert [] == left
        if outcomes[-1] != "killed":
            break

    # Two commits, and two pages of a listing and a delete, before and after each, and one run to its end.
    assert ["killed"] * 12 + ["done"] == outcomes
