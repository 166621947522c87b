"""CALLS.md: what every call does in every state of a thread; the page is the expectation, cell by cell."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from page_support import (
    AS_ABOVE,
    EXCEPTIONS,
    PASSED_OVER,
    PATH,
    POLICIES,
    STANDINGS,
    TEXT,
    call_tables,
    changed,
    codes,
    exception_tables,
    sections,
)
from table_support import CALLS, CHANGES, SWEEPS, hold, make, put
from telling_support import compare, look, tell_row
from threads_support import DAY, WAYS, Thread, build, threads

from strata_core.graph import CheckpointPolicy

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy), ids=lambda policy: policy.value)
STARTS = ("run", 'if_exists="error"')
"""The calls that begin a thread anew, and so go on with none."""


def test_the_page_has_a_table_for_every_call_with_a_row_for_every_thread() -> None:
    tables = call_tables()

    assert set(CALLS) == tables.keys()
    for table in tables.values():
        assert ("the thread", *POLICIES) == table.head
        assert list(WAYS) == [row[0] for row in table.rows]


def test_the_page_has_no_tables_but_these() -> None:
    plain = {"How to read it": 0, STANDINGS: 1, "Inside a subgraph": 1, EXCEPTIONS: 0}
    found = {heading: len(tables) for heading, tables in sections().items()}

    assert plain == {heading: found[heading] for heading in plain}
    assert {1} == {count for heading, count in found.items() if heading not in plain}
    assert len(found) == len(plain) + len(CALLS) - 1 + len(CHANGES), "signal and LevelSignals.event share a table"


def test_the_exceptions_name_what_they_change_and_nothing_else() -> None:
    tables = exception_tables()

    assert list(CHANGES) == list(tables)
    for heading, table in tables.items():
        assert ("the thread", "calls", *POLICIES) == table.head
        assert all({AS_ABOVE} != set(row[2:]) for row in table.rows)
        for policy in CheckpointPolicy:
            found = changed(heading, policy)
            assert list(CHANGES[heading][1]) == list(found)
            assert set(CALLS) >= {call for calls in found.values() for call in calls}


@BOTH
def test_the_page_tells_where_each_thread_stands_and_what_it_takes(policy: CheckpointPolicy) -> None:
    (table,) = sections()[STANDINGS]
    tables = {call: found.by_thread() for call, found in call_tables().items()}

    assert ("the thread", "its latest row", "what it takes") == table.head
    assert list(WAYS) == [row[0] for row in table.rows]
    for name, latest, takes in table.rows:
        log = threads(policy)[name].log
        taking = [call for call in CALLS if call not in STARTS and any(": " in cell for cell in tables[call][name])]
        assert latest == (tell_row(log[-1]) if log else "none"), name
        assert set(taking) == (set() if takes == PASSED_OVER else set(codes(takes))), name


@BOTH
@pytest.mark.parametrize("call", CALLS)
def test_a_call_does_what_the_page_says(world: Any, call: str, policy: CheckpointPolicy) -> None:
    column = POLICIES.index(f"`{policy.name}`")
    cells = {name: row[column] for name, row in call_tables()[call].by_thread().items()}
    met: dict[str, Thread] = dict(threads(policy))
    for heading, (change, names) in CHANGES.items():
        instead = changed(heading, policy)
        for name in names:
            cell = instead[name].get(call, AS_ABOVE)
            assert cell != cells[name], f"{cell} says the same as the table above"
            cells[f"{name} / {heading}"] = cells[name] if cell == AS_ABOVE else cell
            met[f"{name} / {heading}"] = change(name, policy)

    async def main() -> list[str]:
        async with world.open() as store:
            await asyncio.gather(*(put(store, name, thread) for name, thread in met.items()))
            world.clock.advance(DAY)
            await asyncio.gather(*(hold(store, name) for name, thread in met.items() if thread.is_held))
            before = await look(store, met)
            results = await make(call, build(policy, world.clock), store, list(met))
            after = await look(store, met)
            return compare(cells, before, after, results, world.clock.now(), anew=call in STARTS)

    wrong = asyncio.run(main())
    assert [] == wrong, "\n".join(["", *wrong])


def test_only_sweeps_pass_a_thread_over() -> None:
    for call, table in call_tables().items():
        assert (call in SWEEPS) == any(PASSED_OVER in row for row in table.rows)


def test_every_link_of_the_page_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        path, _, anchor = target.partition("#")
        text = (PATH.parent / path).read_text(encoding="utf-8") if path else TEXT
        anchors = {
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        }
        assert anchor in anchors, target
