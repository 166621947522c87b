"""What every call does in every state of a thread: outcome, code, and the rows it adds."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from strata_core.graph import CheckpointPolicy, HumanSignal, StateGraph
from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    GraphIdentity,
    HumanDecision,
    Revision,
    Wait,
    WaitKind,
)

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_DECISION = HumanDecision("Prepare", True, "somebody", _AT)
_SEED = Checkpoint(
    "t",
    CheckpointStatus.INTERRUPTED,
    {"n": 1},
    _AT,
    "Prepare",
    "Execute",
    {"tenant": "acme"},
    graph=GraphIdentity("wire", "1"),
)


def seed(**changes: Any) -> Checkpoint:
    return attrs.evolve(_SEED, **changes)


_RUNNING = seed(status=CheckpointStatus.RUNNING)
STATES: dict[str, tuple[Checkpoint | None, bool]] = {
    "no thread": (None, False),
    "interrupted": (seed(), False),
    "interrupted, leased": (seed(), True),
    "interrupted, with a timeout": (
        seed(wait=Wait(WaitKind.PERSON, due_at=_AT + timedelta(days=9))),
        False,
    ),
    "interrupted by an event": (seed(wait=Wait(WaitKind.EVENT, event_type="paid")), False),
    "interrupted by a timer": (seed(wait=Wait(WaitKind.TIMER, due_at=_AT + timedelta(days=9))), False),
    "failed": (seed(status=CheckpointStatus.FAILED, suspended_node="Execute"), False),
    "failed, answered": (
        seed(status=CheckpointStatus.FAILED, suspended_node="Execute", decision=_DECISION),
        False,
    ),
    "cancelled": (seed(status=CheckpointStatus.CANCELLED, suspended_node="Execute"), False),
    "resumed": (seed(resumed_at=_AT, decision=_DECISION), False),
    "running": (_RUNNING, False),
    "running, leased": (_RUNNING, True),
    "running, answered": (attrs.evolve(_RUNNING, decision=_DECISION), False),
    "running, answered, leased": (attrs.evolve(_RUNNING, decision=_DECISION), True),
    "completed": (seed(status=CheckpointStatus.COMPLETED, suspended_node="Execute", next_node=None), False),
    "completed, answered": (
        seed(status=CheckpointStatus.COMPLETED, suspended_node="Execute", next_node=None, decision=_DECISION),
        False,
    ),
    "ended": (seed(status=CheckpointStatus.ENDED, next_node=None), False),
    "of another graph": (seed(graph=GraphIdentity("other", "1")), False),
    "at a node that is gone": (seed(next_node="Gone"), False),
}

CALLS: dict[str, Any] = {
    "run": lambda graph, store: graph.run("t", {"n": 5}, store),
    "run anew": lambda graph, store: graph.run("t", {"n": 5}, store, if_exists="error"),
    "approve": lambda graph, store: graph.resume("t", HumanSignal.approve("jdoe"), store),
    "reject": lambda graph, store: graph.resume("t", HumanSignal.reject("jdoe"), store),
    "resume with nothing": lambda graph, store: graph.resume("t", None, store),
    "end": lambda graph, store: graph.end("t", store, by="ops"),
}

# What a call that goes through adds, under `BOUNDARIES` and `EVERY_NODE`: the outcome and the states of the new rows.
# Without a lease of its own, a run of `BOUNDARIES` does not ask for anybody else's.
OUTCOMES = {
    "RUN": ("Interrupted: interrupted", "Interrupted: running interrupted"),
    "HELD": ("Interrupted: interrupted", "Failed lease_held:"),
    "GO": ("Completed: resumed", "Completed: running completed"),
    "END": ("Cancelled ended: ended", "Cancelled ended: ended"),
}

# Capitals are outcomes as above; anything else is the code of a refusal, which adds nothing under either policy.
#                                  run  anew          approve         reject          with None       end
TABLE = {
    "no thread":                    "RUN  RUN           not_found       not_found       not_found       not_found",
    "interrupted":                  "RUN  thread_exists GO              GO              signal_required END",
    "interrupted, leased":          "HELD thread_exists already_resumed already_resumed signal_required lease_held",
    "interrupted, with a timeout":  "RUN  thread_exists GO              GO              signal_required END",
    "interrupted by an event":      "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "interrupted by a timer":       "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "failed":                       "RUN  thread_exists GO              GO              GO              END",
    "failed, answered":             "RUN  thread_exists GO              GO              GO              END",
    "cancelled":                    "RUN  thread_exists GO              GO              GO              END",
    "resumed":                      "RUN  thread_exists already_resumed already_resumed already_resumed END",
    "running":                      "RUN  thread_exists running         running         running         END",
    "running, leased":              "HELD thread_exists running         running         running         lease_held",
    "running, answered":            "RUN  thread_exists already_resumed already_resumed running         END",
    "running, answered, leased":    "HELD thread_exists already_resumed already_resumed running         lease_held",
    "completed":                    "RUN  thread_exists completed       completed       completed       completed",
    "completed, answered":          "RUN  thread_exists already_resumed already_resumed completed       completed",
    "ended":                        "RUN  thread_exists ended           ended           ended           ended",
    "of another graph":             "RUN  thread_exists wrong_graph     wrong_graph     wrong_graph     wrong_graph",
    "at a node that is gone":       "RUN  thread_exists unknown_node    GO              signal_required END",
}  # fmt: skip


def expectation(cell: str, policy: CheckpointPolicy) -> str:
    if cell in OUTCOMES:
        return OUTCOMES[cell][policy is CheckpointPolicy.EVERY_NODE]
    return f"Failed {cell}:"


CELLS = [
    pytest.param(state, call, policy, expectation(cell, policy), id=f"{state} - {call} - {policy.value}")
    for state, row in TABLE.items()
    for call, cell in zip(CALLS, row.split(), strict=True)
    for policy in CheckpointPolicy
]


def test_the_table_is_whole() -> None:
    assert STATES.keys() == TABLE.keys()


@pytest.mark.parametrize(("state", "call", "policy", "expected"), CELLS)
def test_cell(world: Any, state: str, call: str, policy: CheckpointPolicy, expected: str) -> None:
    checkpoint, leased = STATES[state]
    graph = (
        new(dict)
        .add_node("Prepare", lambda state: state)
        .add_interrupt_boundary("Prepare", on_reject="Reject")
        .add_node("Execute", lambda state: state)
        .add_node("Reject", lambda state: state)
        .add_edge("Prepare", "Execute")
        .compile(identity=GraphIdentity("wire", "2"), checkpointing=policy, clock=world.clock)
    )

    async def main() -> None:
        async with world.open() as store:
            lease = None
            if leased:
                lease = await store.acquire_lease("t", owner="rival", ttl=timedelta(minutes=1), save=checkpoint)
            elif checkpoint is not None:
                await store.save(checkpoint)
            before = await store.get_log("t")
            result = await CALLS[call](graph, store)
            after = await store.get_log("t")

            added = after.entries[len(before.entries) :]
            kind = type(result).__name__
            detail = getattr(result, "code", None) or getattr(result, "reason", None)
            outcome = kind if detail is None else f"{kind} {detail.value}"
            rows = " ".join(entry.checkpoint.state.value for entry in added)
            assert expected == f"{outcome}: {rows}".rstrip()
            assert before.entries == after.entries[: len(before.entries)]
            assert (lease and lease.owner) == ((held := await store.live_lease("t")) and held.owner)
            if kind == "Failed" and not added:
                latest = await store.load("t")
                assert (None if checkpoint is None else 0) == (latest and latest.sequence)
            for entry in added:
                assert isinstance(entry.revision, Revision)
                assert "t" == entry.checkpoint.thread_id

    asyncio.run(main())
