"""States of another version of the graph: brought up wherever a thread goes on, or refused and left as they are."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import attrs
import pytest

from strata_core.errors import InvalidInputError
from strata_core.graph import (
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    Completed,
    EventSignal,
    FailureCode,
    HumanSignal,
    LevelSignals,
    StateGraph,
)
from strata_core.records import GraphIdentity

pytestmark = pytest.mark.once("versions: a store is given the JSON")

new: Any = StateGraph
KIM = HumanSignal.approve("kim")
BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))


@attrs.frozen
class First:
    name: str = "Ann Example"


@attrs.frozen
class Third:
    first: str
    last: str
    country: str


THIRD = Third("Ann", "Example", "AT")


def split(state: dict[str, Any]) -> dict[str, Any]:
    state["first"], state["last"] = state.pop("name").split(" ")
    return state


def add_country(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "country": "AT"}


STEPS = {"1": split, "2": add_country}


def by_function(state: dict[str, Any], version: str) -> dict[str, Any]:
    return add_country(split(state)) if version == "1" else state


def graph(world: Any, tp: Any, version: str, wait: str = "person", **options: Any) -> Any:
    built = new(tp).add_node("A", lambda state: state).add_node("B", lambda state: state).add_edge("A", "B")
    if wait == "person":
        built.add_interrupt_boundary("A")
    elif wait == "event":
        built.add_wait_for_event("A", "paid", timeout=timedelta(hours=1), on_timeout="B")
    elif wait == "timer":
        built.add_timer("A", timedelta(hours=1))
    return built.compile(identity=GraphIdentity("g", version), clock=world.clock, **options)


async def go_on(world: Any, young: Any, store: Any, how: str) -> Any:
    if how == "resume":
        return await young.resume("t", KIM, store)
    if how == "signal":
        return await young.signal("t", EventSignal("paid"), store)
    if how == "level signal":
        return await young.resume("t", LevelSignals.event(EventSignal("paid")), store)
    if how == "recover":
        await world.lapse(store, "t", timedelta(seconds=30))
        return await young.recover("t", store)
    if how == "recover_all":
        await world.lapse(store, "t", timedelta(seconds=30))
        report = await young.recover_all(store)
    else:
        world.clock.advance(timedelta(hours=2))
        report = await young.wake_due(store)
    return {**report.results, **report.refused}["t"]


WAYS = {"resume": "person", "signal": "event", "level signal": "event", "wake a timer": "timer", "time out": "event"}
DEATHS = {"recover": "none", "recover_all": "none"}
HOW = pytest.mark.parametrize(
    ("how", "policy"),
    [(how, policy) for how in WAYS for policy in CheckpointPolicy]
    + [(how, CheckpointPolicy.EVERY_NODE) for how in DEATHS],
)


async def leave(world: Any, store: Any, how: str, policy: CheckpointPolicy) -> None:
    """Leave a thread of version 1 where it can go on."""
    old = graph(world, First, "1", (WAYS | DEATHS)[how], checkpointing=policy)
    if how in WAYS:
        await old.run("t", First(), store)
        return
    begun = asyncio.Event()

    async def hang(state: First) -> First:
        begun.set()
        await asyncio.Event().wait()
        return state

    dying = new(First).add_node("A", hang).add_node("B", lambda state: state).add_edge("A", "B")
    compiled = dying.compile(identity=GraphIdentity("g", "1"), clock=world.clock, checkpointing=policy)
    await world.die(lambda process: compiled.run("t", First(), process), store, begun)


@HOW
@pytest.mark.parametrize("upcast", [STEPS, by_function], ids=["steps", "function"])
def test_a_state_is_brought_up_however_the_thread_goes_on(
    world: Any, how: str, policy: CheckpointPolicy, upcast: Any
) -> None:
    async def main() -> None:
        async with world.open() as store:
            await leave(world, store, how, policy)
            young = graph(world, Third, "3", (WAYS | DEATHS)[how], checkpointing=policy, upcast=upcast)

            assert Completed("t", THIRD) == await go_on(world, young, store, how)

    asyncio.run(main())


@HOW
@pytest.mark.parametrize(
    ("upcast", "detail"),
    [
        ({"1": split, "2": lambda state: 1 / 0}, "upcast from version '2': ZeroDivisionError: division by zero"),
        ({"1": lambda state: [state], "2": split}, "upcast from version '1' returned list, not a JSON object"),
        (lambda state, version: None, "upcast from version '1' returned NoneType, not a JSON object"),
        ({"0": split, "2": add_country}, "upcast from version '1': there are steps only from '0', '2'"),
        (
            lambda state, version: {"at": {1}},
            "what upcast returned cannot be saved: state.at: builtins.set has no JSON",
        ),
        ({"1": split}, "state.country: is missing; upcast from version '1' must return a state of version '3'"),
        (None, "state.name: is no field of Third; to read states of another version"),
    ],
    ids=["raises", "no object", "none", "no step", "no JSON", "does not fit", "no upcast"],
)
def test_what_cannot_be_brought_up_is_refused_and_the_thread_stays_as_it_is(
    world: Any, how: str, policy: CheckpointPolicy, upcast: Any, detail: str
) -> None:
    async def main() -> None:
        async with world.open() as store:
            await leave(world, store, how, policy)
            before = await world.log(store, "t")
            young = graph(world, Third, "3", (WAYS | DEATHS)[how], checkpointing=policy, upcast=upcast)
            result = await go_on(world, young, store, how)

            assert FailureCode.REHYDRATION_FAILED is result.code
            assert "failed to rehydrate state for thread 't'" == result.message
            assert result.detail.startswith(detail)
            assert before == await world.log(store, "t")
            assert None is await store.live_lease("t")

    asyncio.run(main())


@BOTH
def test_a_child_is_brought_up_by_its_own_steps_and_the_graph_around_it_by_its_own(
    world: Any, policy: CheckpointPolicy
) -> None:
    def outer(tp: Any, version: str, child: Any, **options: Any) -> Any:
        return (
            new(tp)
            .add_subgraph("Inner", child, enter=lambda state: First(), leave=lambda state, inner: state)
            .compile(identity=GraphIdentity("outer", version), clock=world.clock, checkpointing=policy, **options)
        )

    async def main() -> None:
        async with world.open() as store:
            await outer(First, "1", graph(world, First, "1")).run("t", First(), store)
            old_child = outer(Third, "3", graph(world, First, "1"), upcast=STEPS)
            broken = outer(Third, "3", graph(world, Third, "2", upcast={"1": split}), upcast=STEPS)
            refused = await broken.resume("t", KIM, store)

            assert FailureCode.REHYDRATION_FAILED is refused.code
            assert refused.detail.startswith("inside 'Inner': state.country: is missing")
            assert 1 == len([row for row in await world.log(store, "t") if row.state == "interrupted"])
            assert Completed("t", THIRD) == await old_child.resume("t", KIM, store)

            await outer(First, "1", graph(world, First, "1")).run("u", First(), store)
            young = outer(Third, "3", graph(world, Third, "7", upcast=STEPS), upcast=STEPS)
            assert Completed("u", THIRD) == await young.resume("u", KIM, store)

    asyncio.run(main())


@BOTH
def test_end_needs_no_state_and_asks_no_upcast(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            await graph(world, First, "1", checkpointing=policy).run("t", First(), store)
            result = await graph(world, Third, "3", checkpointing=policy).end("t", store)

            assert isinstance(result, Cancelled)
            assert CancelReason.ENDED is result.reason

    asyncio.run(main())


@BOTH
def test_a_newer_version_has_no_step_and_is_given_to_a_function(world: Any, policy: CheckpointPolicy) -> None:
    seen: list[str] = []

    def note(state: dict[str, Any], version: str) -> dict[str, Any]:
        seen.append(version)
        return state

    async def main() -> None:
        async with world.open() as store:
            await graph(world, First, "9", checkpointing=policy).run("t", First(), store)
            refused = await graph(world, First, "3", checkpointing=policy, upcast=STEPS).resume("t", KIM, store)
            assert FailureCode.REHYDRATION_FAILED is refused.code
            assert "upcast from version '9': there are steps only from '1', '2'" == refused.detail

            done = await graph(world, First, "3", checkpointing=policy, upcast=note).resume("t", KIM, store)
            assert Completed("t", First()) == done
            assert ["9"] == seen

    asyncio.run(main())


@BOTH
def test_an_override_is_of_the_state_that_was_brought_up(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            await graph(world, First, "1", checkpointing=policy).run("t", First(), store)
            young = graph(world, Third, "3", checkpointing=policy, upcast=STEPS)
            refused = await young.resume("t", KIM.with_override("name", "B"), store)
            assert FailureCode.INVALID_SIGNAL is refused.code

            result = await young.resume("t", KIM.with_override("country", "CH"), store)
            assert Completed("t", attrs.evolve(THIRD, country="CH")) == result

    asyncio.run(main())


@pytest.mark.parametrize(
    ("upcast", "problem"),
    [
        ({}, "must be a function of (state, version), or functions of the state by version"),
        ({"1": 3}, "the step from version '1' must be a function, not 3"),
        ({1: split}, "must be"),
        ({"3": split}, "has a step from version '3', which is that of the graph itself"),
    ],
    ids=str,
)
def test_steps_that_are_none_are_refused_when_the_graph_is_compiled(upcast: Any, problem: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        new(First).add_node("A", lambda state: state).compile(identity=GraphIdentity("g", "3"), upcast=upcast)

    assert caught.value.argument.startswith("upcast")
    assert problem in str(caught.value)


def test_a_compiled_graph_keeps_its_steps(world: Any) -> None:
    steps = dict(STEPS)

    async def main() -> None:
        async with world.open() as store:
            await graph(world, First, "1").run("t", First(), store)
            young = graph(world, Third, "3", upcast=steps)
            steps.clear()

            assert Completed("t", THIRD) == await young.resume("t", KIM, store)

    asyncio.run(main())
