"""CALLS.md: what every call does to a thread that waits inside a subgraph, cell by cell."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from levels_support import Order, Seen, child, outer
from page_support import POLICIES, sections

from strata_core.graph import CheckpointPolicy, EventSignal, Failed, HumanSignal, Interrupted, LevelSignals
from strata_core.records import Checkpoint

pytestmark = pytest.mark.once("what differs inside is in the record alone; test_subgraphs.py shows that stores keep it")

INSIDE = "Inside a subgraph"
BOB = HumanSignal.approve("bob")
PAID = EventSignal("paid")
WAITS = {"a person": "person", "an event, due": "event", "a time, due": "timer"}
CALLS: dict[str, Any] = {
    "HumanSignal.approve": lambda graph, store: graph.resume("t", BOB, store),
    "HumanSignal.reject": lambda graph, store: graph.resume("t", HumanSignal.reject("bob"), store),
    "LevelSignals(approve)": lambda graph, store: graph.resume(
        "t", LevelSignals(BOB).with_outer((), "note", "x"), store
    ),
    "LevelSignals of an unknown level": lambda graph, store: graph.resume(
        "t", LevelSignals(BOB).with_outer(("Work",), "text", "x"), store
    ),
    "None": lambda graph, store: graph.resume("t", None, store),
    "signal": lambda graph, store: graph.signal("t", PAID, store),
    "LevelSignals.event": lambda graph, store: graph.resume("t", LevelSignals.event(PAID), store),
    "LevelSignals.due": lambda graph, store: graph.resume("t", LevelSignals.due(), store),
    "end": lambda graph, store: graph.end("t", store, by="ops"),
    "recover": lambda graph, store: graph.recover("t", store),
}


def tell_row(checkpoint: Checkpoint) -> str:
    """Tell a row as the page does: its state, and on every level where it stands and where it goes on."""
    at, to = [], []
    level: Checkpoint | None = checkpoint
    while level is not None:
        at.append(level.suspended_node)
        to.append(level.next_node)
        level = level.nested
    if to[0] is None:
        to = []
    stands, goes = (" / ".join(name for name in names if name is not None) for names in (at, to))
    return " ".join(part for part in (f"`{checkpoint.state.value}`", stands, f"→ {goes}" if goes else "") if part)


async def cell(world: Any, store: Any, wait: str, call: str, policy: CheckpointPolicy) -> str:
    """Bring a thread to the wait, make the call, and tell what it came to."""
    graph = outer(world, Seen(), child(world, Seen(), wait=WAITS[wait]), policy)
    stopped = await graph.run("t", Order(), store)
    assert isinstance(stopped, Interrupted)
    assert ("Work", "Approve") == stopped.waiting_at
    world.clock.advance(timedelta(hours=1))
    before = await world.log(store, "t")
    result = await CALLS[call](graph, store)
    after = await world.log(store, "t")
    assert before == after[: len(before)]
    new = after[len(before) :]
    if isinstance(result, Failed):
        assert [] == new
        return f"`{result.code.name}`"
    return f"`{type(result).__name__}`: {'; '.join(map(tell_row, new))}"


@pytest.mark.parametrize("policy", list(CheckpointPolicy), ids=lambda policy: policy.value)
@pytest.mark.parametrize("wait", WAITS)
def test_a_call_on_a_thread_that_waits_inside_does_what_the_page_says(
    world: Any, wait: str, policy: CheckpointPolicy
) -> None:
    (table,) = sections()[INSIDE]
    column = 2 + POLICIES.index(f"`{policy.name}`")
    expected = {(row[0], row[1].strip("`")): row[column] for row in table.rows}

    assert ("it waits for", "call", *POLICIES) == table.head
    assert {(each, call) for each in WAITS for call in CALLS} == expected.keys()

    async def main() -> dict[str, str]:
        found = {}
        async with world.open() as store:
            for call in CALLS:
                found[call] = await cell(world, store, wait, call, policy)
                await outer(world, Seen(), child(world, Seen()), policy).end("t", store)
        return found

    assert {call: expected[wait, call] for call in CALLS} == asyncio.run(main())
