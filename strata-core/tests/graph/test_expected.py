"""An answer, a signal and an end that are meant for one checkpoint: done at that one, and at no other."""

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
    Failed,
    FailureCode,
    HumanSignal,
    Interrupted,
    LevelSignals,
    StateGraph,
)
from strata_core.records import GraphIdentity, Revision

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
YES = HumanSignal.approve("ann")


@attrs.frozen
class Plan:
    done: tuple[str, ...] = ()


def note(name: str) -> Any:
    return lambda plan: attrs.evolve(plan, done=(*plan.done, name))


def two_stops(world: Any, policy: CheckpointPolicy, **options: Any) -> Any:
    """A graph that asks for the price first, and then for the payment."""
    return (
        new(Plan)
        .add_node("Price", note("Price"))
        .add_interrupt_boundary("Price")
        .add_node("Pay", note("Pay"))
        .add_interrupt_boundary("Pay")
        .add_node("Ship", note("Ship"))
        .add_edge("Price", "Pay")
        .add_edge("Pay", "Ship")
        .compile(checkpointing=policy, clock=world.clock, **options)
    )


def one_wait(world: Any, policy: CheckpointPolicy, wait: Any) -> Any:
    builder = new(Plan).add_node("Ask", note("Ask")).add_node("Go", note("Go")).add_edge("Ask", "Go")
    return wait(builder).compile(checkpointing=policy, clock=world.clock)


class Stale:
    """A store in which somebody comes between the load and the write of a call."""

    def __init__(self, store: Any, between: Any) -> None:
        self._store = store
        self._between = between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def load(self, thread_id: str) -> Any:
        entry = await self._store.load(thread_id)
        between, self._between = self._between, None
        if between is not None:
            await between()
        return entry


