"""The page CODES.md: it has every code and error, nothing else, and a way out of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strata_core import errors
from strata_core.graph import CancelReason, FailureCode, ProblemCode

CORE = Path(__file__).parents[1]
PAGE = (CORE / "CODES.md").read_text(encoding="utf-8")
WANTED = {
    "FailureCode": [code.name for code in FailureCode],
    "CancelReason": [reason.name for reason in CancelReason],
    "ProblemCode": [code.value for code in ProblemCode],
    "error": ["StrataError", *(name for name in errors.__all__ if name != "StrataError")],
    "exit code": ["0", "1", "2", "130"],
}


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this heading."""
    (table,) = re.findall(rf"^\| `?{heading}`? \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row[1:-1].split("|")] for row in table.splitlines()]


@pytest.mark.parametrize("heading", WANTED)
def test_each_stands_there_once_and_nothing_else_does(heading: str) -> None:
    assert sorted(f"`{name}`" for name in WANTED[heading]) == sorted(row[0] for row in rows(heading))


@pytest.mark.parametrize("heading", WANTED)
def test_each_says_what_it_means_when_it_comes_and_the_way_out(heading: str) -> None:
    assert all(len(row) == 4 and all(row) for row in rows(heading))


def test_the_page_has_no_other_tables() -> None:
    assert len(WANTED) == len(re.findall(r"^\|[-|]+\|$", PAGE, re.MULTILINE))


def test_a_value_of_a_problem_code_is_its_name_behind_the_prefix() -> None:
    assert [f"STRATA_ERR_{code.name}" for code in ProblemCode] == [code.value for code in ProblemCode]


@pytest.mark.parametrize("page", ["README.md", "GUIDE.md", "CALLS.md"])
def test_the_other_pages_lead_to_it(page: str) -> None:
    assert "](CODES.md" in (CORE / page).read_text(encoding="utf-8")


def test_its_links_lead_to_its_headings() -> None:
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", PAGE, re.MULTILINE)}

    assert headings == set(re.findall(r"\]\(#([^)]+)\)", PAGE))
