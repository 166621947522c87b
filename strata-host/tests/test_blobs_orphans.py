"""`strata blobs orphans`."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from strata_core import Offload
from strata_core.blobs import FileSystemBlobStore, thread_folder

BIG = "x" * 100
LONG = "y" * 200


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def orphans(look, shelf, folder, checkpoint):
    """Look at a store of two threads, and at blobs of theirs and of others; `put` adds one, put a while ago."""

    async def saved(store):
        for thread in ("order-1", LONG):
            await store.save(checkpoint(thread, frozen_state={"big": BIG}))

    blobs = FileSystemBlobStore(folder)
    shelf.write(saved, offload=Offload(threshold=50, blobs=blobs))

    def put(thread: str, content: bytes, age: int = 0) -> str:
        digest = digest_of(content)
        asyncio.run(blobs.put(thread, digest, content))
        file = folder / thread_folder(thread) / digest.removeprefix("sha256:")
        when = file.stat().st_mtime - age
        os.utime(file, (when, when))
        return digest

    def run(*args: str, **options):
        return look("blobs", "orphans", "--blobs", str(folder), *args, **options)

    run.put = put
    return run


def test_what_checkpoints_refer_to_is_no_orphan(orphans):
    assert "0 of 2 blobs in 2 folders: no checkpoint refers to them\n" == orphans("--older-than", "0s").stdout


def test_blobs_of_no_thread_and_of_no_checkpoint_are_shown_with_the_reason(orphans):
    """A thread whose folder has a hashed name is found by its ID; one that is not in the store has only that name."""
    for thread, content in (
        ("order-1", b'"1"'),
        ("order-1", b'"22"'),
        ("gone", b'"3"'),
        (LONG, b'"4"'),
        ("z" * 200, b'"5"'),
    ):
        orphans.put(thread, content, age=86_500)
    lines = orphans().stdout.splitlines()

    assert ["THREAD", "WHY", "BLOBS", "BYTES", "NEWEST"] == lines[0].split()
    assert {
        ("order-1", "no checkpoint refers to them", "2", "7"),
        ("gone", "the store has no such thread", "1", "3"),
        (LONG, "no checkpoint refers to them", "1", "3"),
        (thread_folder("z" * 200), "the store has no such thread", "1", "3"),
    } == {tuple(part.strip() for part in line.split("  ") if part)[:4] for line in lines[1:-1]}
    assert "5 of 7 blobs in 4 folders: no checkpoint refers to them" == lines[-1]


def test_what_is_too_young_is_not_called_an_orphan(orphans):
    """Its checkpoint may be on its way."""
    orphans.put("gone", b'"1"', age=3500)

    assert orphans("--older-than", "1h").stdout.startswith("0 of 3 blobs")
    assert "gone" in orphans("--older-than", "58m").stdout
    assert orphans("--older-than", "1d").stdout.startswith("0 of 3 blobs")


def test_nothing_is_changed(orphans, folder):
    orphans.put("gone", b'"1"', age=90_000)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    orphans()

    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("age", ["1", "h", "1.5h", "-1h", "1w", ""])
def test_an_age_that_is_none_is_wrong_usage(orphans, age):
    assert "is not a number with a unit, such as 90m, 24h or 7d" in orphans(f"--older-than={age}", code=2).stderr


def test_without_a_blob_store_the_option_and_the_variable_are_named(look):
    assert look("blobs", "orphans", code=2).stderr.startswith(
        "strata: missing option '--blobs' (env var: 'STRATA_BLOBS')"
    )


def test_a_folder_that_does_not_exist_is_wrong_usage_and_is_not_created(look, folder):
    assert "is not a folder" in look("blobs", "orphans", "--blobs", str(folder), code=2).stderr
    assert not folder.exists()


def test_a_scheme_that_nobody_serves_is_wrong_usage(look):
    error = look("blobs", "orphans", "--blobs", "nosuch:blobs", code=2).stderr

    assert "no plugin offers a blob store for 'nosuch' URLs" in error


def test_an_age_beyond_any_calendar_is_wrong_usage(strata):
    done = strata("blobs", "orphans", "--storage", "x", "--blobs", "y", "--older-than", "999999d", code=2)

    assert "'999999d' is more than 36500 days" in done.stderr
