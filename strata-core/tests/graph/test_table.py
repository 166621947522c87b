"""What every call does in every state of a thread: outcome, code, and the rows it adds."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from strata_core.graph import CheckpointPolicy, EventSignal, HumanSignal, LevelSignals, StateGraph
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


def waiting(
    kind: WaitKind, *, due: float | None = None, event: str | None = None, route: str | None = None
) -> Checkpoint:
    """Return a thread that waits; `due` says in how many days."""
    return seed(wait=Wait(kind, event, None if due is None else _AT + timedelta(days=due), route))


_RUNNING = seed(status=CheckpointStatus.RUNNING)
STATES: dict[str, tuple[Checkpoint | None, bool]] = {
    "no thread": (None, False),
    "interrupted": (seed(), False),
    "interrupted, leased": (seed(), True),
    "person, timeout": (waiting(WaitKind.PERSON, due=9, route="Late"), False),
    "person, due": (waiting(WaitKind.PERSON, due=0, route="Late"), False),
    "person, due, leased": (waiting(WaitKind.PERSON, due=0, route="Late"), True),
    "person, due, no route": (waiting(WaitKind.PERSON, due=0), False),
    "person, due, no route, leased": (waiting(WaitKind.PERSON, due=0), True),
    "person, due, route is gone": (waiting(WaitKind.PERSON, due=0, route="Gone"), False),
    "event": (waiting(WaitKind.EVENT, event="paid"), False),
    "event, leased": (waiting(WaitKind.EVENT, event="paid"), True),
    "event, timeout": (waiting(WaitKind.EVENT, event="paid", due=9, route="Late"), False),
    "event, due": (waiting(WaitKind.EVENT, event="paid", due=-1, route="Late"), False),
    "event, due, no route": (waiting(WaitKind.EVENT, event="paid", due=-1), False),
    "another event, timeout": (waiting(WaitKind.EVENT, event="packed", due=9), False),
    "timer": (waiting(WaitKind.TIMER, due=9), False),
    "timer, due": (waiting(WaitKind.TIMER, due=0), False),
    "timer, due, leased": (waiting(WaitKind.TIMER, due=0), True),
    "timer, due, resumed": (attrs.evolve(waiting(WaitKind.TIMER, due=0), resumed_at=_AT), False),
    "timer, due, of another graph": (
        attrs.evolve(waiting(WaitKind.TIMER, due=0), graph=GraphIdentity("other", "1")),
        False,
    ),
    "timer, due, of no graph": (attrs.evolve(waiting(WaitKind.TIMER, due=0), graph=None), False),
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
    "running, of another graph": (attrs.evolve(_RUNNING, graph=GraphIdentity("other", "1")), False),
    "running, of no graph": (attrs.evolve(_RUNNING, graph=None), False),
    "running, node is gone": (attrs.evolve(_RUNNING, next_node="Gone"), False),
}


class Nothing:
    """What a wake or a recovery of all comes to that finds no thread."""


async def only(sweep: Any) -> Any:
    report = await sweep
    found = [*report.results.values(), *report.refused.values()]
    assert report.is_complete
    assert not report.errors
    assert len(found) <= 1
    return found[0] if found else Nothing()


CALLS: dict[str, Any] = {
    "run": lambda graph, store: graph.run("t", {"n": 5}, store),
    "run anew": lambda graph, store: graph.run("t", {"n": 5}, store, if_exists="error"),
    "approve": lambda graph, store: graph.resume("t", HumanSignal.approve("jdoe"), store),
    "reject": lambda graph, store: graph.resume("t", HumanSignal.reject("jdoe"), store),
    "resume with nothing": lambda graph, store: graph.resume("t", None, store),
    "end": lambda graph, store: graph.end("t", store, by="ops"),
    "signal": lambda graph, store: graph.signal("t", EventSignal("paid"), store),
    "resume with the event": lambda graph, store: graph.resume("t", LevelSignals.event(EventSignal("paid")), store),
    "resume as due": lambda graph, store: graph.resume("t", LevelSignals.due(), store),
    "wake due": lambda graph, store: only(graph.wake_due(store)),
    "recover": lambda graph, store: graph.recover("t", store),
    "recover all": lambda graph, store: only(graph.recover_all(store)),
}

# What a call that goes through adds, under `BOUNDARIES` and `EVERY_NODE`: the outcome and the states of the new rows.
# Without a lease of its own, a run of `BOUNDARIES` does not ask for anybody else's.
OUTCOMES = {
    "RUN": ("Interrupted: interrupted", "Interrupted: running interrupted"),
    "HELD": ("Interrupted: interrupted", "Failed lease_held:"),
    "GO": ("Completed: resumed", "Completed: running completed"),
    "END": ("Cancelled ended: ended", "Cancelled ended: ended"),
    "EXPIRE": ("Cancelled timed_out: ended", "Cancelled timed_out: ended"),
    "RECOVER": ("Completed: running completed", "Completed: running completed"),
    "-": ("Nothing:", "Nothing:"),
}

# Capitals are outcomes as above; anything else is the code of a refusal, which adds nothing under either policy.
#                                      run  anew          approve         reject          with None       end
ANSWERS = {
    "no thread":                      "RUN  RUN           not_found       not_found       not_found       not_found",
    "interrupted":                    "RUN  thread_exists GO              GO              signal_required END",
    "interrupted, leased":            "HELD thread_exists lease_held      lease_held      signal_required lease_held",
    "person, timeout":                "RUN  thread_exists GO              GO              signal_required END",
    "person, due":                    "RUN  thread_exists GO              GO              signal_required END",
    "person, due, leased":            "HELD thread_exists lease_held      lease_held      signal_required lease_held",
    "person, due, no route":          "RUN  thread_exists GO              GO              signal_required END",
    "person, due, no route, leased":  "HELD thread_exists lease_held      lease_held      signal_required lease_held",
    "person, due, route is gone":     "RUN  thread_exists GO              GO              signal_required END",
    "event":                          "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "event, leased":                  "HELD thread_exists wrong_wait      wrong_wait      wrong_wait      lease_held",
    "event, timeout":                 "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "event, due":                     "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "event, due, no route":           "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "another event, timeout":         "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "timer":                          "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "timer, due":                     "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "timer, due, leased":             "HELD thread_exists wrong_wait      wrong_wait      wrong_wait      lease_held",
    "timer, due, resumed":            "RUN  thread_exists already_resumed already_resumed already_resumed END",
    "timer, due, of another graph":   "RUN  thread_exists wrong_graph     wrong_graph     wrong_graph     wrong_graph",
    "timer, due, of no graph":        "RUN  thread_exists wrong_wait      wrong_wait      wrong_wait      END",
    "failed":                         "RUN  thread_exists GO              GO              GO              END",
    "failed, answered":               "RUN  thread_exists GO              GO              GO              END",
    "cancelled":                      "RUN  thread_exists GO              GO              GO              END",
    "resumed":                        "RUN  thread_exists already_resumed already_resumed already_resumed END",
    "running":                        "RUN  thread_exists running         running         running         END",
    "running, leased":                "HELD thread_exists running         running         running         lease_held",
    "running, answered":              "RUN  thread_exists already_resumed already_resumed running         END",
    "running, answered, leased":      "HELD thread_exists already_resumed already_resumed running         lease_held",
    "completed":                      "RUN  thread_exists completed       completed       completed       completed",
    "completed, answered":            "RUN  thread_exists already_resumed already_resumed completed       completed",
    "ended":                          "RUN  thread_exists ended           ended           ended           ended",
    "of another graph":               "RUN  thread_exists wrong_graph     wrong_graph     wrong_graph     wrong_graph",
    "at a node that is gone":         "RUN  thread_exists unknown_node    GO              signal_required END",
    "running, of another graph":      "RUN  thread_exists wrong_graph     wrong_graph     wrong_graph     wrong_graph",
    "running, of no graph":           "RUN  thread_exists running         running         running         END",
    "running, node is gone":          "RUN  thread_exists running         running         running         END",
}  # fmt: skip

#                                      signal          with the event  as due          wake
SIGNALS = {
    "no thread":                      "not_found       not_found       not_found       -",
    "interrupted":                    "wrong_wait      wrong_wait      never_due       -",
    "interrupted, leased":            "wrong_wait      wrong_wait      never_due       -",
    "person, timeout":                "wrong_wait      wrong_wait      not_due         -",
    "person, due":                    "wrong_wait      wrong_wait      GO              GO",
    "person, due, leased":            "wrong_wait      wrong_wait      lease_held      lease_held",
    "person, due, no route":          "wrong_wait      wrong_wait      EXPIRE          EXPIRE",
    "person, due, no route, leased":  "wrong_wait      wrong_wait      lease_held      lease_held",
    "person, due, route is gone":     "wrong_wait      wrong_wait      unknown_node    unknown_node",
    "event":                          "GO              GO              never_due       -",
    "event, leased":                  "lease_held      lease_held      never_due       -",
    "event, timeout":                 "GO              GO              not_due         -",
    "event, due":                     "GO              GO              GO              GO",
    "event, due, no route":           "GO              GO              EXPIRE          EXPIRE",
    "another event, timeout":         "wrong_event     wrong_event     not_due         -",
    "timer":                          "wrong_wait      wrong_wait      not_due         -",
    "timer, due":                     "wrong_wait      wrong_wait      GO              GO",
    "timer, due, leased":             "wrong_wait      wrong_wait      lease_held      lease_held",
    "timer, due, resumed":            "already_resumed already_resumed already_resumed -",
    "timer, due, of another graph":   "wrong_graph     wrong_graph     wrong_graph     -",
    "timer, due, of no graph":        "wrong_wait      wrong_wait      GO              -",
    "failed":                         "not_waiting     not_waiting     not_waiting     -",
    "failed, answered":               "not_waiting     not_waiting     not_waiting     -",
    "cancelled":                      "not_waiting     not_waiting     not_waiting     -",
    "resumed":                        "already_resumed already_resumed already_resumed -",
    "running":                        "running         running         running         -",
    "running, leased":                "running         running         running         -",
    "running, answered":              "running         running         running         -",
    "running, answered, leased":      "running         running         running         -",
    "completed":                      "completed       completed       completed       -",
    "completed, answered":            "completed       completed       completed       -",
    "ended":                          "ended           ended           ended           -",
    "of another graph":               "wrong_graph     wrong_graph     wrong_graph     -",
    "at a node that is gone":         "wrong_wait      wrong_wait      never_due       -",
    "running, of another graph":      "wrong_graph     wrong_graph     wrong_graph     -",
    "running, of no graph":           "running         running         running         -",
    "running, node is gone":          "running         running         running         -",
}  # fmt: skip

#                                      recover         recover all
RECOVERIES = {
    "no thread":                      "not_found       -",
    "interrupted":                    "not_running     -",
    "interrupted, leased":            "not_running     -",
    "person, timeout":                "not_running     -",
    "person, due":                    "not_running     -",
    "person, due, leased":            "not_running     -",
    "person, due, no route":          "not_running     -",
    "person, due, no route, leased":  "not_running     -",
    "person, due, route is gone":     "not_running     -",
    "event":                          "not_running     -",
    "event, leased":                  "not_running     -",
    "event, timeout":                 "not_running     -",
    "event, due":                     "not_running     -",
    "event, due, no route":           "not_running     -",
    "another event, timeout":         "not_running     -",
    "timer":                          "not_running     -",
    "timer, due":                     "not_running     -",
    "timer, due, leased":             "not_running     -",
    "timer, due, resumed":            "not_recoverable -",
    "timer, due, of another graph":   "wrong_graph     -",
    "timer, due, of no graph":        "not_running     -",
    "failed":                         "not_running     -",
    "failed, answered":               "not_running     -",
    "cancelled":                      "not_running     -",
    "resumed":                        "not_recoverable -",
    "running":                        "RECOVER         RECOVER",
    "running, leased":                "lease_held      -",
    "running, answered":              "RECOVER         RECOVER",
    "running, answered, leased":      "lease_held      -",
    "completed":                      "completed       -",
    "completed, answered":            "completed       -",
    "ended":                          "ended           -",
    "of another graph":               "wrong_graph     -",
    "at a node that is gone":         "not_running     -",
    "running, of another graph":      "wrong_graph     -",
    "running, of no graph":           "RECOVER         -",
    "running, node is gone":          "unknown_node    unknown_node",
}  # fmt: skip


def expectation(cell: str, policy: CheckpointPolicy) -> str:
    if cell in OUTCOMES:
        return OUTCOMES[cell][policy is CheckpointPolicy.EVERY_NODE]
    return f"Failed {cell}:"


CELLS = [
    pytest.param(state, call, policy, expectation(cell, policy), id=f"{state} - {call} - {policy.value}")
    for state in STATES
    for call, cell in zip(CALLS, f"{ANSWERS[state]} {SIGNALS[state]} {RECOVERIES[state]}".split(), strict=True)
    for policy in CheckpointPolicy
]


def test_the_table_is_whole() -> None:
    assert STATES.keys() == ANSWERS.keys() == SIGNALS.keys() == RECOVERIES.keys()


@pytest.mark.parametrize(("state", "call", "policy", "expected"), CELLS)
def test_cell(world: Any, state: str, call: str, policy: CheckpointPolicy, expected: str) -> None:
    checkpoint, leased = STATES[state]
    graph = (
        new(dict)
        .add_node("Prepare", lambda state: state)
        .add_interrupt_boundary("Prepare", on_reject="Reject", timeout=timedelta(days=1), on_timeout="Late")
        .add_node("Execute", lambda state: state)
        .add_node("Reject", lambda state: state)
        .add_node("Late", lambda state: state)
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