@BOTH
def test_a_stop_tells_the_revision_that_a_load_and_a_listing_tell(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            told: list[Interrupted[Plan]] = []
            graph = two_stops(world, policy, on_interrupted=told.append)
            first = await graph.run("t", Plan(), store)
            entry = await store.load("t")
            (summary,) = (await store.list_threads()).threads
            second = await graph.resume("t", YES, store, expected=summary.revision)
            latest = await store.load("t")

            assert [entry.revision] * 2 == [first.revision, summary.revision]
            assert latest.revision == second.revision
            assert [first.revision, second.revision] == [each.revision for each in told]
            assert ("Pay", Plan(("Price", "Pay"))) == (second.suspended_node, second.frozen_state)
            assert (await graph.run("t", Plan())).revision is None

    asyncio.run(main())


@BOTH
def test_an_answer_to_a_stop_that_was_answered_is_none_to_the_next(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            graph = two_stops(world, policy)
            seen = await graph.run("t", Plan(), store)
            now = await graph.resume("t", YES, store)
            before = await world.log(store, "t")
            late = await graph.resume("t", HumanSignal.approve("bob"), store, expected=seen.revision)

            assert FailureCode.CHANGED == late.code
            assert late.message == (
                f"thread 't' has gone on since checkpoint {seen.revision}, which was expected; look at it again: "
                f"it is interrupted at 'Pay', checkpoint {now.revision}"
            )
            assert before == await world.log(store, "t")
            assert Completed("t", Plan(("Price", "Pay", "Ship"))) == await graph.resume(
                "t", YES, store, expected=now.revision
            )

    asyncio.run(main())


@BOTH
def test_an_answer_does_not_try_a_node_again_that_has_failed_since(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            ran = []

            def fail(plan: Plan) -> Plan:
                ran.append(plan)
                raise ValueError("declined")

            graph = (
                new(Plan)
                .add_node("Ask", note("Ask"))
                .add_interrupt_boundary("Ask")
                .add_node("Pay", fail)
                .add_edge("Ask", "Pay")
                .compile(checkpointing=policy, clock=world.clock)
            )
            seen = await graph.run("t", Plan(), store)
            assert FailureCode.NODE_FAILED == (await graph.resume("t", YES, store)).code
            for signal in (YES, HumanSignal.reject("bob"), None):
                late = await graph.resume("t", signal, store, expected=seen.revision)
                assert FailureCode.CHANGED == late.code
            assert 1 == len(ran)
            failed = await store.load("t")
            assert FailureCode.NODE_FAILED == (await graph.resume("t", None, store, expected=failed.revision)).code

    asyncio.run(main())


def signalled(graph: Any, store: Any, expected: Any) -> Any:
    return graph.signal("t", EventSignal("paid"), store, expected=expected)


def event_answered(graph: Any, store: Any, expected: Any) -> Any:
    return graph.resume("t", LevelSignals.event(EventSignal("paid")), store, expected=expected)


def timed_out(graph: Any, store: Any, expected: Any) -> Any:
    return graph.resume("t", LevelSignals.due(), store, expected=expected)


def ended(graph: Any, store: Any, expected: Any) -> Any:
    return graph.end("t", store, expected=expected)


HOUR = timedelta(hours=1)
WAITS: dict[str, tuple[Any, Any]] = {
    "signal": (lambda builder: builder.add_wait_for_event("Ask", "paid"), signalled),
    "event": (lambda builder: builder.add_wait_for_event("Ask", "paid"), event_answered),
    "due": (lambda builder: builder.add_timer("Ask", HOUR), timed_out),
    "due, no route": (lambda builder: builder.add_interrupt_boundary("Ask", timeout=HOUR), timed_out),
    "end": (lambda builder: builder.add_interrupt_boundary("Ask"), ended),
}


@BOTH
@pytest.mark.parametrize("call", WAITS)
def test_every_call_that_answers_or_ends_takes_it(world: Any, policy: CheckpointPolicy, call: str) -> None:
    async def main() -> None:
        async with world.open() as store:
            wait, act = WAITS[call]
            graph = one_wait(world, policy, wait)
            seen = await graph.run("t", Plan(), store)
            now = await graph.run("t", Plan(), store)
            world.clock.advance(HOUR)
            before = await world.log(store, "t")
            refused = await act(graph, store, seen.revision)

            assert FailureCode.CHANGED == refused.code
            assert before == await world.log(store, "t")
            result = await act(graph, store, now.revision)
            assert isinstance(result, Completed | Cancelled)
            assert FailureCode.CHANGED == (await act(graph, store, now.revision)).code

    asyncio.run(main())


@BOTH
@pytest.mark.parametrize("winner", ["answer", "end"])
@pytest.mark.parametrize("call", ["resume", "end", "due, no route"])
def test_so_is_it_told_when_somebody_comes_in_between(
    world: Any, policy: CheckpointPolicy, winner: str, call: str
) -> None:
    async def main() -> None:
        async with world.open() as store:
            graph = one_wait(world, policy, WAITS["due, no route"][0])
            seen = await graph.run("t", Plan(), store)
            world.clock.advance(HOUR)

            async def win() -> None:
                result = await (graph.resume("t", YES, store) if winner == "answer" else graph.end("t", store))
                assert isinstance(result, Completed | Cancelled)

            slow = Stale(store, win)
            if call == "resume":
                refused = await graph.resume("t", YES, slow, expected=seen.revision)
            else:
                refused = await WAITS[call][1](graph, slow, seen.revision)

            assert isinstance(refused, Failed)
            assert FailureCode.CHANGED == refused.code

    asyncio.run(main())


def test_another_life_of_the_thread_is_another_checkpoint(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            graph = two_stops(world, CheckpointPolicy.BOUNDARIES)
            seen = await graph.run("t", Plan(), store)
            await graph.end("t", store)
            assert 1 == await store.purge(world.clock.now() + HOUR)
            assert FailureCode.NOT_FOUND == (await graph.resume("t", YES, store, expected=seen.revision)).code
            now = await graph.run("t", Plan(), store)

            assert seen.revision.sequence == now.revision.sequence
            assert FailureCode.CHANGED == (await graph.resume("t", YES, store, expected=seen.revision)).code

    asyncio.run(main())


def test_whose_thread_it_is_comes_first_and_a_lease_last(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            ours = two_stops(world, CheckpointPolicy.BOUNDARIES, identity=GraphIdentity("ours", "1"))
            theirs = two_stops(world, CheckpointPolicy.BOUNDARIES, identity=GraphIdentity("theirs", "1"))
            seen = await ours.run("t", Plan(), store)
            other = Revision(7, bytes(8))
            for call in (theirs.resume("t", YES, store, expected=other), theirs.end("t", store, expected=other)):
                assert FailureCode.WRONG_GRAPH == (await call).code
            await store.acquire_lease("t", owner="somebody", ttl=HOUR)
            for revision, code in ((other, FailureCode.CHANGED), (seen.revision, FailureCode.LEASE_HELD)):
                assert code == (await ours.resume("t", YES, store, expected=revision)).code
                assert code == (await ours.end("t", store, expected=revision)).code

    asyncio.run(main())


def test_without_an_event_loop_it_is_the_same(world: Any) -> None:
    graph = two_stops(world, CheckpointPolicy.BOUNDARIES)
    asyncio.run(run_in(world, graph))
    other = Revision(7, bytes(8))

    assert FailureCode.CHANGED == graph.resume_sync("t", YES, world.open(), expected=other).code
    assert FailureCode.CHANGED == graph.signal_sync("t", EventSignal("paid"), world.open(), expected=other).code
    assert FailureCode.CHANGED == graph.end_sync("t", world.open(), expected=other).code
    assert Cancelled("t", CancelReason.ENDED, "Price") == graph.end_sync("t", world.open())


async def run_in(world: Any, graph: Any) -> None:
    async with world.open() as store:
        await graph.run("t", Plan(), store)


@pytest.mark.parametrize("bad", [0, "0-0011223344556677", (0, bytes(8)), b"x"])
def test_what_names_no_checkpoint_is_refused(world: Any, bad: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            graph = two_stops(world, CheckpointPolicy.BOUNDARIES)
            await graph.run("t", Plan(), store)
            for call in (
                graph.resume("t", YES, store, expected=bad),
                graph.signal("t", EventSignal("paid"), store, expected=bad),
                graph.end("t", store, expected=bad),
            ):
                with pytest.raises(InvalidInputError, match=r"^expected: must be a Revision or None, not "):
                    await call

    asyncio.run(main())
