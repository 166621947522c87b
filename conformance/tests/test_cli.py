"""The command: its verdicts, its exit codes, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from strata_conformance import BlobStoreTests, RowBackendTests, promises_of
from strata_conformance._cli import main
from strata_conformance._scope import MARK
from strata_conformance._verdict import Judge, Outcome, Promised, line, unproven
from strata_core import open_store
from strata_core.records import Checkpoint, CheckpointStatus

TARGETS = """
import itertools
from contextlib import asynccontextmanager

from strata_core.blobs import FileSystemBlobStore
from strata_core.options import Setup
from strata_core.store import RowStore
from strata_sqlite import SqliteBackend


def rows(path, clock):
    return SqliteBackend(path, clock=clock)


class Skips(SqliteBackend):
    async def commit(self, batch):
        done = await super().commit(batch)
        for outcome in done:
            outcome.sequence += 1
        return done


def broken(path, clock):
    return Skips(path, clock=clock)


class Creates(SqliteBackend):
    async def open(self, *, read_only, setup):
        await super().open(read_only=False, setup=Setup.AUTO)


def creates(path, clock):
    return Creates(path, clock=clock)


def blobs(path):
    return FileSystemBlobStore(path)


def store(path, clock, **options):
    return RowStore(SqliteBackend(path, clock=clock), **options)


def nothing(path):
    return 5


def no_path():
    return None


def fails(path):
    raise OSError("out of order")


