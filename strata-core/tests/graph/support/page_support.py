"""The page CALLS.md: its tables, and what their cells say of a call."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from strata_core.graph import CheckpointPolicy

PATH: Final = Path(__file__).parents[3] / "CALLS.md"
TEXT: Final = PATH.read_text(encoding="utf-8")
POLICIES: Final = tuple(f"`{policy.name}`" for policy in CheckpointPolicy)
STANDINGS: Final = "Where a thread stands"
EXCEPTIONS: Final = "Exceptions"
AS_ABOVE: Final = "as above"
PASSED_OVER: Final = "—"


@attrs.frozen
class Table:
    """A table of the page: its head, and its rows, of which each has as many cells."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def by_thread(self) -> dict[str, tuple[str, ...]]:
        """Return the cells behind the first one, by that."""
        found = {row[0]: row[1:] for row in self.rows}
        assert len(found) == len(self.rows), "a thread stands twice in one table"
        return found


def _cells(line: str) -> tuple[str, ...]:
    assert line.endswith("|"), line
    return tuple(cell.strip() for cell in line[1:-1].split("|"))


def _table(text: str) -> Table:
    head, rule, *rows = (_cells(line) for line in text.splitlines())
    assert {"---"} == set(rule), "a table has a rule below its head"
    for row in (rule, *rows):
        assert len(head) == len(row), f"a row has as many cells as the head: {row}"
    assert all(all(row) for row in rows), "no cell is empty"
    return Table(head, tuple(rows))


@cache
def sections() -> dict[str, list[Table]]:
    """Return the tables of each section, by its heading."""
    _, *parts = re.split("^##+ (.+)$", TEXT, flags=re.MULTILINE)
    headings, bodies = parts[::2], parts[1::2]
    assert len(set(headings)) == len(headings), "a heading stands twice"
    return {
        heading: [_table(text) for text in re.findall(r"(?:^\|.*\n?)+", body, re.MULTILINE)]
        for heading, body in zip(headings, bodies, strict=True)
    }


def call_tables() -> dict[str, Table]:
    """Return the table of each call, by the last word in code of its part of a heading."""
    tables = {}
    for heading, found in sections().items():
        for part in heading.split(", and ") if "`" in heading else ():
            (tables[re.findall("`(.+?)`", part)[-1]],) = found
    return tables


def exception_tables() -> dict[str, Table]:
    """Return the tables of the exceptions, by their headings."""
    found = list(sections().items())
    start = [heading for heading, _ in found].index(EXCEPTIONS) + 1
    return {heading: table for heading, (table,) in found[start:]}


def codes(cell: str) -> list[str]:
    """Return what stands in a list of words in code."""
    words = cell.split(", ")
    assert all(re.fullmatch("`[^`]+`", word) for word in words), f"is no list of words in code: {cell}"
    return [word[1:-1] for word in words]


def changed(heading: str, policy: CheckpointPolicy) -> dict[str, dict[str, str]]:
    """Return what an exception changes: by the thread, by the call, what it comes to instead."""
    column = 2 + POLICIES.index(f"`{policy.name}`")
    found: dict[str, dict[str, str]] = {}
    for row in exception_tables()[heading].rows:
        thread = found.setdefault(row[0], {})
        for call in codes(row[1]):
            assert call not in thread, f"{row[0]!r} has {call!r} twice"
            thread[call] = row[column]
    return found
