"""The embedded default: a path is enough.

The command knows nothing of SQLite; its plugin is installed beside it, as a user does.
"""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from strata_core.opening import open_store
from strata_core.options import Deltas, Offload
from strata_core.records import CheckpointStatus

NODES = [None, "Gather", "Analyse", "Draft", "Review", None]
EVIDENCE = "x" * 100_000
HASH = hashlib.sha256(f'"{EVIDENCE}"'.encode()).hexdigest()


@pytest.fixture
def reports(tmp_path, monkeypatch, checkpoint):
    """A folder, now the current one, with a database and its blobs beside it."""
    monkeypatch.chdir(tmp_path)

    async def fill():
        async with open_store("reports.sqlite", deltas=Deltas(), offload=Offload(blobs="blobs")) as store:
            for step in range(5):
                await store.save(
                    checkpoint(
                        status=CheckpointStatus.RUNNING if step < 4 else CheckpointStatus.COMPLETED,
                        frozen_state={"evidence": EVIDENCE if step else "", "step": step},
                        suspended_node=NODES[step],
                        next_node=NODES[step + 1],
                    )
                )

    asyncio.run(fill())
    return tmp_path


def _content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("storage", ["reports.sqlite", "./reports.sqlite", "sqlite:///reports.sqlite"])
@pytest.mark.parametrize("blobs", ["blobs", "file:blobs"])
def test_a_log_is_read_from_a_path_or_a_url(strata, reports, storage, blobs):
    assert [
        "#0    [running] node=- -> Gather at=2026-10-30T14:49:52Z",
        "#1    [running] node=Gather -> Analyse at=2026-10-30T14:49:52Z",
        "#2    [running] node=Analyse -> Draft at=2026-10-30T14:49:52Z",
        "#3    [running] node=Draft -> Review at=2026-10-30T14:49:52Z",
        "#4    [completed] node=Review -> - at=2026-10-30T14:49:52Z",
    ] == strata("checkpoint", "log", "report-1", "--storage", storage, "--blobs", blobs).stdout.splitlines()


def test_without_the_folder_the_missing_blob_is_named(strata, reports):
    result = strata("checkpoint", "log", "report-1", "--storage", "reports.sqlite", code=1)

    assert result.stdout == ""
    assert (
        f"strata: query failed: checkpoint 'report-1' #1 refers to blob sha256:{HASH} at 'evidence', "
        "which the blob store doesn't have\n"
    ) == result.stderr


def test_reading_changes_no_byte_and_creates_no_file(strata, reports):
    before = _content(reports)
    for command in (
        ["thread", "list"],
        ["thread", "inspect", "report-1"],
        ["checkpoint", "log", "report-1"],
        ["checkpoint", "diff", "report-1", "--seq-a", "0", "--seq-b", "4"],
        ["checkpoint", "replay", "report-1", "--sequence", "2"],
    ):
        strata(*command, "--storage", "reports.sqlite", "--blobs", "blobs")

    assert before == _content(reports)


def test_a_url_of_a_file_that_does_not_exist_is_wrong_usage_and_creates_none(strata, tmp_path):
    error = strata("thread", "list", "--storage", f"sqlite:///{tmp_path}/mistyped.db", code=2).stderr

    assert "'--storage'" in error
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_is_no_database_is_told_in_one_line(strata, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, this is no database at all." * 100)
    error = strata("thread", "list", "--storage", str(path), code=1).stderr

    assert error.startswith("strata: cannot open the storage: ")
    assert error.count("\n") == 1
