"""Random graphs that one thread runs through."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
from hypothesis import strategies as st

from strata_core.graph import CheckpointPolicy, CompiledGraph, EventSignal, HumanSignal, RetryPolicy, StateGraph
from strata_core.records import Checkpoint, WaitKind
from strata_core.testing import FakeClock

TTL = timedelta(seconds=30)
LOOPS = 2


@attrs.frozen
class State:
    trace: tuple[str, ...] = ()
    answers: int = 0


@attrs.frozen
class Step:
    """A node of a random graph.

    Attributes:
        targets: Where it goes on: one of them by what the trace is; one behind it is always among them.
        fails: How many of its attempts fail at every visit.
        gives_up: Whether all its attempts fail, so that its fallback takes over.
        fallback: The node that takes over.
        wait: What follows it: nothing, or a wait of this kind.
        on_reject: Where a rejection, or a timeout, goes on.
    """

    targets: tuple[int, ...]
    fails: int
    gives_up: bool
    fallback: int
    wait: WaitKind | None
    on_reject: int


@st.composite
def shapes(draw: st.DrawFn) -> tuple[Step, ...]:
    """Draw a graph: a chain with ways across, back and around, in which every node is reached and leads to the end."""
    count = draw(st.integers(1, 6))
    steps = []
    for number in range(count):
        forward = st.integers(number + 1, count - 1)
        targets: list[int] = []
        if number < count - 1:
            targets = [number + 1, *draw(st.lists(st.integers(0, count - 1), max_size=2))]
        steps.append(
            Step(
                tuple(dict.fromkeys(targets)),
                draw(st.sampled_from([0, 0, 0, 1, 2])),
                number < count - 1 and draw(st.sampled_from([False, False, False, True])),
                draw(forward) if number < count - 1 else number,
                draw(st.sampled_from([None, None, *WaitKind])),
                draw(forward) if number < count - 1 else number,
            )
        )
    return tuple(steps)


class IntrinsicError(Exception):
    """What a node of the graph raises at every visit, disturbed or not."""


def name(number: int) -> str:
    return f"n{number}"


Visit = Callable[[str, State, Any], Any]


def build(shape: tuple[Step, ...], policy: CheckpointPolicy, clock: FakeClock, visit: Visit) -> CompiledGraph[State]:
    """Make the graph of a shape; `visit` is awaited at the beginning of every attempt of a node."""
    graph = StateGraph(State)
    for number, step in enumerate(shape):
        retry = RetryPolicy(max_attempts=step.fails + 1, initial_delay=timedelta(0), retry_on=IntrinsicError)
        graph.add_node(
            name(number),
            _node(name(number), step, visit),
            retry=retry,
            fallback=name(step.fallback) if step.gives_up else None,
        )
    for number, step in enumerate(shape):
        if len(step.targets) == 1:
            graph.add_edge(name(number), name(step.targets[0]))
        elif step.targets:
            graph.add_conditional_edge(name(number), _router(number, step), [name(target) for target in step.targets])
        has_route = number < len(shape) - 1
        route = name(step.on_reject) if has_route else None
        if step.wait is WaitKind.PERSON:
            graph.add_interrupt_boundary(
                name(number), on_reject=route, timeout=timedelta(hours=1) if has_route else None, on_timeout=route
            )
        elif step.wait is WaitKind.EVENT:
            graph.add_wait_for_event(
                name(number), "paid", timeout=timedelta(hours=1) if has_route else None, on_timeout=route
            )
        elif step.wait is WaitKind.TIMER:
            graph.add_timer(name(number), timedelta(hours=2))
    return graph.compile(checkpointing=policy, clock=clock, lease_ttl=TTL, completion_record=True)


def _node(node: str, step: Step, visit: Visit) -> Any:
    async def work(state: State, ctx: Any) -> State:
        await visit(node, state, ctx)
        if step.gives_up or ctx.attempt <= step.fails:
            raise IntrinsicError(node)
        return attrs.evolve(state, trace=(*state.trace, node))

    return work


def _router(number: int, step: Step) -> Any:
    def choose(state: State) -> str:
        turns = state.trace.count(name(number))
        if turns > LOOPS:
            return name(number + 1)
        return name(step.targets[(turns + len(state.trace)) % len(step.targets)])

    return choose


def answer_to(checkpoint: Checkpoint) -> HumanSignal | EventSignal | None:
    """Return the one answer that a waiting thread gets, whoever gives it and whenever; None lets it become due."""
    answers, trace = checkpoint.frozen_state["answers"], checkpoint.frozen_state["trace"]
    kind = WaitKind.PERSON if checkpoint.wait is None else checkpoint.wait.kind
    may_time_out = checkpoint.wait is not None and checkpoint.wait.due_at is not None
    choice = (len(trace) + answers) % 3
    if kind is WaitKind.TIMER or (may_time_out and choice == 2):
        return None
    if kind is WaitKind.EVENT:
        return EventSignal("paid", {"answers": answers + 1})
    signal = HumanSignal(choice == 0, "jdoe")
    return signal.with_override("answers", answers + 1)
