"""The user guide: its blocks are one program that prints what the page says, and its tables are whole."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

import pytest

from strata_core import CancelReason, CheckpointPolicy, CheckpointStatus, FailureCode, ThreadState

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "strata-core"
GUIDE = (CORE / "GUIDE.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_blocks_are_one_program_that_prints_what_the_guide_says(tmp_path: Path) -> None:
    program = "\n\n".join(code for language, code in BLOCKS if language == "python")
    expected = "".join(code for language, code in BLOCKS if language == "text")
    (tmp_path / "orders.py").write_text(program, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "error", "orders.py"], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )

    assert (0, expected) == (done.returncode, done.stdout), done.stderr
    assert 1 == len([path for path in (tmp_path / "evidence").rglob("*") if path.is_file()])


def test_every_block_is_python_or_what_it_prints() -> None:
    assert {"python", "text"} == {language for language, _ in BLOCKS}


def test_the_table_of_the_policies_names_every_one() -> None:
    for policy in CheckpointPolicy:
        assert re.search(rf"^\| \| .*`{policy.name}`", GUIDE, re.MULTILINE)


@pytest.mark.parametrize(
    "members",
    [FailureCode, CancelReason, CheckpointPolicy, CheckpointStatus, ThreadState],
    ids=lambda members: members.__name__,
)
def test_help_shows_every_member(members: type[StrEnum]) -> None:
    assert [member.name for member in members] == re.findall(r"^ +([A-Z_]+): ", members.__doc__ or "", re.MULTILINE)


def test_every_link_leads_somewhere() -> None:
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", GUIDE, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", GUIDE):
        path, _, anchor = target.partition("#")
        if path:
            assert (CORE / path).is_file(), target
        else:
            assert anchor in headings, target