number = 5
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to call the command in, beside a module of targets."""
    (tmp_path / "my_targets.py").write_text(TARGETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_targets", raising=False)
    return tmp_path


def fill(path: Path) -> None:
    """Put a thread of somebody into a database."""

    async def save() -> None:
        async with open_store(path) as store:
            await store.save(
                Checkpoint("order-1", CheckpointStatus.COMPLETED, {"n": 1}, datetime(2020, 1, 1, tzinfo=UTC))
            )

    asyncio.run(save())


async def threads(path: Path) -> list[tuple[str, int]]:
    async with open_store(path, read_only=True) as store:
        return [(thread.thread_id, thread.sequence) for thread in (await store.list_threads()).threads]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    program = [sys.executable, "-m", "strata_conformance", *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)


def test_a_good_store_conforms(here: Path) -> None:
    """Exit code 0, a line of verdicts, a report promise by promise, a JUnit report with the promise of each test.

    A blob store, whose promises are few: `.ci/wheels.py` lets the command judge a store whole.
    """
    done = command("my_targets:blobs", "--json", "report.json", "--junit", "report.xml")
    report = json.loads((here / "report.json").read_text())
    (store,) = report["stores"].values()
    cases = list(ET.parse(here / "report.xml").iter("testcase"))
    properties = {p.get("name"): p.get("value") for p in cases[0].iter("property")}

    assert 0 == done.returncode, done.stdout
    assert "my_targets:blobs: conforms (contract 1)" == done.stdout.splitlines()[-1]
    assert "required conforms " in done.stdout.splitlines()[-2]
    assert 1 == report["contract"]
    assert {promise.id for promise in promises_of(BlobStoreTests)} == set(store["promises"])
    assert {"kept"} == {promise["outcome"] for promise in store["promises"].values()}
    assert {"store": "my_targets:blobs", "contract": "1"}.items() <= properties.items()
    assert properties["promise"] in store["promises"]


def test_a_wrong_store_does_not(here: Path) -> None:
    """Exit code 1, and the promise, both values and the calls of each failure."""
    done = command("my_targets:broken", "--", "-k", "counted_from_zero")

    assert 1 == done.returncode, done.stderr
    assert "my_targets:broken: does not conform (contract 1)" == done.stdout.splitlines()[-1]
    assert "assert [0, 0, 1, 1, 2, 2] == [1, 1, 2, 2, 3, 3]" in done.stdout
    assert "save-1: A save returns the sequence of the checkpoint" in done.stdout
    assert "Last calls of my_targets:broken" in done.stdout
    assert "#1 save(checkpoint=Checkpoint(thread_id='a'" in done.stdout
    assert "_target_tests.py::TestRows::test_a_save_returns_the_position" in done.stdout


def test_a_store_that_creates_whatever_it_is_told_does_not_conform(here: Path) -> None:
    """What must not be created is looked for at the path that the function was given."""
    done = command("my_targets:creates", "--json", "report.json", "--", "-k", "creates_nothing or waits_to_be")
    (store,) = json.loads((here / "report.json").read_text())["stores"].values()

    assert 1 == done.returncode, done.stderr
    assert {"setup-1", "setup-3", "row-17"} == {
        identity for identity, promise in store["promises"].items() if promise["outcome"] == "broken"
    }


def test_what_opening_creates_is_tested_beside_the_file_of_a_url(here: Path) -> None:
    """The storage of the URL is there already, so the tests take a place of their own beside it, and clear it away."""
    done = command("sqlite:///new.db", "--json", "report.json", "--", "-k", "creates_nothing or waits_to_be")
    (store,) = json.loads((here / "report.json").read_text())["stores"].values()

    assert 2 == done.returncode, done.stderr
    assert {"setup-1", "setup-3", "row-17"} == {
        identity for identity, promise in store["promises"].items() if promise["outcome"] == "kept"
    }
    assert ["my_targets.py", "report.json"] == sorted(
        path.name for path in here.iterdir() if path.name != "__pycache__"
    )


def test_a_part_of_the_tests_is_no_verdict(here: Path) -> None:
    """Whatever was left out could have failed: exit code 2."""
    done = command("my_targets:rows", "--", "-k", "counted_from_zero")

    assert 2 == done.returncode
    assert "my_targets:rows: not judged whole (contract 1)" == done.stdout.splitlines()[-1]
    assert "strata-conformance: a part of the tests was left out" in done.stderr


def test_a_function_may_give_a_whole_store(here: Path) -> None:
    """It is held to the promises of the ports, and of a part of them each is told as kept, not run or not declared."""
    chosen = "counted_from_zero or deltas or share_one_log"
    done = command("my_targets:store", "--json", "report.json", "--", "-k", chosen)
    (store,) = json.loads((here / "report.json").read_text())["stores"].values()

    assert 2 == done.returncode, done.stdout
    assert {"kept", "not run", "inapplicable"} == {promise["outcome"] for promise in store["promises"].values()}
    assert "kept" == store["promises"]["process-1"]["outcome"]


def test_a_file_that_was_not_there_is_gone_afterwards(here: Path) -> None:
    """A database that the run made is removed, with its companions and nothing else."""
    (here / "y.db-old").write_text("mine")
    (here / "x.db-old").write_text("mine")
    done = command("sqlite:///x.db", "--", "-k", "counted_from_zero")

    assert "sqlite:///x.db: not judged whole (contract 1)" == done.stdout.splitlines()[-1], done.stderr
    assert ["my_targets.py", "x.db-old", "y.db-old"] == sorted(p.name for p in here.iterdir() if p.is_file())


def test_an_empty_database_is_used_and_left_empty(here: Path) -> None:
    """A file that was there stays, without a thread of the run."""

    async def make() -> None:
        async with open_store(here / "x.db"):
            pass

    asyncio.run(make())
    done = command("x.db", "--", "-k", "counted_from_zero or purge_takes")

    assert 2 == done.returncode, done.stdout
    assert [] == asyncio.run(threads(here / "x.db"))


def test_a_database_with_threads_of_others_is_refused_untouched(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, the thread is named, and not a byte of the file has changed."""
    fill(here / "x.db")
    before = {p.name: p.read_bytes() for p in here.iterdir() if p.is_file()}
    code = main(["sqlite:///x.db"])

    assert 2 == code
    assert "holds threads that are not of this run, such as 'order-1'" in capsys.readouterr().err
    assert before == {p.name: p.read_bytes() for p in here.iterdir() if p.is_file()}


