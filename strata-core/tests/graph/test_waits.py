"""Boundaries with a timeout, and what every wait has in common."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from strata_core.errors import GraphValidationError, InvalidInputError
from strata_core.graph import (
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    Completed,
    EventSignal,
    FailureCode,
    HumanSignal,
    Interrupted,
    LevelSignals,
    ProblemCode,
    RetryPolicy,
    StateGraph,
)
from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    GraphIdentity,
    ThreadQuery,
    ThreadState,
    Wait,
    WaitKind,
)

pytestmark = pytest.mark.once("rules, judged by the row that was read; test_table.py shows that stores keep it")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
DAY = timedelta(days=1)
ORDERS = GraphIdentity("orders", "1")
APPROVE = HumanSignal.approve("jdoe")
DUE = LevelSignals.due()
ANY: Any = LevelSignals


@attrs.frozen
class Order:
    total: int = 0
    path: str = ""
    by: str | None = None


def step(name: str) -> Any:
    def node(state: Order, ctx: Any) -> Order:
        by = None if ctx.decision is None else ctx.decision.reviewer
        return attrs.evolve(state, path=state.path + name, by=by)

    return node


def graph(world: Any, policy: CheckpointPolicy, *, wait: Any = None, identity: Any = ORDERS, **options: Any) -> Any:
    """A graph that waits after A; B comes next, C after a rejection, D after a timeout."""
    builder = new(Order)
    for name in "ABCD":
        builder.add_node(name, step(name))
    builder.add_conditional_edge("A", lambda state: "B", ["B", "C", "D"])
    (wait or with_timeout)(builder)
    return builder.compile(checkpointing=policy, clock=world.clock, identity=identity, **options)


def with_timeout(builder: Any, timeout: timedelta = DAY, on_timeout: str | None = "D") -> Any:
    return builder.add_interrupt_boundary("A", on_reject="C", timeout=timeout, on_timeout=on_timeout)


def without_route(builder: Any) -> Any:
    return with_timeout(builder, on_timeout=None)


def without_wait(builder: Any) -> Any:
    return builder


class TestCompile:
    def keep(self, state: Any) -> Any:
        return state

    def problems(self, build: Any) -> list[tuple[str, str | None, str]]:
        builder = build(new(dict).add_node("A", self.keep).add_node("B", self.keep).add_edge("A", "B"))
        with pytest.raises(GraphValidationError) as caught:
            builder.compile()
        return [(problem.code, problem.node, problem.text) for problem in caught.value.problems]

    @pytest.mark.parametrize(
        ("build", "code", "text"),
        [
            (
                lambda b: b.add_interrupt_boundary("A", timeout=timedelta(microseconds=-1)),
                ProblemCode.INVALID_TIMEOUT,
                "the timeout of an interrupt boundary at node 'A' must be a timedelta of zero or more, at most 36525",
            ),
            (
                lambda b: b.add_interrupt_boundary("A", timeout=60),
                ProblemCode.INVALID_TIMEOUT,
                "the timeout of an interrupt boundary at node 'A' must be a timedelta, not int",
            ),
            (
                lambda b: b.add_interrupt_boundary("A", on_timeout="B"),
                ProblemCode.INVALID_TIMEOUT,
                "an interrupt boundary at node 'A' has the timeout route 'B' and no timeout",
            ),
            (
                lambda b: b.add_interrupt_boundary("A", timeout=DAY, on_timeout="b"),
                ProblemCode.DANGLING_EDGE,
                "the timeout route of an interrupt boundary at node 'A' names 'b', which is no node",
            ),
            (
                lambda b: b.add_wait_for_event("A", ""),
                ProblemCode.INVALID_EVENT_TYPE,
                "the event type of the wait at node 'A' must not be empty",
            ),
            (
                lambda b: b.add_wait_for_event("A", "x" * 513),
                ProblemCode.INVALID_EVENT_TYPE,
                "the event type of the wait at node 'A' has 513 UTF-8 bytes, at most 512 are allowed",
            ),
            (
                lambda b: b.add_wait_for_event("A", 7),
                ProblemCode.INVALID_EVENT_TYPE,
                "the event type of the wait at node 'A' must be a str, not int",
            ),
            (
                lambda b: b.add_wait_for_event("A", "a\0"),
                ProblemCode.INVALID_EVENT_TYPE,
                "the event type of the wait at node 'A' must not contain NUL",
            ),
            (
                lambda b: b.add_wait_for_event("A", "paid", timeout=timedelta.max),
                ProblemCode.INVALID_TIMEOUT,
                "the timeout of an event wait at node 'A' must be a timedelta of zero or more",
            ),
            (
                lambda b: b.add_wait_for_event("A", "paid", on_timeout="B"),
                ProblemCode.INVALID_TIMEOUT,
                "an event wait at node 'A' has the timeout route 'B' and no timeout; give it timeout=timedelta(...)",
            ),
            (
                lambda b: b.add_timer("A", 60),
                ProblemCode.INVALID_TIMEOUT,
                "the delay of the timer at node 'A' must be a timedelta, or a function that tells one, not int",
            ),
            (
                lambda b: b.add_timer("A", None),
                ProblemCode.INVALID_TIMEOUT,
                "the delay of the timer at node 'A' must be a timedelta, or a function that tells one, not NoneType",
            ),
            (
                lambda b: b.add_timer("A", -DAY),
                ProblemCode.INVALID_TIMEOUT,
                "the delay of the timer at node 'A' must be a timedelta of zero or more",
            ),
            (
                lambda b: b.add_timer("A", lambda: DAY),
                ProblemCode.INVALID_HANDLER,
                "the delay of the timer at node 'A' takes no parameter",
            ),
            (
                lambda b: b.add_timer("A", DAY).add_wait_for_event("A", "paid"),
                ProblemCode.DUPLICATE_WAIT,
                "node 'A' has 2 waits; put another node between two",
            ),
        ],
    )
    def test_a_wait_that_cannot_be_is_a_problem_with_its_own_text(self, build: Any, code: str, text: str) -> None:
        ((found, node, said),) = self.problems(build)

        assert (code, "A") == (found, node)
        assert said.startswith(text)

    def test_a_wait_at_a_node_that_does_not_exist_is_a_problem(self) -> None:
        found = self.problems(
            lambda b: b.add_timer("X", DAY).add_wait_for_event("Y", "paid").add_wait_for_event(3, "p")
        )

        assert [
            (ProblemCode.DANGLING_EDGE, "X", "a timer names 'X', which is no node"),
            (ProblemCode.DANGLING_EDGE, "Y", "an event wait names 'Y', which is no node"),
            (ProblemCode.DANGLING_EDGE, 3, "an event wait names 3, which is no node"),
        ] == found

    def test_every_problem_of_every_wait_is_reported_at_once(self) -> None:
        found = self.problems(
            lambda b: (
                b.add_interrupt_boundary("A", timeout=-DAY, on_timeout="Gone")
                .add_wait_for_event("B", "", timeout="soon", on_timeout="Lost")
                .add_timer("B", "later")
            )
        )

        assert {
            (ProblemCode.DANGLING_EDGE, "A"): 1,
            (ProblemCode.DANGLING_EDGE, "B"): 1,
            (ProblemCode.DUPLICATE_WAIT, "B"): 1,
            (ProblemCode.INVALID_EVENT_TYPE, "B"): 1,
            (ProblemCode.INVALID_TIMEOUT, "A"): 1,
            (ProblemCode.INVALID_TIMEOUT, "B"): 2,
        } == {key: [f[:2] for f in found].count(key) for key in {f[:2] for f in found}}

    def test_a_node_that_only_a_timeout_leads_to_is_reached(self) -> None:
        builder = new(dict).add_node("A", self.keep).add_node("Late", self.keep)

        assert builder.add_wait_for_event("A", "paid", timeout=DAY, on_timeout="Late").compile()

    def test_a_loop_that_a_timeout_ends_is_no_endless_loop(self) -> None:
        def chat() -> Any:
            return new(dict).add_node("Ask", self.keep).add_node("Say", self.keep).add_edge("Ask", "Say")

        def loops(builder: Any) -> Any:
            return builder.add_edge("Say", "Ask")

        assert loops(chat()).add_wait_for_event("Ask", "message", timeout=DAY).compile()
        for forever in (
            loops(chat()).add_wait_for_event("Ask", "message"),
            loops(chat()).add_wait_for_event("Ask", "message", timeout=DAY, on_timeout="Say"),
            loops(chat()).add_timer("Ask", DAY),
        ):
            with pytest.raises(GraphValidationError, match="STRATA_ERR_NO_TERMINAL"):
                forever.compile()


@BOTH
def test_a_boundary_with_a_timeout_says_until_when_and_where_to_then(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            result = await graph(world, policy).run("t", Order(), store)

            wait = Wait(WaitKind.PERSON, None, world.clock.now() + DAY, "D")
            assert Interrupted("t", "A", "B", Order(path="A"), ("A",), wait) == result
            assert wait == (await world.log(store, "t"))[-1].wait
            (listed,) = (await store.list_threads(ThreadQuery(due_before=world.clock.now() + DAY))).threads
            assert wait == listed.wait
            assert () == tuple((await store.list_threads(ThreadQuery(due_before=world.clock.now()))).threads)

    asyncio.run(main())


@BOTH
def test_a_run_without_a_store_says_what_it_would_wait_for(world: Any, policy: CheckpointPolicy) -> None:
    result = asyncio.run(graph(world, policy).run("t", Order()))

    assert Wait(WaitKind.PERSON, None, world.clock.now() + DAY, "D") == result.wait


@BOTH
@pytest.mark.parametrize("later", [timedelta(0), DAY, 9 * DAY])
def test_the_person_may_answer_until_the_timeout_is_carried_out(
    world: Any, policy: CheckpointPolicy, later: timedelta
) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", Order(), store)
            world.clock.advance(later)

            assert Completed("t", Order(0, "AB", "jdoe")) == await compiled.resume("t", APPROVE, store)
            assert {} == (await compiled.wake_due(store)).refused
            assert ["resumed", "completed"][policy is CheckpointPolicy.EVERY_NODE] == (
                (await world.rows(store, "t"))[-1][0]
            )

    asyncio.run(main())


@BOTH
def test_a_timeout_strikes_at_its_time_and_not_a_microsecond_earlier(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", Order(), store)
            world.clock.advance(DAY - timedelta(microseconds=1))
            before = await world.log(store, "t")
            early = await compiled.resume("t", DUE, store)

            assert FailureCode.NOT_DUE is early.code
            assert "thread 't' is not due before 2026-01-02T00:00:00+00:00" == early.message
            assert ({}, {}) == attrs.astuple(await compiled.wake_due(store), recurse=False)[:2]
            assert before == await world.log(store, "t")
            world.clock.advance(timedelta(microseconds=1))
            assert Completed("t", Order(0, "AD")) == await compiled.resume("t", DUE, store)

    asyncio.run(main())


@BOTH
def test_a_timeout_goes_on_at_its_route_without_a_decision_and_with_the_metadata(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", Order(), store, metadata={"tenant": "acme"})
            world.clock.advance(DAY)
            result = await compiled.resume("t", DUE, store)
            log = await world.log(store, "t")

            assert Completed("t", Order(0, "AD")) == result
            assert {None} == {checkpoint.decision for checkpoint in log}
            assert {"tenant": "acme"} == log[-1].metadata
            if policy is CheckpointPolicy.BOUNDARIES:
                waiting, stamped = log
                assert world.clock.now() == stamped.resumed_at
                assert waiting == attrs.evolve(stamped, resumed_at=None)
            else:
                assert [
                    ("running", None, "A"),
                    ("interrupted", "A", "B"),
                    ("running", "A", "D"),
                    ("completed", "D", None),
                ] == await world.rows(store, "t")
                assert [None, WaitKind.PERSON, None, None] == [c.wait and c.wait.kind for c in log]

    asyncio.run(main())


@BOTH
def test_an_earlier_decision_stays_in_effect_through_waits_that_decide_nothing(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            builder = new(Order)
            for name in "ABCDE":
                builder.add_node(name, step(name))
            for source, target in ("AB", "BC", "CD", "DE"):
                builder.add_edge(source, target)
            builder.add_interrupt_boundary("A").add_wait_for_event("B", "paid").add_timer("C", DAY)
            builder.add_interrupt_boundary("D", timeout=DAY, on_timeout="E")
            compiled = builder.compile(checkpointing=policy, clock=world.clock)
            await compiled.run("t", Order(), store)
            await compiled.resume("t", APPROVE, store)
            await compiled.signal("t", EventSignal("paid"), store)
            for _ in range(2):
                world.clock.advance(DAY)
                (result,) = (await compiled.wake_due(store)).results.values()

            assert Completed("t", Order(0, "ABCDE", "jdoe")) == result
            decision = (await world.log(store, "t"))[-1].decision
            assert ("A", "jdoe") == (decision.boundary, decision.reviewer)

    asyncio.run(main())


@BOTH
def test_a_timeout_without_a_route_ends_the_thread(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy, wait=without_route)
            await compiled.run("t", Order(7), store, metadata={"tenant": "acme"})
            waiting = (await world.log(store, "t"))[-1]
            world.clock.advance(DAY)
            result = await compiled.resume("t", DUE, store)

            assert Cancelled("t", CancelReason.TIMED_OUT, "A") == result
            last = (await world.log(store, "t"))[-1]
            assert (ThreadState.ENDED, "A", None, None) == (last.state, last.suspended_node, last.next_node, last.wait)
            assert {"tenant": "acme", "strata.cancel_reason": "timed_out"} == last.metadata
            assert (waiting.frozen_state, ORDERS, world.clock.now()) == (last.frozen_state, last.graph, last.created_at)
            assert None is await store.live_lease("t")

            for late in (APPROVE, DUE, None):
                refused = await compiled.resume("t", late, store)
                assert FailureCode.ENDED is refused.code
                assert "thread 't' timed out, and was ended by that" == refused.message
            world.clock.advance(DAY)
            assert 1 == await store.purge(world.clock.now())

    asyncio.run(main())


@BOTH
class TestTheStoredWaitRules:
    def wait_then(self, world: Any, policy: CheckpointPolicy, first: Any, then: Any, *, passed: timedelta) -> Any:
        """Let a thread stop in one graph, and be woken by another."""

        async def main() -> Any:
            async with world.open() as store:
                await first.run("t", Order(), store)
                world.clock.advance(passed)
                before = len(await world.log(store, "t"))
                result = await then.resume("t", DUE, store)
                return result, len(await world.log(store, "t")) - before

        return asyncio.run(main())

    def test_without_the_wait(self, world: Any, policy: CheckpointPolicy) -> None:
        then = graph(world, policy, wait=without_wait)
        result, _ = self.wait_then(world, policy, graph(world, policy), then, passed=DAY)

        assert Completed("t", Order(0, "AD")) == result

    def test_with_another_timeout(self, world: Any, policy: CheckpointPolicy) -> None:
        then = graph(world, policy, wait=lambda b: with_timeout(b, timeout=9 * DAY, on_timeout="C"))
        result, _ = self.wait_then(world, policy, graph(world, policy), then, passed=DAY)

        assert Completed("t", Order(0, "AD")) == result

    def test_with_a_route_that_the_graph_has_got_since(self, world: Any, policy: CheckpointPolicy) -> None:
        first = graph(world, policy, wait=without_route)
        result, _ = self.wait_then(world, policy, first, graph(world, policy), passed=DAY)

        assert Cancelled("t", CancelReason.TIMED_OUT, "A") == result

    def test_a_wait_that_the_graph_has_got_since_does_not_make_a_person_wait_less(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        first = graph(world, policy, wait=lambda b: b.add_interrupt_boundary("A"))
        result, rows = self.wait_then(world, policy, first, graph(world, policy), passed=9 * DAY)

        assert (FailureCode.NEVER_DUE, 0) == (result.code, rows)
        assert "thread 't' waits for a person, for as long as it takes" == result.message

    def test_with_a_route_that_the_graph_has_lost_it_is_refused_with_the_way_out(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        then = new(Order).add_node("A", step("A")).add_node("B", step("B")).add_edge("A", "B")
        result, rows = self.wait_then(
            world, policy, graph(world, policy), then.compile(checkpointing=policy, clock=world.clock), passed=DAY
        )

        assert (FailureCode.UNKNOWN_NODE, 0) == (result.code, rows)
        assert (
            "thread 't' has timed out and goes on at node 'D', which this graph does not have; "
            "keep a node of that name for the threads that wait, or end the thread with graph.end()"
        ) == result.message

    @pytest.mark.parametrize(("its", "ours"), [(ORDERS, ORDERS), (None, ORDERS), (ORDERS, None), (None, None)])
    def test_only_a_graph_that_an_id_ties_to_a_thread_ends_one_that_waits_at_a_node_it_has_lost(
        self, world: Any, policy: CheckpointPolicy, its: GraphIdentity | None, ours: GraphIdentity | None
    ) -> None:
        first = graph(world, policy, wait=without_route, identity=its)
        then = new(Order).add_node("X", step("X")).compile(checkpointing=policy, clock=world.clock, identity=ours)
        result, rows = self.wait_then(world, policy, first, then, passed=DAY)

        if its is None or ours is None:
            assert (FailureCode.UNKNOWN_NODE, 0) == (result.code, rows)
            assert "has timed out at node 'A', which this graph does not have" in result.message
        else:
            assert (Cancelled("t", CancelReason.TIMED_OUT, "A"), 1) == (result, rows)

    def test_an_event_wait_that_has_become_a_boundary_still_takes_its_event_only(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                await graph(world, policy, wait=lambda b: b.add_wait_for_event("A", "paid")).run("t", Order(), store)
                then = graph(world, policy)

                assert FailureCode.WRONG_WAIT is (await then.resume("t", APPROVE, store)).code
                assert Completed("t", Order(0, "AB")) == await then.signal("t", EventSignal("paid"), store)

        asyncio.run(main())


@BOTH
class TestWhereverItStands:
    def test_a_wait_on_a_fallback_node_stops_after_it(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = (
                    new(Order)
                    .add_node("A", lambda state: 1 / 0, fallback="B")
                    .add_node("B", step("B"))
                    .add_node("C", step("C"))
                    .add_edge("A", "C")
                    .add_edge("B", "C")
                    .add_timer("A", DAY)
                    .add_wait_for_event("B", "paid")
                    .compile(checkpointing=policy, clock=world.clock)
                )
                stopped = await compiled.run("t", Order(), store)

                assert (("B",), Wait(WaitKind.EVENT, "paid")) == (stopped.waiting_at, stopped.wait)
                assert Completed("t", Order(0, "BC")) == await compiled.signal("t", EventSignal("paid"), store)

        asyncio.run(main())

    def test_a_timeout_counts_from_the_attempt_that_came_through(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:

                def flaky(state: Order, ctx: Any) -> Order:
                    world.clock.advance(DAY)
                    if ctx.attempt < 3:
                        raise ConnectionError
                    return state

                compiled = (
                    new(Order)
                    .add_node("A", flaky, retry=RetryPolicy(3))
                    .add_interrupt_boundary("A", timeout=DAY)
                    .compile(checkpointing=policy, clock=world.clock, lease_ttl=30 * DAY)
                )
                begun = world.clock.now()
                stopped = await compiled.run("t", Order(), store)

                assert begun + 4 * DAY == stopped.wait.due_at

        asyncio.run(main())

    def test_a_deadline_that_passes_in_the_node_before_does_not_keep_the_thread_from_waiting(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:

                def slow(state: Order) -> Order:
                    world.clock.advance(60)
                    return state

                compiled = (
                    new(Order)
                    .add_node("A", slow)
                    .add_wait_for_event("A", "paid", timeout=DAY)
                    .compile(checkpointing=policy, clock=world.clock, lease_ttl=DAY)
                )
                stopped = await compiled.run("t", Order(), store, deadline=timedelta(seconds=30))

                assert world.clock.now() + DAY == stopped.wait.due_at
                assert "interrupted" == (await world.rows(store, "t"))[-1][0]

        asyncio.run(main())

    def test_a_thread_that_waits_again_waits_from_then_on(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = (
                    new(Order)
                    .add_node("Ask", step("A"))
                    .add_node("Remind", step("R"))
                    .add_node("End", step("E"))
                    .add_edge("Ask", "End")
                    .add_conditional_edge("Remind", lambda state: "Ask", ["Ask"])
                    .add_interrupt_boundary("Ask", timeout=DAY, on_timeout="Remind")
                    .compile(checkpointing=policy, clock=world.clock)
                )
                stopped = await compiled.run("t", Order(), store)
                for _ in range(3):
                    assert world.clock.now() + DAY == stopped.wait.due_at
                    world.clock.advance(DAY)
                    stopped = await compiled.resume("t", DUE, store)

                assert Completed("t", Order(0, "ARARARAE", "jdoe")) == await compiled.resume("t", APPROVE, store)

        asyncio.run(main())

    def test_a_thread_that_failed_after_its_wait_is_resumed_and_waits_for_nothing(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                fails = [True]

                def pay(state: Order) -> Order:
                    if fails.pop():
                        raise ConnectionError
                    return attrs.evolve(state, total=1)

                compiled = (
                    new(Order)
                    .add_node("A", step("A"))
                    .add_node("Pay", pay)
                    .add_edge("A", "Pay")
                    .add_wait_for_event("A", "paid", timeout=DAY)
                    .compile(checkpointing=policy, clock=world.clock)
                )
                await compiled.run("t", Order(), store)
                failed = await compiled.signal("t", EventSignal("paid"), store)
                world.clock.advance(9 * DAY)

                assert FailureCode.NODE_FAILED is failed.code
                assert None is (await world.log(store, "t"))[-1].wait
                assert FailureCode.NOT_WAITING is (await compiled.signal("t", EventSignal("paid"), store)).code
                assert ({}, {}) == attrs.astuple(await compiled.wake_due(store), recurse=False)[:2]
                fails.append(False)
                assert Completed("t", Order(1, "A")) == await compiled.resume("t", None, store)

        asyncio.run(main())


@BOTH
def test_a_failed_thread_that_goes_on_nowhere_has_not_completed(world: Any, policy: CheckpointPolicy) -> None:
    """Only a wait can stand at an end of the graph."""

    async def main() -> None:
        async with world.open() as store:
            row = Checkpoint("t", CheckpointStatus.FAILED, {"total": 0, "path": "", "by": None}, world.clock.now(), "B")
            await store.save(row)

            for answer in (None, APPROVE):
                assert FailureCode.UNKNOWN_NODE is (await graph(world, policy).resume("t", answer, store)).code

    asyncio.run(main())


class TestLevelSignals:
    def test_they_are_values_that_chain(self) -> None:
        one = LevelSignals(APPROVE).with_outer((), "total", 1).with_outer(("Work",), "n", [2]).with_outer((), "by", "x")

        assert LevelSignals(APPROVE, {(): {"total": 1, "by": "x"}, ("Work",): {"n": [2]}}) == one
        assert LevelSignals(EventSignal("paid")) == LevelSignals.event(EventSignal("paid"))
        assert LevelSignals.due() == LevelSignals.due()
        assert LevelSignals.due() != LevelSignals(None)
        with pytest.raises(TypeError):
            one.outer[()] = {}  # type: ignore[index]
        with pytest.raises(TypeError):
            one.outer[()]["total"] = 2  # type: ignore[index]

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda: ANY("approve"), "signal: must be a HumanSignal, an EventSignal or None, not str"),
            (lambda: ANY.event(APPROVE), "signal: must be an EventSignal, not HumanSignal"),
            (lambda: LevelSignals(None, []), "outer: must be a mapping, not list"),
            (
                lambda: LevelSignals(None, {"Work": {}}),
                "outer: a path is a tuple of names of subgraph nodes, not 'Work'",
            ),
            (
                lambda: LevelSignals(None, {(1,): {}}),
                r"outer: a path is a tuple of names of subgraph nodes, not \(1,\)",
            ),
            (lambda: LevelSignals(None, {(): 1}), r"outer\[\(\)\]: must be a mapping, not int"),
            (lambda: LevelSignals(None, {("W",): {1: 1}}), r"outer\[\('W',\)\]: keys must be str, not int"),
            (
                lambda: ANY(None).with_outer("Work", "n", 1),
                "path: a path is a tuple of names of subgraph nodes",
            ),
        ],
    )
    def test_what_is_none_is_refused_by_name(self, make: Any, text: str) -> None:
        with pytest.raises(InvalidInputError, match=f"^{text}"):
            make()

    @BOTH
    def test_one_without_outer_levels_is_the_signal_itself(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = graph(world, policy)
                await compiled.run("t", Order(), store)
                signals = LevelSignals(HumanSignal.reject("jdoe").with_override("total", 3))

                assert Completed("t", Order(3, "AC", "jdoe")) == await compiled.resume("t", signals, store)

        asyncio.run(main())

    @BOTH
    @pytest.mark.parametrize("path", [(), ("A",), ("Work", "Inner")])
    def test_a_graph_without_levels_refuses_their_overrides(
        self, world: Any, policy: CheckpointPolicy, path: tuple[str, ...]
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = graph(world, policy)
                await compiled.run("t", Order(), store)
                before = await world.log(store, "t")
                refused = await compiled.resume("t", LevelSignals(APPROVE).with_outer(path, "total", 1), store)

                assert FailureCode.UNKNOWN_LEVEL is refused.code
                assert f"thread 't' has no level {path!r} around" in refused.message
                assert before == await world.log(store, "t")

        asyncio.run(main())


def test_times_are_kept_in_utc_to_the_microsecond(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            world.clock.advance(timedelta(microseconds=123_457))
            compiled = graph(world, CheckpointPolicy.BOUNDARIES)
            stopped = await compiled.run("t", Order(), store)

            assert datetime(2026, 1, 2, 0, 0, 0, 123_457, UTC) == stopped.wait.due_at
            assert stopped.wait == (await store.load("t")).checkpoint.wait

    asyncio.run(main())
