"""`strata copy` writes to its target only, tells what it did, and can be repeated after anything."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from strata_core import FileSystemBlobStore, Offload, open_store
from strata_core.records import Checkpoint, CheckpointStatus

AT = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
WAITS = Checkpoint("t1", CheckpointStatus.INTERRUPTED, {"step": 1}, AT, "Draft", "Review")


def threads(count: int = 3) -> list[Checkpoint]:
    """Return the checkpoints of some threads: every second one waits, the others are completed."""
    found = []
    for n in range(count):
        metadata = {"tenant": f"{n % 2}"}
        first = attrs.evolve(WAITS, thread_id=f"t{n}", status=CheckpointStatus.RUNNING, metadata=metadata)
        last = CheckpointStatus.COMPLETED if n % 2 else CheckpointStatus.INTERRUPTED
        found += [first, attrs.evolve(first, status=last)]
    return found


def fill(path: Path, checkpoints: list[Checkpoint]) -> None:
    async def main() -> None:
        async with open_store(path) as store:
            for checkpoint in checkpoints:
                await store.save(checkpoint)

    asyncio.run(main())


def logs(path: Path) -> dict[str, list[Checkpoint]]:
    async def main() -> dict[str, list[Checkpoint]]:
        async with open_store(path, read_only=True) as store:
            names = [thread.thread_id for thread in (await store.list_threads()).threads]
            return {
                name: [entry.checkpoint for entry in (await store.get_log(name, limit=1000)).entries]
                for name in sorted(names)
            }

    return asyncio.run(main())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    fill(tmp_path / "old.db", threads())
    return tmp_path / "old.db"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


def test_all_threads_come_over(strata, old, new):
    """With their whole logs; those that can still go on in the source are named with what to do."""
    before = old.read_bytes()
    done = strata("copy", "--from", str(old), "--to", str(new))

    assert logs(old) == logs(new)
    assert before == old.read_bytes()
    assert "t1 copied: 2 checkpoints, 2 written, sha256:" in done.stdout
    assert done.stdout.endswith(
        "3 threads are in the target, 0 were refused\n"
        "these can still go on in the source: end them there before their copies are answered\n  t2\n  t0\n"
    )
    assert ["t2", "t1", "t0"] == [line.partition(" ")[0] for line in done.stdout.splitlines()[:3]]


def test_one_is_told_as_one(strata, tmp_path, new):
    """One thread, one checkpoint, one that was refused."""
    fill(tmp_path / "old.db", [WAITS])
    done = strata("copy", "--from", str(tmp_path / "old.db"), "--to", str(new))
    fill(tmp_path / "other.db", [attrs.evolve(WAITS, suspended_node="Other")])
    refused = strata("copy", "--from", str(tmp_path / "other.db"), "--to", str(new), code=1)

    assert "t1 copied: 1 checkpoint, 1 written, sha256:" in done.stdout
    assert "\n1 thread is in the target, 0 were refused\n" in done.stdout
    assert "0 threads are in the target, 1 was refused\n" == refused.stdout


def test_a_thread_that_is_not_there_is_told_by_its_name(strata, old, new):
    """Once, and not as the argument of a function."""
    error = strata("copy", "--from", str(old), "--to", str(new), "--thread", "nobody", code=1).stderr

    assert "strata: nobody was not copied: the source has no thread 'nobody'\n" == error


def test_a_thread_or_a_filter_chooses(strata, old, new):
    """By ID, or by what a listing can be filtered by."""
    strata("copy", "--from", str(old), "--to", str(new), "--thread", "t1")
    one = list(logs(new))
    strata("copy", "--from", str(old), "--to", str(new), "--status", "interrupted", "--meta", "tenant=0")

    assert ["t1"] == one
    assert ["t0", "t1", "t2"] == list(logs(new))


def test_a_thread_of_another_log_is_refused_and_the_others_copied(strata, old, new):
    """Exit code 1, and a line for it on stderr."""
    fill(new, [WAITS])
    done = strata("copy", "--from", str(old), "--to", str(new), code=1)

    assert [WAITS] == logs(new)["t1"]
    assert {"t0", "t1", "t2"} == set(logs(new))
    assert "strata: t1 was not copied: thread 't1' exists in the target with another log" in done.stderr


def test_the_json_tells_each_thread(strata, old, new):
    """The shape that README.md documents."""
    fill(new, [WAITS])
    found = json.loads(strata("copy", "--from", str(old), "--to", str(new), "--json", code=1).stdout)
    by_id = {one["thread_id"]: one for one in found["copied"]}

    assert {"thread_id": "t1", "error": found["refused"][0]["error"]} == found["refused"][0]
    assert {"thread_id", "outcome", "checkpoints", "written", "digest", "state", "can_go_on"} == set(by_id["t0"])
    assert ("copied", 2, 2, "interrupted", True) == tuple(
        by_id["t0"][key] for key in ("outcome", "checkpoints", "written", "state", "can_go_on")
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "old.db"), "--to"),
        (("--from", "no.db", "--to", "new.db"), "'--from': 'no.db' does not exist"),
        (("--from", "old.db", "--to", "old.db"), "the same store"),
        (("--from", "memory://x", "--to", "new.db"), "'--from': memory:// is private"),
        (("--from", "old.db", "--to", "memory://x"), "'--to': memory:// is private"),
        (("--from", "old.db", "--to", "nosuch://x"), "nosuch"),
        (("--from", "old.db", "--to", "new.db", "--from-blobs", "no"), "'--from-blobs': 'no' is not a folder"),
        (("--from", "old.db", "--to", "new.db", "--thread", "t1", "--status", "failed"), "does not go with filters"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_written(strata, old, new, monkeypatch, arguments, said):
    """Exit code 2, the option is named, and no file is made."""
    monkeypatch.chdir(old.parent)
    done = strata("copy", *arguments, code=2)

    assert said in done.stderr
    assert not new.exists()


@pytest.mark.parametrize("spelling", ["./old.db", "../{name}/old.db", "{folder}/old.db", "link.db"])
def test_another_spelling_of_the_source_is_no_target(strata, old, monkeypatch, spelling):
    monkeypatch.chdir(old.parent)
    (old.parent / "link.db").symlink_to("old.db")
    before = logs(old)
    done = strata("copy", "--from", "old.db", "--to", spelling.format(name=old.parent.name, folder=old.parent), code=2)

    assert "'--to': it is the same store as '--from'" in done.stderr
    assert before == logs(old)


def test_a_url_of_the_source_is_no_target(strata, old):
    """No thread is told to be copied, so nobody ends one here because its copy goes on."""
    before = logs(old)
    done = strata("copy", "--from", old, "--to", f"sqlite:///{old}", code=1)

    assert 3 == done.stderr.count("is the source itself")
    assert "can still go on" not in done.stdout
    assert before == logs(old)


def test_blobs_in_folders_come_over(strata, tmp_path, new):
    """From a folder of blobs to another one."""
    large = attrs.evolve(WAITS, thread_id="t", frozen_state={"text": "x" * 70_000})

    async def main() -> None:
        async with open_store(tmp_path / "old.db", offload=Offload(blobs=FileSystemBlobStore(tmp_path / "a"))) as store:
            await store.save(large)

    asyncio.run(main())
    folders = ("--from-blobs", str(tmp_path / "a"), "--to-blobs", str(tmp_path / "b"))
    strata("copy", "--from", str(tmp_path / "old.db"), "--to", str(new), *folders)
    shown = strata("thread", "inspect", "t", "--storage", str(new), "--blobs", str(tmp_path / "b"), "--json")

    assert {"text": "x" * 70_000} == json.loads(shown.stdout)["checkpoint"]["frozen_state"]
    assert 1 == sum(path.is_file() for path in (tmp_path / "b").rglob("*"))


def test_a_copy_that_is_killed_is_finished_by_the_next_one(tmp_path: Path, new: Path) -> None:
    """Killed at any moment, the target holds beginnings of logs; once their leases are over, a copy finishes them."""
    running = attrs.evolve(WAITS, thread_id="t", status=CheckpointStatus.RUNNING)
    log = [attrs.evolve(running, frozen_state={"n": n}) for n in range(400)]
    fill(tmp_path / "old.db", [*log, *threads(2)])
    process = subprocess.Popen(
        [sys.executable, "-m", "strata_host", "copy", "--from", str(tmp_path / "old.db"), "--to", str(new)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for(new.with_name("new.db-wal"), 200_000, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    begun = logs(new)
    for name, found in begun.items():
        whole = logs(tmp_path / "old.db")[name]

        assert found == whole[: len(found)]
    left = subprocess.run(
        [sys.executable, "-c", FINISH, str(tmp_path / "old.db"), str(new)], capture_output=True, text=True, check=True
    )

    assert len(begun.get("t", ())) < 400, "it was killed too late"
    assert logs(tmp_path / "old.db") == logs(new)
    assert {"t", "t0", "t1"} == set(json.loads(left.stdout))


FINISH = """
import asyncio, json, sys
from datetime import timedelta
from strata_core.copying import copy_threads
from strata_core.opening import open_store
from strata_core.clock import SystemClock

