"""Two writers on one thread, one of them held up at each of its calls of the store in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import attrs
import pytest

from strata_core.graph import CheckpointPolicy, HumanSignal, LevelSignals, StateGraph
from strata_core.records import Checkpoint, CheckpointStatus, Wait, WaitKind

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

AT = datetime(2026, 1, 1, tzinfo=UTC)
SHORT = timedelta(seconds=0.4)


@attrs.frozen
class Order:
    trace: tuple[str, ...] = ()


class Held:
    """A store whose n-th call is held up, before it is made or before its answer is known, until it is let go."""

    def __init__(self, store: Any, at: int, after: bool) -> None:
        self._store = store
        self._left = at
        self._after = after
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **options: Any) -> Any:
            self._left -= 1
            here = self._left == -1
            if here and not self._after:
                await self._hold()
            answer = await method(*args, **options)
            if here and self._after:
                await self._hold()
            return answer

        return call

    async def _hold(self) -> None:
        self.reached.set()
        await self.go.wait()


class Overtaken:
    """A store on which somebody else is faster than the first write, and whose n-th call cancels who makes it."""

    def __init__(self, store: Any, rival: Any, at: int) -> None:
        self._store = store
        self._rival = rival
        self._at = at
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            number, self._made = self._made, self._made + 1
            if number == 1:
                await self._rival()
            if number == self._at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)
            return await getattr(self._store, name)(*args, **options)

        return call


class Meeting:
    """What two calls came to, one of which was held up while the other one ran."""

    def __init__(self, held: Any, other: Any, log: list[Any]) -> None:
        self.log = log
        self.codes = code(held), code(other)
        self.states = [row.state.value for row in log]

    def check_whole(self) -> None:
        """Whole steps, each node at most once, nothing behind an end."""
        done = 1
        for row in self.log:
            trace = tuple(row.frozen_state["trace"])

            assert ("Ask", "Pay", "Ship")[: len(trace)] == trace
            assert len(trace) - done in ({0, 1} if "resumed" not in self.states else {0, 2})
            done = len(trace)
        for final in ("ended", "completed"):
            assert final not in self.states[:-1]


def code(result: Any) -> str:
    detail = getattr(result, "code", None) or getattr(result, "reason", None)
    return type(result).__name__ if detail is None else f"{type(result).__name__} {detail}"


def compiled(world: Any, policy: CheckpointPolicy = CheckpointPolicy.EVERY_NODE, **options: Any) -> Any:
    graph = new(Order)
    for name in ("Ask", "Pay", "Ship"):
        graph.add_node(name, lambda order, name=name: attrs.evolve(order, trace=(*order.trace, name)))
    graph.add_edge("Ask", "Pay").add_edge("Pay", "Ship").add_interrupt_boundary("Ask")
    return graph.compile(checkpointing=policy, clock=world.clock, **options)


def row(thread_id: str, status: CheckpointStatus) -> Checkpoint:
    """A thread that was answered and died, or one that waits, and has waited for too long."""
    wait = Wait(WaitKind.PERSON, due_at=AT, on_timeout="Pay") if status is CheckpointStatus.INTERRUPTED else None
    return Checkpoint(thread_id, status, {"trace": ["Ask"]}, AT, "Ask", "Pay", wait=wait)


async def meetings(
    world: Any, status: CheckpointStatus, held: Any, other: Any, lapse: timedelta | None = None
) -> AsyncIterator[Meeting]:
    """Hold up one call at each of its calls of the store, before and after, and let another one run there."""
    async with world.pair() as (one, two):
        for after in (False, True):
            for at in count():
                thread_id = uuid4().hex
                await one.save(row(thread_id, status))
                store = Held(one, at, after)
                task = asyncio.create_task(held(store, thread_id))
                reached = asyncio.create_task(store.reached.wait())
                await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    reached.cancel()
                    assert at > 1, "it was never held up"
                    break
                if lapse is not None:
                    await world.lapse(two, thread_id, lapse)
                second = await other(two, thread_id)
                store.go.set()
                meeting = Meeting(await task, second, await world.log(one, thread_id))
                meeting.check_whole()
                yield meeting


RUNNING, INTERRUPTED = CheckpointStatus.RUNNING, CheckpointStatus.INTERRUPTED
BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))


def recover(graph: Any) -> Any:
    return lambda store, thread_id: graph.recover(thread_id, store)


def resume(graph: Any, who: str) -> Any:
    return lambda store, thread_id: graph.resume(thread_id, HumanSignal.approve(who), store)


def wake(graph: Any) -> Any:
    return lambda store, thread_id: graph.resume(thread_id, LevelSignals.due(), store)


def end(graph: Any, who: str) -> Any:
    return lambda store, thread_id: graph.end(thread_id, store, by=who)


def test_of_two_recoveries_one_finishes_the_thread(world: Any) -> None:
    async def main() -> None:
        one, two = (compiled(world, owner=name) for name in ("one", "two"))
        outcomes = set()
        async for meeting in meetings(world, RUNNING, recover(one), recover(two)):
            outcomes.add(meeting.codes)
            winner = ["one", "two"][meeting.codes.index("Completed")]

            assert ["running"] * 3 + ["completed"] == meeting.states
            assert [None, winner, None, None] == [row.metadata.get("strata.recovered_by") for row in meeting.log]

        assert {
            ("Failed completed", "Completed"),
            ("Failed already_resumed", "Completed"),
            ("Completed", "Failed lease_held"),
            ("Completed", "Failed completed"),
        } == outcomes

    asyncio.run(main())


@pytest.mark.parametrize("recovery_is_held", [True, False])
def test_of_a_recovery_and_an_end_one_wins(world: Any, recovery_is_held: bool) -> None:
    async def main() -> None:
        graph = compiled(world)
        calls = [recover(graph), end(graph, "ops")]
        outcomes = set()
        async for meeting in meetings(world, RUNNING, *(calls if recovery_is_held else reversed(calls))):
            recovered, ended = meeting.codes if recovery_is_held else reversed(meeting.codes)
            outcomes.add((recovered, ended))

            if recovered == "Completed":
                assert ["running"] * 3 + ["completed"] == meeting.states
            else:
                assert ["running", "ended"] == meeting.states
                assert "ops" == meeting.log[-1].metadata["strata.ended_by"]

        expected = {("Failed ended", "Cancelled ended"), ("Completed", "Failed completed")}
        expected.add(("Completed", "Failed lease_held" if recovery_is_held else "Failed already_resumed"))
        assert expected == outcomes

    asyncio.run(main())


@pytest.mark.parametrize("answer_is_held", [True, False])
def test_of_an_answer_and_an_end_one_wins(world: Any, answer_is_held: bool) -> None:
    async def main() -> None:
        graph = compiled(world)
        calls = [resume(graph, "jdoe"), end(graph, "ops")]
        winners = set()
        async for meeting in meetings(world, INTERRUPTED, *(calls if answer_is_held else reversed(calls))):
            resumed, ended = meeting.codes if answer_is_held else reversed(meeting.codes)
            winners.add(meeting.states[-1])

            if meeting.states[-1] == "ended":
                assert ("interrupted", "ended") == tuple(meeting.states)
                assert "Cancelled ended" == ended
                assert "Failed" == resumed.split()[0]
                assert "ops" == meeting.log[-1].metadata["strata.ended_by"]
            else:
                assert ["interrupted", "running", "running", "completed"] == meeting.states
                assert "Completed" == resumed
                assert "Failed" == ended.split()[0]
                assert "jdoe" == meeting.log[-1].decision.reviewer

        assert {"ended", "completed"} == winners

    asyncio.run(main())


def test_without_rows_between_nodes_an_end_that_comes_later_stands_and_the_run_writes_nothing_more(world: Any) -> None:
    async def main() -> None:
        graph = compiled(world, CheckpointPolicy.BOUNDARIES)
        recording = compiled(world, CheckpointPolicy.BOUNDARIES, completion_record=True)
        outcomes = set()
        for each in (graph, recording):
            async for meeting in meetings(world, INTERRUPTED, resume(each, "jdoe"), end(graph, "ops")):
                outcomes.add((each is recording, *meeting.codes))

                assert ("ended" == meeting.states[-1]) is ("Cancelled ended" == meeting.codes[1])

        lost = ("Failed ended", "Cancelled ended")
        assert {
            (False, *lost),
            (False, "Completed", "Cancelled ended"),
            (True, *lost),
            (True, "Cancelled ended", "Cancelled ended"),
            (True, "Completed", "Failed completed"),
        } == outcomes

    asyncio.run(main())


@BOTH
def test_of_two_answers_one_wins(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        graph = compiled(world, policy)
        losers = set()
        async for meeting in meetings(world, INTERRUPTED, resume(graph, "ann"), resume(graph, "bob")):
            winner = meeting.codes.index("Completed")
            losers.add(meeting.codes[1 - winner])

            assert {["ann", "bob"][winner]} == {row.decision.reviewer for row in meeting.log[1:]}

        assert {"Failed already_resumed"} == losers

    asyncio.run(main())


@BOTH
@pytest.mark.parametrize("answer_is_held", [True, False])
def test_of_an_answer_and_a_wake_one_wins(world: Any, policy: CheckpointPolicy, answer_is_held: bool) -> None:
    async def main() -> None:
        graph = compiled(world, policy)
        calls = [resume(graph, "jdoe"), wake(graph)]
        winners = set()
        async for meeting in meetings(world, INTERRUPTED, *(calls if answer_is_held else reversed(calls))):
            answered, woken = meeting.codes if answer_is_held else reversed(meeting.codes)
            winners.add("answer" if answered == "Completed" else "wake")

            assert 1 == [answered, woken].count("Completed")
            assert {"jdoe" if answered == "Completed" else None} == {
                row.decision and row.decision.reviewer for row in meeting.log[1:]
            }
            if policy is CheckpointPolicy.EVERY_NODE:
                assert ["interrupted", "running", "running", "completed"] == meeting.states
            else:
                assert ["interrupted", "resumed"] == meeting.states

        assert {"answer", "wake"} == winners

    asyncio.run(main())


@BOTH
@pytest.mark.parametrize("late", [lambda graph: resume(graph, "late"), wake], ids=["answer", "wake"])
@pytest.mark.parametrize(
    "rival", [lambda graph: resume(graph, "rival"), lambda graph: end(graph, "rival")], ids=["answer", "end"]
)
def test_a_call_that_was_too_late_writes_nothing_wherever_it_is_cancelled_then(
    world: Any, policy: CheckpointPolicy, late: Any, rival: Any
) -> None:
    async def main() -> None:
        graph = compiled(world, policy)
        async with world.open() as store:
            for at in count(1):
                thread_id = uuid4().hex
                await store.save(row(thread_id, INTERRUPTED))
                overtaken = Overtaken(store, lambda thread_id=thread_id: rival(graph)(store, thread_id), at)
                task = asyncio.create_task(late(graph)(overtaken, thread_id))
                await asyncio.wait({task})
                log = await world.log(store, thread_id)

                assert {"rival"} == {told_by(row) for row in log[1:]}
                assert "cancelled" not in [row.status.value for row in log]
                if not task.cancelled():
                    assert at > 2, "it was cancelled nowhere behind its refusal"
                    break

    asyncio.run(main())


def told_by(row: Any) -> Any:
    return row.metadata.get("strata.ended_by") or (row.decision and row.decision.reviewer)


def test_a_recovery_that_freezes_anywhere_for_longer_than_its_lease_lives_writes_nothing_more(world: Any) -> None:
    async def main() -> None:
        frozen, quick = compiled(world, lease_ttl=SHORT, owner="frozen"), compiled(world, owner="quick")
        outcomes = set()
        async for meeting in meetings(world, RUNNING, recover(frozen), recover(quick), SHORT):
            outcomes.add(meeting.codes)
            takers = [owner for row in meeting.log if (owner := row.metadata.get("strata.recovered_by"))]

            assert "completed" == meeting.states[-1]
            if meeting.codes == ("Cancelled lease_lost", "Completed"):
                assert ["frozen", "quick"] == takers
            else:
                assert ["quick" if meeting.codes[1] == "Completed" else "frozen"] == takers

        assert {
            ("Failed completed", "Completed"),
            ("Failed already_resumed", "Completed"),
            ("Cancelled lease_lost", "Completed"),
            ("Completed", "Failed completed"),
        } == outcomes

    asyncio.run(main())


def test_an_answered_thread_that_freezes_anywhere_goes_on_with_its_answer(world: Any) -> None:
    async def main() -> None:
        frozen, quick = compiled(world, lease_ttl=SHORT), compiled(world)
        outcomes = set()
        async for meeting in meetings(world, INTERRUPTED, resume(frozen, "jdoe"), recover(quick), SHORT):
            outcomes.add(meeting.codes)

            assert "completed" == meeting.states[-1]
            assert {"jdoe"} == {row.decision.reviewer for row in meeting.log[1:]}

        assert {
            ("Completed", "Failed not_running"),
            ("Cancelled lease_lost", "Completed"),
            ("Completed", "Failed completed"),
        } == outcomes

    asyncio.run(main())
