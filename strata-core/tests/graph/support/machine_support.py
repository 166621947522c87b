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
MAX_INSIDE = 12
"""More visits inside of a subgraph than this count as another visit of the subgraph itself."""


@attrs.frozen
class State:
    trace: tuple[str, ...] = ()
    answers: int = 0


@attrs.frozen
class Item:
    """What a map's child works on: one of several that begin with the same trace."""

    trace: tuple[str, ...]
    number: int


@attrs.frozen
class Step:
    """A node of a random graph.

    Attributes:
        kind: A plain node, a parallel group, a map, or a subgraph.
        inside: The steps of the subgraph.
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
    kind: str = "node"
    inside: tuple[Step, ...] = ()


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> tuple[Step, ...]:
    """Draw a graph: a chain with ways across, back and around, in which every node is reached and leads to the end.

    Nodes may be groups, maps, and graphs of the same kind, down to a depth.
    """
    count = draw(st.integers(1, 6 if depth == 2 else 3))
    kinds = ["node", "node", "group", "map"] + ["subgraph"] * (2 if depth else 0)
    steps = []
    for number in range(count):
        forward = st.integers(number + 1, count - 1)
        targets: list[int] = []
        if number < count - 1:
            targets = [number + 1, *draw(st.lists(st.integers(0, count - 1), max_size=2))]
        kind = draw(st.sampled_from(kinds))
        steps.append(
            Step(
                tuple(dict.fromkeys(targets)),
                draw(st.sampled_from([0, 0, 0, 1, 2])),
                number < count - 1 and kind != "subgraph" and draw(st.sampled_from([False, False, False, True])),
                draw(forward) if number < count - 1 else number,
                draw(st.sampled_from([None, None, *WaitKind])),
                draw(forward) if number < count - 1 else number,
                kind,
                draw(shapes(depth - 1)) if kind == "subgraph" else (),
            )
        )
    return tuple(steps)


class IntrinsicError(Exception):
    """What a node of the graph raises at every visit, disturbed or not."""


def name(number: int) -> str:
    return f"n{number}"


Visit = Callable[[str, Step, Any, Any], Any]


def build(
    shape: tuple[Step, ...], policy: CheckpointPolicy, clock: FakeClock, visit: Visit, path: str = ""
) -> CompiledGraph[State]:
    """Make the graph of a shape; `visit` is awaited at the beginning of every attempt of a node, branch or item.

    Names in traces are paths: a node, the nodes of a subgraph after its own and a dot.
    """
    graph = StateGraph(State)
    for number, step in enumerate(shape):
        _add(graph, name(number), path + name(number), step, visit, clock)
    for number, step in enumerate(shape):
        if len(step.targets) == 1:
            graph.add_edge(name(number), name(step.targets[0]))
        elif step.targets:
            graph.add_conditional_edge(
                name(number), _router(path, number, step), [name(target) for target in step.targets]
            )
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


def _add(graph: StateGraph[State], node: str, path: str, step: Step, visit: Visit, clock: FakeClock) -> None:
    retry = RetryPolicy(max_attempts=step.fails + 1, initial_delay=timedelta(0), retry_on=IntrinsicError)
    fallback = name(step.fallback) if step.gives_up else None

    def done(state: State, *_: Any) -> State:
        return attrs.evolve(state, trace=(*state.trace, path))

    async def work(state: State, ctx: Any, suffix: str = "") -> State:
        await visit(path + suffix, step, state, ctx)
        if step.gives_up or ctx.attempt <= step.fails:
            raise IntrinsicError(path)
        return done(state)

    async def work_on_item(item: Item, ctx: Any) -> Item:
        await visit(f"{path}#{item.number}", step, item, ctx)
        if step.gives_up or (item.number == 1 and ctx.attempt <= step.fails):
            raise IntrinsicError(path)
        return item

    def branch(suffix: str) -> Any:
        return lambda state, ctx: work(state, ctx, suffix)

    def check(before: State, results: list[Any]) -> State:
        numbers = [result.number if isinstance(result, Item) else None for result in results]
        assert numbers in ([0, 1, 2], [None, None])
        return done(before)

    if step.kind == "group":
        branches = {suffix: branch(suffix) for suffix in ("/a", "/b")}
        graph.add_parallel_group(node, branches, check, retry=retry, fallback=fallback)
    elif step.kind == "map":
        child = StateGraph(Item).add_node("Work", work_on_item, retry=retry).compile()
        graph.add_map(
            node,
            child,
            lambda state: [Item(state.trace, number) for number in range(3)],
            check,
            max_concurrency=2,
            fallback=fallback,
        )
    elif step.kind == "subgraph":
        inside = build(step.inside, CheckpointPolicy.BOUNDARIES, clock, visit, f"{path}.")
        graph.add_subgraph(node, inside, enter=lambda state: state, leave=lambda _, last: last)
    else:
        graph.add_node(node, work, retry=retry, fallback=fallback)


def _router(path: str, number: int, step: Step) -> Any:
    own = path + name(number)

    def choose(state: State) -> str:
        # A subgraph has been passed as often as it was left for another node.
        visits = [".".join(visited.split(".")[: own.count(".") + 1]) for visited in state.trace]
        turns = sum(1 for visited, after in zip(visits, [*visits[1:], None], strict=True) if own == visited != after)
        turns = max(turns, visits.count(own) // MAX_INSIDE if step.inside else visits.count(own))
        if turns > LOOPS:
            return name(number + 1)
        return name(step.targets[(turns + len(state.trace)) % len(step.targets)])

    return choose


def innermost(checkpoint: Checkpoint) -> Checkpoint:
    """Return the record of the innermost subgraph that a thread stands in."""
    while checkpoint.nested is not None:
        checkpoint = checkpoint.nested
    return checkpoint


def answer_to(checkpoint: Checkpoint) -> HumanSignal | EventSignal | None:
    """Return the one answer that a waiting thread gets, whoever gives it and whenever; None lets it become due."""
    checkpoint = innermost(checkpoint)
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
