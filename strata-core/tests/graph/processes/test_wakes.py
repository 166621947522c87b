"""Several processes that wake the due threads of one store."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from process_support import finish, start, with_store

from strata_core import CheckpointPolicy

PROCESSES = 4
THREADS = 200


@pytest.mark.parametrize("policy", list(CheckpointPolicy))
def test_four_processes_wake_each_of_two_hundred_threads_exactly_once(
    url: str, policy: CheckpointPolicy, tmp_path: Path
) -> None:
    # A graph of its own: the store may hold the threads of other tests.
    identity, notes, gate = f"jobs-{uuid.uuid4().hex}", tmp_path / "notes", tmp_path / "gate"
    ids = {f"{identity}-{n}" for n in range(THREADS)}

    async def states(store: Any) -> list[list[str]]:
        logs = await asyncio.gather(*(store.get_log(thread_id) for thread_id in ids))
        return [[entry.checkpoint.state.value for entry in log.entries] for log in logs]

    assert [] == finish(start("due_jobs.py", "begin", url, policy, identity, notes, THREADS))
    assert not notes.read_text()
    processes = [start("due_jobs.py", "wake", url, policy, identity, notes, gate) for _ in range(PROCESSES)]
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
    assert [rows[policy is CheckpointPolicy.EVERY_NODE]] * THREADS == with_store(url, states)