def test_threads_of_others_stay_as_they_are(here: Path) -> None:
    """With --allow-existing the tests run beside them, purges and listings too, and leave nothing."""
    fill(here / "x.db")
    done = command("sqlite:///x.db", "--allow-existing", "--", "-k", "purge_takes or empty_store or fenced_off")

    assert 2 == done.returncode, done.stdout
    assert "failed" not in done.stdout
    assert [("order-1", 0)] == asyncio.run(threads(here / "x.db"))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nosuch://x", "nosuch"),
        ("nosuch://user:secret@host/x", "nosuch"),
        ("sqlite://host/x.db", "host"),
        ("no_such_module:thing", "cannot be imported from here"),
        ("my_targets:thing", "cannot be imported from here"),
        ("my_targets", "my_targets is a module: name the function in it too, as my_targets:function"),
        ("my_targets.py", "my_targets.py is a module: name the function in it too, as my_targets:function"),
        ("my_targets:number", "is no function"),
        ("my_targets:no_path", "must take an argument named 'path'"),
        ("my_targets:nothing", "gives int"),
        ("my_targets:fails", "out of order"),
    ],
)
def test_what_cannot_be_tested_is_told(here: Path, capsys: pytest.CaptureFixture[str], target: str, said: str) -> None:
    """Exit code 2 and one line on standard error, without passwords."""
    code = main([target])
    error = capsys.readouterr().err

    assert 2 == code
    assert said in error
    assert "secret" not in error
    assert "Traceback" not in error
    assert ["my_targets.py"] == [path.name for path in here.iterdir() if path.is_file()]


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(
    here: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    code = main(["my_targets:rows", option, "nowhere/report"])

    assert 2 == code
    assert "there is no folder" in capsys.readouterr().err


def test_what_is_unproven_is_named_with_the_reason() -> None:
    """A verdict counts them; whoever reads it must be able to tell what they are."""
    judge = Judge()
    for identity, outcome, reason in (
        ("save-1", Outcome.KEPT, ""),
        ("setup-1", Outcome.UNPROVEN, "no blank place given"),
        ("process-1", Outcome.UNPROVEN, ""),
    ):
        judge.add(Promised("mine", identity, "It holds."), outcome, reason)
    (store,) = judge.report()["stores"].values()

    assert ["unproven: setup-1 (no blank place given)", "unproven: process-1 (skipped)"] == list(unproven(store))


def test_a_capability_that_is_neither_declared_nor_refused_is_told_as_such() -> None:
    """Where a store need not even refuse, there is nothing to judge."""
    judge = Judge()
    judge.add(Promised("mine", "save-1", "It holds."), Outcome.KEPT)
    judge.add(Promised("mine", "process-1", "It holds.", ("multi_process",)), Outcome.INAPPLICABLE)
    (store,) = judge.report()["stores"].values()

    assert "required conforms 1/1 | multi_process not declared" == line(store)


def test_without_a_target_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main([])

    assert 2 == caught.value.code
    assert "TARGET is missing" in capsys.readouterr().err


def test_the_promises_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its ID, its sentence and what it needs."""
    code = main(["--list"])
    lines = capsys.readouterr().out.splitlines()

    assert 0 == code
    assert "CheckpointStoreTests" == lines[0]
    assert {promise.id for promise in promises_of(RowBackendTests)} < {line.strip().partition(":")[0] for line in lines}


def test_the_settings_of_the_project_around_do_not_matter(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its pytest.ini nor its conftest.py nor its environment changes what is run."""
    (here / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (here / "conftest.py").write_text("raise SystemExit(9)\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = command("memory://", "--", "-k", "counted_from_zero")

    assert "memory://: not judged whole (contract 1)" == done.stdout.splitlines()[-1], done.stdout + done.stderr


def test_what_hypothesis_keeps_goes_with_the_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is not the one that the command is called in."""
    folders: list[Path] = []

    def tested(command: list[str], *, env: dict[str, str], check: bool) -> subprocess.CompletedProcess[str]:
        folders.append(Path(env["HYPOTHESIS_STORAGE_DIRECTORY"]))
        return subprocess.CompletedProcess(command, 1 if check or not folders[0].is_dir() else 5)

    monkeypatch.setattr(subprocess, "run", tested)
    code = main(["memory://"])

    assert 2 == code
    assert [False] == [folder.exists() or folder.is_relative_to(here) for folder in folders]


def test_the_threads_of_a_run_can_be_recognised() -> None:
    """Whoever finds what a killed run left knows where it came from."""
    assert "strata-test-" == MARK