class Later(SystemClock):
    "The lease of the killed one is over."
    def now(self):
        return super().now() + timedelta(minutes=2)

async def main():
    async with open_store(sys.argv[1], read_only=True) as old, open_store(sys.argv[2], clock=Later()) as new:
        print(json.dumps([one.thread_id async for one in copy_threads(old, new, ["t", "t0", "t1"])]))

asyncio.run(main())
"""


def _wait_for(path: Path, size: int, process: subprocess.Popen[Any]) -> None:
    while not path.exists() or path.stat().st_size < size:
        assert process.poll() is None, "it ended before it could be killed"


def test_a_thread_that_cannot_be_read_keeps_no_other_back(strata, old, new):
    """It is refused, although it fails each page of the listing that it is on."""
    with closing(sqlite3.connect(old)) as database, database:
        (thread,) = database.execute("SELECT thread FROM strata_heads WHERE thread_id = 't1'").fetchone()
        database.execute("UPDATE strata_rows SET envelope = '{' WHERE thread = ?", (thread,))
    done = strata("copy", "--from", str(old), "--to", str(new), code=1)

    assert ["t0", "t2"] == list(logs(new))
    assert "strata: t1 was not copied: checkpoint 't1' #" in done.stderr
    assert "2 threads are in the target, 1 was refused" in done.stdout
