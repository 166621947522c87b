"""The demo is the first thing that a newcomer runs."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from strata_core.records import CheckpointStatus

DEMO = Path(__file__).parents[1] / "demos" / "wire_transfer" / "main.py"


@pytest.fixture
def demo():
    def run(*args, code=0):
        path = os.pathsep.join([str(Path(__file__).parent / "plugins"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, DEMO, *args],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

        assert code == done.returncode, done.stdout + done.stderr
        return done

    return run


def test_it_runs_on_sqlite_checks_itself_and_names_no_folder_of_this_machine(demo, tmp_path):
    shown = demo("--dir", str(tmp_path / "new folder")).stdout

    assert shown.endswith("Every step came out as expected.\n")
    assert "wire-acme: sent (TX-0001), 4150.25 EUR" in shown
    assert str(tmp_path) not in shown
    assert str(DEMO.parent) not in shown


def test_it_runs_on_any_other_store_by_its_url(demo, shelf):
    assert demo("--storage", shelf.url).stdout.endswith("Every step came out as expected.\n")


def test_it_does_not_mix_with_an_earlier_run(demo, tmp_path):
    (tmp_path / "bank.jsonl").touch()

    assert "earlier run" in demo("--dir", str(tmp_path), code=2).stderr


def test_it_leaves_a_store_alone_that_holds_threads(demo, shelf, checkpoint):
    """It purges what is finished, and must not take what is not its own."""
    shelf.save(checkpoint("order-1", status=CheckpointStatus.COMPLETED, next_node=None))
    before = shelf.path.read_bytes()

    assert "refused: the store holds threads" in demo("--storage", shelf.url, code=1).stdout
    assert before == shelf.path.read_bytes()


def test_it_fails_when_a_step_does_something_else(demo, shelf):
    """A transfer that somebody holds cannot be prepared."""

    async def hold(store):
        await store.acquire_lease("wire-acme", owner="mallory", ttl=timedelta(days=1))

    shelf.write(hold)
    done = demo("--storage", shelf.url, code=1)

    assert "The demo failed: exit code 1 instead of 0" in done.stderr
    assert "expected" not in done.stdout
