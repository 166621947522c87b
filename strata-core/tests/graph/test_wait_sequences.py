"""Any sequence of answers, events, wakes and passing time: a thread goes the way that its waits allow, and no other."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata_core.graph import (
    Cancelled,
    CheckpointPolicy,
    Completed,
    EventSignal,
    Failed,
    HumanSignal,
    Interrupted,
    LevelSignals,
    StateGraph,
)
from strata_core.memory import MemoryBackend
from strata_core.store import RowStore
from strata_core.testing import FakeClock

pytestmark = pytest.mark.once("a model of the waits against thousands of threads in memory")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

HOUR = timedelta(hours=1)
CALLS = ["approve", "reject", "paid", "packed", "due", "wake", "nothing", "an hour passes"]
PATIENCE = {"Ask": 2, "Pay": 3, "Rest": 1}


def graph(policy: CheckpointPolicy, clock: FakeClock) -> Any:
    def node(name: str) -> Any:
        return lambda state: {"path": [*state["path"], name]}

    builder = new(dict)
    for name in ("Ask", "Pay", "Rest", "Late", "No", "End"):
        builder.add_node(name, node(name))
    for source, target in (("Ask", "Pay"), ("Pay", "Rest"), ("Late", "Ask"), ("No", "End")):
        builder.add_edge(source, target)
    builder.add_conditional_edge("Rest", lambda state: "End" if len(state["path"]) > 8 else "Ask", ["Ask", "End"])
    builder.add_interrupt_boundary("Ask", on_reject="No", timeout=2 * HOUR, on_timeout="Late")
    builder.add_wait_for_event("Pay", "paid", timeout=3 * HOUR)
    builder.add_timer("Rest", HOUR)
    return builder.compile(checkpointing=policy, clock=clock)


@attrs.define
class Model:
    """What the documents say of this graph, in the fewest words."""

    policy: CheckpointPolicy
    path: list[str] = attrs.Factory(lambda: ["Ask"])
    hours: int = 0
    due: int = PATIENCE["Ask"]
    over: str = ""
    decided: bool = False

    def call(self, call: str) -> str:
        """Return what a call comes to, and go there."""
        if self.over:
            return self._refuse_over(call)
        at = self.path[-1]
        if call in ("due", "wake"):
            if self.hours < self.due:
                return "not_due" if call == "due" else ""
            if at == "Pay":
                self.over = "ended"
                return "timed_out"
            return self._go({"Ask": ["Late", "Ask"], "Rest": self._after_rest()}[at])
        if call in ("paid", "packed"):
            if at != "Pay":
                return "wrong_wait"
            return self._go(["Rest"]) if call == "paid" else "wrong_event"
        if at != "Ask":
            return "wrong_wait"
        if call == "nothing":
            return "signal_required"
        self.decided = True
        return self._go(["Pay"] if call == "approve" else ["No", "End"])

    def _after_rest(self) -> list[str]:
        return ["End"] if len(self.path) > 8 else ["Ask"]

    def _go(self, nodes: list[str]) -> str:
        self.path += nodes
        if nodes[-1] == "End":
            self.over = "resumed" if self.policy is CheckpointPolicy.BOUNDARIES else "completed"
            return "completed"
        self.due = self.hours + PATIENCE[nodes[-1]]
        return "interrupted"

    def _refuse_over(self, call: str) -> str:
        if call == "wake":
            return ""
        answered = self.over == "completed" and self.decided and call in ("approve", "reject")
        return "already_resumed" if self.over == "resumed" or answered else f"is_{self.over}"


async def make(call: str, compiled: Any, store: Any) -> Any:
    if call == "wake":
        report = await compiled.wake_due(store)
        return (report.results | report.refused).get("t")
    if call in ("paid", "packed"):
        return await compiled.signal("t", EventSignal(call), store)
    answers = {
        "approve": HumanSignal.approve("jdoe"),
        "reject": HumanSignal.reject("jdoe"),
        "due": LevelSignals.due(),
        "nothing": None,
    }
    return await compiled.resume("t", answers[call], store)


def outcome(result: Any) -> str:
    if isinstance(result, Failed):
        return {"completed": "is_completed", "ended": "is_ended"}.get(result.code.value, result.code.value)
    if isinstance(result, Cancelled):
        return result.reason.value
    return {Completed: "completed", Interrupted: "interrupted", type(None): ""}[type(result)]


@settings(max_examples=150, deadline=None)
@given(calls=st.lists(st.sampled_from(CALLS), max_size=40), policy=st.sampled_from(list(CheckpointPolicy)))
def test_a_thread_goes_the_way_that_its_waits_allow(calls: list[str], policy: CheckpointPolicy) -> None:
    async def main() -> None:
        clock = FakeClock()
        compiled = graph(policy, clock)
        begun = clock.now()
        async with RowStore(MemoryBackend(clock)) as store:
            await compiled.run("t", {"path": []}, store)
            model = Model(policy)
            for call in calls:
                if call == "an hour passes":
                    clock.advance(HOUR)
                    model.hours += 1
                    continue
                before = await store.load("t")
                result = await make(call, compiled, store)
                assert model.call(call) == outcome(result), (call, model)
                after = await store.load("t")
                assert before is not None
                assert after is not None
                if isinstance(result, Failed | None):
                    assert before == after, "a refusal writes nothing"
                elif isinstance(result, Interrupted):
                    assert model.path == result.frozen_state["path"] == after.checkpoint.frozen_state["path"]
                    assert begun + model.due * HOUR == after.checkpoint.due_at
                elif isinstance(result, Completed):
                    assert model.path == result.state["path"]
                assert model.over in ("", after.checkpoint.state.value)
                assert None is await store.live_lease("t")

    asyncio.run(main())
