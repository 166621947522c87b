"""The README documents the shapes of `--json`; this holds it to them, and them to it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOB = '"' + "x" * 100 + '"'
DIGEST = hashlib.sha256(BLOB.encode()).hexdigest()
COMMANDS = {
    "thread list": [],
    "thread inspect": ["report-1"],
    "checkpoint log": ["report-1"],
    "checkpoint diff": ["report-1", "--seq-a", "0", "--seq-b", "1"],
    "checkpoint replay": ["report-1", "--sequence", "1"],
    "blobs orphans": ["--blobs", "{blobs}", "--older-than", "0s"],
    "plugins": [],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_documented_keys_are_the_written_ones(shelf, look_json, checkpoint, command, tmp_path):
    folder = tmp_path / "blobs" / b"gone".hex()
    folder.mkdir(parents=True)
    (folder / DIGEST).write_text(BLOB)
    shelf.save(checkpoint(), checkpoint(frozen_state={"step": 2}))
    (documented,) = re.findall(rf"^\| `{command}` \| `({{.*)` \|$", README, re.MULTILINE)
    document = look_json(*command.split(), *(it.format(blobs=folder.parent) for it in COMMANDS[command]))
    written = set(document)
    for key, value in document.items():
        if isinstance(value, list):
            written |= set(value[0])
        elif key == "changed":
            written |= set(value["step"])

    assert written == set(re.findall(r'"(\w+)"', documented))


def test_every_option_and_status_is_documented(strata):
    shown = "".join(strata(*command.split(), "--help").stdout for command in COMMANDS)
    options = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}

    assert options == {option for option in options if f"`{option}" in README or f" {option} " in README}
