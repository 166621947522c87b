"""Several processes that wake the due threads of one store."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from strata_core import CheckpointPolicy, open_store

STORE = os.environ.get("STRATA_TEST_STORE", "memory://")
PROGRAM = Path(__file__).parent / "programs" / "due_jobs.py"
PROCESSES = 4
THREADS = 200


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The store that the processes share; the threads of other tests may be in it."""
    if STORE == "memory://":
        pytest.skip("a store in memory belongs to one process; the environment of each backend runs this")
    return STORE.replace("FOLDER", str(tmp_path))


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", str(PROGRAM), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[str]:
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()

    assert (0, "") == (process.returncode, err)
    return out.split()


@pytest.mark.parametrize("policy", list(CheckpointPolicy))
def test_four_processes_wake_each_of_two_hundred_threads_exactly_once(
    url: str, policy: CheckpointPolicy, tmp_path: Path
) -> None:
    identity, notes, gate = f"jobs-{uuid.uuid4().hex}", tmp_path / "notes", tmp_path / "gate"
    ids = {f"{identity}-{n}" for n in range(THREADS)}

    async def states() -> list[list[str]]:
        async with open_store(url) as store:
            logs = [await store.get_log(thread_id) for thread_id in ids]
            return [[entry.checkpoint.state.value for entry in log.entries] for log in logs]

    assert [] == finish(start("begin", url, policy, identity, notes, THREADS))
    assert not notes.read_text()
    processes = [start("wake", url, policy, identity, notes, gate) for _ in range(PROCESSES)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert "ready\n" == process.stdout.readline()
        gate.touch()
        told = [finish(process) for process in processes]
    finally:
        for process in processes:
            process.kill()

    assert sorted(ids) == sorted(notes.read_text().split()), "each ran once"
    assert sorted(ids) == sorted(thread_id for one in told for thread_id in one), "and one process was told"
    rows = [["interrupted", "resumed"], ["running", "interrupted", "running", "completed"]]
    assert [rows[policy is CheckpointPolicy.EVERY_NODE]] * THREADS == asyncio.run(states())
