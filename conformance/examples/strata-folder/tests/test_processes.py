"""Several processes share a folder, and any of them can be killed at any time."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from strata_core.records import ThreadState
from strata_core.rows import HeadQuery
from strata_core.store import RowStore
from strata_folder import FolderBackend

WORKER = Path(__file__).with_name("worker.py")
KILLS = 25
PROCESSES = 8


def start(folder: Path, seed: int, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), str(folder), str(seed), str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def acknowledged(lines: list[str]) -> tuple[dict[str, dict[int, int]], list[int], list[str]]:
    """Return what was saved, as n by thread and sequence, which tokens were given out, and which threads purged."""
    saved: dict[str, dict[int, int]] = {}
    tokens, purged = [], []
    for line in lines:
        kind, *words = line.split()
        if kind == "saved":
            saved.setdefault(words[0], {})[int(words[1])] = int(words[2])
        elif kind == "token":
            tokens.append(int(words[0]))
        else:
            purged.append(words[0])
    return saved, tokens, purged


async def check(folder: Path, lines: list[str]) -> None:
    """Everything acknowledged is there, nothing is half there, and nothing is left that nobody can reach."""
    saved, tokens, purged = acknowledged(lines)
    async with RowStore(FolderBackend(folder)) as store:
        for thread, rows in saved.items():
            entries = (await store.get_log(thread, limit=1000)).entries
            stored = {entry.sequence: entry.checkpoint.frozen_state["n"] for entry in entries}
            assert rows == {sequence: stored.get(sequence) for sequence in rows}, thread
            assert len(rows) <= len(stored) <= len(rows) + KILLS
        for thread in purged:
            assert await store.load(thread) is None
        threads = (await store.list_threads()).threads
        for summary in threads:
            entry = await store.load(summary.thread_id)
            assert entry is not None
            assert (summary.sequence, summary.state) == (entry.sequence, entry.checkpoint.state)
        assert {ThreadState.RUNNING, ThreadState.COMPLETED} >= {summary.state for summary in threads}
    assert sorted(set(tokens)) == sorted(tokens), "a token was given out twice"
    assert [] == list((folder / "trash").iterdir())
    assert all((thread / "head").exists() for thread in (folder / "threads").iterdir())


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """A process is killed 25 times, at a random moment after a random number of lines; others go on where it was."""
    rng = random.Random(7)
    lines: list[str] = []
    in_order: list[int] = []
    for kill in range(KILLS):
        # The same threads each time: what one process left half done, the next one meets.
        process = start(tmp_path / "store", 1, 10_000)
        assert process.stdout is not None
        mine = [process.stdout.readline() for _ in range(rng.randrange(1, 12))]
        try:
            process.wait(timeout=rng.uniform(0, 0.02))
        except subprocess.TimeoutExpired:
            process.kill()
        mine += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        assert -9 == process.returncode
        lines += [line for line in mine if line.endswith("\n")]  # the last one may be cut
        in_order += acknowledged(lines)[1][len(in_order) :]
        if kill % 5 == 4:
            asyncio.run(check(tmp_path / "store", lines))

    assert sorted(in_order) == in_order
    assert len(lines) > KILLS


def test_many_processes_share_a_folder(tmp_path: Path) -> None:
    """Eight that set the folder up, save, lease and purge at once lose nothing, and give out each token once."""
    processes = [start(tmp_path / "store", seed, 12) for seed in range(PROCESSES)]
    lines: list[str] = []
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert 0 == process.returncode
        lines += out.splitlines()

    assert PROCESSES * 12 == sum(line.startswith("saved") for line in lines)
    asyncio.run(check(tmp_path / "store", lines))


def test_two_processes_append_to_one_thread_without_gaps(tmp_path: Path) -> None:
    """Each save has a sequence of its own, whoever made it."""
    processes = [start(tmp_path / "store", 5, 20) for _ in range(2)]
    lines = [line for process in processes for line in process.communicate(timeout=120)[0].splitlines()]
    places = [tuple(line.split()[1:3]) for line in lines if line.startswith("saved")]

    assert 40 == len(places) == len(set(places))
    for thread in {thread for thread, _ in places}:
        mine = sorted(int(sequence) for name, sequence in places if name == thread)
        assert list(range(len(mine))) == mine


@pytest.mark.parametrize("leftover", ["a thread without a head", "an erased thread"])
def test_what_a_killed_process_left_is_deleted_when_a_store_opens(tmp_path: Path, leftover: str) -> None:
    async def main() -> list[str]:
        root = tmp_path / "store"
        async with RowStore(FolderBackend(root)):
            pass
        folder = root / ("trash/0011223344556677" if leftover == "an erased thread" else "threads/74")
        folder.mkdir()
        (folder / "0.row").write_bytes(b"half")
        async with RowStore(FolderBackend(root)):
            backend = FolderBackend(root)
            assert [] == list(await backend.list_heads(HeadQuery()))
            assert await backend.read_head("t") is None
        return [path.name for path in root.glob("t*/*")]

    assert [] == asyncio.run(main())
