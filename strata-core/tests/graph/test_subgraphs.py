"""A graph as a node of another: where it waits, how it goes on, and what each level sees and keeps."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import attrs
import pytest
from levels_support import Draft, Order, Seen, child, outer, path_of, wrapped

from strata_core.graph import (
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
from strata_core.records import GraphIdentity, Wait, WaitKind

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
KIM = HumanSignal.approve("kim")
ALL = ("Before", "Write", "Approve", "Send", "After")


@pytest.fixture
def seen() -> Seen:
    return Seen()


class TestStraight:
    @BOTH
    def test_a_subgraph_runs_as_one_node(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy)
                result = await graph.run("t", Order(7.5), store)

                assert Completed("t", Order(7.5, "draft", ALL)) == result
                assert list(ALL) == seen.nodes

        asyncio.run(main())

    def test_without_a_store_it_costs_none(self, world: Any, seen: Seen) -> None:
        graph = outer(world, seen, wrapped(world, child(world, seen, wait=None)))

        assert Completed("t", Order(2.0, "draft", ALL)) == asyncio.run(graph.run("t", Order(2.0)))

    def test_it_leaves_no_row_under_boundaries(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                await outer(world, seen, child(world, seen, wait=None)).run("t", Order(), store)

                assert [] == await world.log(store, "t")

        asyncio.run(main())

    def test_every_inner_commit_is_an_outer_row_with_the_inner_record(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), CheckpointPolicy.EVERY_NODE)
                await graph.run("t", Order(3.0), store)
                log = await world.log(store, "t")

                assert [
                    [("running", None, "Before")],
                    [("running", "Before", "Work")],
                    [("running", "Work", "Work"), ("running", "Write", "Approve")],
                    [("running", "Work", "Work"), ("running", "Approve", "Send")],
                    [("running", "Work", "After")],
                    [("completed", "After", None)],
                ] == [path_of(row) for row in log]
                assert {"text": "draft", "amount": 3.0, "done": ["Write"]} == log[2].nested.frozen_state
                assert log[1].frozen_state == log[2].frozen_state == log[3].frozen_state
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_the_outermost_policy_counts(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = child(world, seen, wait=None, checkpointing=CheckpointPolicy.EVERY_NODE, completion_record=True)
                await outer(world, seen, inner).run("t", Order(), store)
                assert [] == await world.log(store, "t")

                inner = child(world, seen, wait=None, checkpointing=CheckpointPolicy.BOUNDARIES)
                await outer(world, seen, inner, CheckpointPolicy.EVERY_NODE).run("u", Order(), store)
                assert 6 == len(await world.log(store, "u"))

        asyncio.run(main())

    def test_a_subgraph_can_be_the_entry_the_end_and_the_only_node(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = child(world, seen, wait=None)
                same: Any = {"enter": lambda state: state, "leave": lambda _, done: done}
                graph = new(Draft).add_subgraph("Only", inner, **same)
                compiled = graph.compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                result = await compiled.run("t", Draft(), store)

                assert Completed("t", Draft(done=("Write", "Approve", "Send"))) == result
                assert [("running", None, "Only"), ("running", "Only", "Only"), ("running", "Only", "Only"),
                        ("completed", "Only", None)] == await world.rows(store, "t")  # fmt: skip

        asyncio.run(main())

    def test_enter_and_leave_may_be_async(self, world: Any, seen: Seen) -> None:
        async def into(state: Order) -> Draft:
            await asyncio.sleep(0)
            return Draft(amount=state.total + 1)

        async def out(state: Order, inner: Draft) -> Order:
            await asyncio.sleep(0)
            return attrs.evolve(state, total=inner.amount)

        graph = outer(world, seen, child(world, seen, wait=None), enter=into, leave=out)

        assert Completed("t", Order(2.0, "", ("Before", "After"))) == asyncio.run(graph.run("t", Order(1.0)))

    def test_what_one_level_changes_in_place_never_shows_on_another(self, world: Any) -> None:
        def grow(state: dict[str, Any]) -> dict[str, Any]:
            state["items"].append("inner")
            return state

        def out(state: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
            inner["items"].append("left")
            return {"items": state["items"], "inner": inner["items"]}

        inner = new(dict).add_node("Grow", grow).compile()
        graph = new(dict).add_subgraph("Work", inner, enter=lambda state: state, leave=out).compile()
        given = {"items": ["first"]}

        result = asyncio.run(graph.run("t", given))

        assert Completed("t", {"items": ["first"], "inner": ["first", "inner", "left"]}) == result
        assert {"items": ["first"]} == given


class TestWaiting:
    @BOTH
    def test_a_boundary_inside_stops_the_whole_thread(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, identity=GraphIdentity("letters", "2")), policy)
                result = await graph.run("t", Order(7.5), store, metadata={"tenant": "acme"})
                *_, row = await world.log(store, "t")

                state = Order(7.5, "", ("Before",))
                assert Interrupted("t", "Work", "Work", state, ("Work", "Approve")) == result
                assert [("interrupted", "Work", "Work"), ("interrupted", "Approve", "Send")] == path_of(row)
                assert {"total": 7.5, "note": "", "done": ["Before"]} == row.frozen_state
                assert {"text": "draft", "amount": 7.5, "done": ["Write", "Approve"]} == row.nested.frozen_state
                assert ("orders", "letters") == (row.graph.id, row.nested.graph.id)
                assert "acme" == row.metadata["tenant"]
                assert None is await store.live_lease("t")

        asyncio.run(main())

    @BOTH
    @pytest.mark.parametrize("depth", [0, 1, 3])
    def test_a_resume_goes_back_inside_and_runs_nothing_again(
        self, world: Any, seen: Seen, policy: CheckpointPolicy, depth: int
    ) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                inner = child(world, seen)
                for number in range(depth):
                    inner = wrapped(world, inner, f"Level{number}")
                graph = outer(world, seen, inner, policy)
                stopped = await graph.run("t", Order(7.5), one)

                path = ("Work", *(f"Level{number}" for number in reversed(range(depth))), "Approve")
                assert path == stopped.waiting_at
                assert Completed("t", Order(7.5, "draft", ALL)) == await graph.resume("t", KIM, other)
                assert list(ALL) == seen.nodes

        asyncio.run(main())

    def test_under_every_node_the_rows_tell_each_step_inside(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), CheckpointPolicy.EVERY_NODE)
                await graph.run("t", Order(), store)
                await graph.resume("t", KIM, store)

                assert [
                    [("running", None, "Before")],
                    [("running", "Before", "Work")],
                    [("running", "Work", "Work"), ("running", "Write", "Approve")],
                    [("interrupted", "Work", "Work"), ("interrupted", "Approve", "Send")],
                    [("running", "Work", "Work"), ("running", "Approve", "Send")],
                    [("running", "Work", "After")],
                    [("completed", "After", None)],
                ] == [path_of(row) for row in await world.log(store, "t")]

        asyncio.run(main())

    def test_under_boundaries_a_resume_copies_the_row_and_adds_only_its_time_and_the_inner_decision(
        self, world: Any, seen: Seen
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen))
                await graph.run("t", Order(), store)
                world.clock.advance(60)
                await graph.resume("t", KIM.with_override("text", "better"), store)
                before, after = await world.log(store, "t")

                decision = after.nested.decision
                assert ("Approve", "kim", {"text": "better"}) == (
                    decision.boundary,
                    decision.reviewer,
                    decision.overrides,
                )
                assert world.clock.now() == after.resumed_at == decision.decided_at
                nested = attrs.evolve(before.nested, decision=decision)
                assert attrs.evolve(before, resumed_at=after.resumed_at, nested=nested) == after

        asyncio.run(main())

    @BOTH
    def test_overrides_go_to_the_innermost_state(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, wrapped(world, child(world, seen)), policy)
                await graph.run("t", Order(7.5), store)
                unfit = await graph.resume("t", KIM.with_override("total", 1.0), store)

                assert FailureCode.INVALID_SIGNAL is unfit.code
                assert unfit.detail.startswith("inside 'Work' / 'Inner': state.total: is no field of Draft")

                result = await graph.resume(
                    "t", KIM.with_override("amount", 9.5).with_field_override("text", "x"), store
                )

                assert Completed("t", Order(9.5, "x", ALL)) == result

        asyncio.run(main())

    @BOTH
    def test_level_signals_correct_the_levels_around_as_well(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        def out(state: Order, inner: Draft) -> Order:
            return attrs.evolve(state, note=f"{state.note}+{inner.text}")

        same: Any = {"enter": lambda state: state, "leave": lambda mid, inner: attrs.evolve(inner, text=mid.text)}

        async def main() -> None:
            async with world.open() as store:
                middle = new(Draft).add_subgraph("Inner", child(world, seen), **same).compile()
                graph = outer(world, seen, middle, policy, leave=out)
                await graph.run("t", Order(), store)
                signals = LevelSignals(KIM.with_override("text", "innermost"))
                signals = signals.with_outer((), "note", "outermost").with_outer(("Work",), "text", "middle")
                result = await graph.resume("t", signals, store)

                assert Completed("t", Order(100.0, "outermost+middle", ("Before", "After"))) == result

        asyncio.run(main())

    @pytest.mark.parametrize("path", [("Work",), ("Work", "Approve"), ("Nowhere",), ("Work", "Inner")])
    def test_a_path_that_is_no_level_around_the_wait_is_refused(self, world: Any, seen: Seen, path: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen))
                await graph.run("t", Order(), store)
                refused = await graph.resume("t", LevelSignals(KIM).with_outer(path, "note", "x"), store)

                assert FailureCode.UNKNOWN_LEVEL is refused.code
                assert "the levels around it are ()" in refused.message
                assert 1 == len(await world.log(store, "t"))

        asyncio.run(main())

    @pytest.mark.parametrize(("value", "path"), [(3, "state.note: must be a str"), (float("nan"), "outer[()]")])
    def test_an_override_that_does_not_fit_an_outer_level_is_refused(
        self, world: Any, seen: Seen, value: Any, path: str
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen))
                await graph.run("t", Order(), store)
                refused = await graph.resume("t", LevelSignals(KIM).with_outer((), "note", value), store)

                assert FailureCode.INVALID_SIGNAL is refused.code
                assert path in refused.detail
                assert 1 == len(await world.log(store, "t"))

        asyncio.run(main())

    @BOTH
    def test_a_rejection_takes_the_route_inside(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), policy)
                await graph.run("t", Order(), store)
                result = await graph.resume("t", HumanSignal.reject("kim"), store)

                assert ("Before", "Write", "Approve", "Drop", "After") == result.state.done

        asyncio.run(main())

    @BOTH
    def test_a_wait_at_the_end_of_the_child_goes_on_around_it(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = new(Draft).add_node("Ask", seen.node("Ask")).add_interrupt_boundary("Ask").compile()
                graph = outer(world, seen, inner, policy)
                await graph.run("t", Order(), store)
                result = await graph.resume("t", KIM.with_override("text", "read"), store)

                assert Completed("t", Order(100.0, "read", ("Before", "Ask", "After"))) == result
                if policy is CheckpointPolicy.EVERY_NODE:
                    rows = [path_of(row) for row in await world.log(store, "t")]
                    assert [("running", "Work", "Work"), ("completed", "Ask", None)] == rows[3]

        asyncio.run(main())

    @BOTH
    def test_several_waits_inside_and_one_after_the_node_itself(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = (
                    new(Draft)
                    .add_node("One", seen.node("One"))
                    .add_node("Two", seen.node("Two"))
                    .add_edge("One", "Two")
                    .add_interrupt_boundary("One")
                    .add_interrupt_boundary("Two")
                    .compile()
                )
                same: Any = {"enter": lambda state: state, "leave": lambda _, done: done}
                graph = (
                    new(Draft)
                    .add_subgraph("Work", inner, **same)
                    .add_interrupt_boundary("Work")
                    .add_node("Last", seen.node("Last"))
                    .add_edge("Work", "Last")
                    .compile(checkpointing=policy, clock=world.clock)
                )
                stops = [await graph.run("t", Draft(), store)]
                stops += [await graph.resume("t", KIM, store) for _ in range(3)]

                waiting = [("Work", "One"), ("Work", "Two"), ("Work",)]
                assert waiting == [stop.waiting_at for stop in stops[:3]]
                assert Completed("t", Draft(done=("One", "Two", "Last"))) == stops[3]

        asyncio.run(main())


class TestDecisions:
    @BOTH
    def test_each_level_sees_only_answers_to_its_own_boundaries(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(Order)
                    .add_node("Before", seen.node("Before"))
                    .add_interrupt_boundary("Before")
                    .add_subgraph("Work", child(world, seen), enter=lambda _: Draft(), leave=lambda state, _: state)
                    .add_node("After", seen.node("After"))
                    .add_edge("Before", "Work")
                    .add_edge("Work", "After")
                    .compile(checkpointing=policy, clock=world.clock)
                )
                await graph.run("t", Order(), store)
                await graph.resume("t", HumanSignal.approve("ann"), store)
                inside = (await store.load("t")).checkpoint
                await graph.resume("t", HumanSignal.approve("bob"), store)

                assert None is seen.decision("Write")
                assert ("Approve", "bob") == (seen.decision("Send").boundary, seen.decision("Send").reviewer)
                assert ("Before", "ann") == (seen.decision("After").boundary, seen.decision("After").reviewer)
                assert ("ann", None) == (inside.decision.reviewer, inside.nested.decision)
                *_, last = await world.log(store, "t")
                assert "ann" == last.decision.reviewer

        asyncio.run(main())

    def test_an_inner_decision_stays_in_the_nested_record_as_long_as_the_child_runs(
        self, world: Any, seen: Seen
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), CheckpointPolicy.EVERY_NODE)
                await graph.run("t", Order(), store)
                seen.harm["Send"] = lambda: 1 / 0
                await graph.resume("t", KIM, store)
                *_, taken, failed = await world.log(store, "t")

                assert (None, "kim") == (taken.decision, taken.nested.decision.reviewer)
                assert (None, "kim") == (failed.decision, failed.nested.decision.reviewer)

                seen.harm.clear()
                await graph.resume("t", None, store)

                assert "kim" == seen.decision("Send").reviewer
                assert None is seen.decision("After")

        asyncio.run(main())

    def test_a_second_answer_is_told_that_it_was_answered(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), CheckpointPolicy.EVERY_NODE)
                await graph.run("t", Order(), store)
                late = []

                async def answer_again() -> None:
                    late.append(await graph.resume("t", KIM, store))

                seen.harm["Send"] = answer_again
                await graph.resume("t", KIM, store)

                assert [FailureCode.ALREADY_RESUMED] == [result.code for result in late]

        asyncio.run(main())


class TestOtherWaits:
    @BOTH
    def test_an_event_inside(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait="event"), policy)
                stopped = await graph.run("t", Order(), store)
                *_, row = await world.log(store, "t")

                wait = Wait(WaitKind.EVENT, "paid", world.clock.now() + timedelta(hours=1))
                assert wait == stopped.wait == row.wait == row.nested.wait
                assert FailureCode.WRONG_WAIT is (await graph.resume("t", KIM, store)).code
                assert FailureCode.WRONG_EVENT is (await graph.signal("t", EventSignal("lost"), store)).code
                result = await graph.signal("t", EventSignal("paid", {"amount": 3.5}), store)
                assert Completed("t", Order(3.5, "draft", ALL)) == result
                assert None is seen.decision("Send")

        asyncio.run(main())

    @BOTH
    def test_a_timer_inside_is_found_and_woken(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait="timer"), policy)
                await graph.run("t", Order(), store)
                assert {} == (await graph.wake_due(store)).results

                world.clock.advance(timedelta(hours=1))
                report = await graph.wake_due(store)

                assert {"t": Completed("t", Order(100.0, "draft", ALL))} == report.results

        asyncio.run(main())

    @BOTH
    def test_a_time_limit_inside_takes_the_route_inside(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait="limited"), policy)
                await graph.run("t", Order(), store)
                assert FailureCode.NOT_DUE is (await graph.resume("t", LevelSignals.due(), store)).code

                world.clock.advance(timedelta(hours=1))
                result = await graph.resume("t", LevelSignals.due().with_outer((), "note", "late"), store)

                assert Completed("t", Order(100.0, "draft", ("Before", "Write", "Approve", "Late", "After"))) == result

        asyncio.run(main())

    @BOTH
    def test_a_time_limit_inside_without_a_route_ends_the_whole_thread(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait="event"), policy)
                await graph.run("t", Order(), store)
                world.clock.advance(timedelta(hours=1))
                report = await graph.wake_due(store)

                assert (CancelReason.TIMED_OUT, "Work") == (report.results["t"].reason, report.results["t"].node)
                *_, row = await world.log(store, "t")
                assert [("ended", "Work", None), ("interrupted", "Approve", "Send")] == path_of(row)

        asyncio.run(main())


class TestThreadsThatNoLongerFit:
    def test_a_nested_state_that_no_longer_fits_is_refused_with_the_thread_and_the_path(
        self, world: Any, seen: Seen
    ) -> None:
        @attrs.frozen
        class Letter:
            text: int = 0
            amount: float = 1.0
            done: tuple[str, ...] = ()

        async def main() -> None:
            async with world.open() as store:
                await outer(world, seen, child(world, seen)).run("t-1", Order(), store)
                inner = new(Letter).add_node("Approve", seen.node("Approve")).add_node("Send", seen.node("Send"))
                inner = inner.add_edge("Approve", "Send").add_interrupt_boundary("Approve").compile()
                refused = await outer(world, seen, inner).resume("t-1", KIM, store)

                assert FailureCode.REHYDRATION_FAILED is refused.code
                assert "failed to rehydrate state for thread 't-1'" == refused.message
                assert refused.detail.startswith("inside 'Work': state.text: must be an int, not str")
                assert 1 == len(await world.log(store, "t-1"))

        asyncio.run(main())

    def test_a_child_of_another_version_is_brought_up_by_its_own_upcast(self, world: Any, seen: Seen) -> None:
        def upcast(state: dict[str, Any], version: str) -> dict[str, Any]:
            return {**state, "text": f"{state['text']} of {version}"}

        async def main() -> None:
            async with world.open() as store:
                old = child(world, seen, identity=GraphIdentity("letters", "1"))
                await outer(world, seen, old).run("t", Order(), store)
                young = child(world, seen, identity=GraphIdentity("letters", "2"), upcast=upcast)
                result = await outer(world, seen, young).resume("t", KIM, store)

                assert "draft of 1" == result.state.note

        asyncio.run(main())

    def test_a_graph_without_the_subgraph_refuses_the_thread(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                await outer(world, seen, wrapped(world, child(world, seen))).run("t", Order(), store)
                plain = new(Order).add_node("Work", seen.node("Work")).compile()
                refused = await plain.resume("t", KIM, store)
                assert FailureCode.UNKNOWN_NODE is refused.code
                assert "stopped inside the subgraph 'Work', which this graph does not have" in refused.message

                refused = await outer(world, seen, child(world, seen)).resume("t", KIM, store)
                assert FailureCode.UNKNOWN_NODE is refused.code
                assert "inside the subgraph 'Work' / 'Inner', which" in refused.message

                other = new(Draft).add_node("Send2", seen.node("Send2")).compile()
                refused = await outer(world, seen, wrapped(world, other)).resume("t", KIM, store)
                assert FailureCode.UNKNOWN_NODE is refused.code
                assert "goes on at node 'Send', which the subgraph 'Work' / 'Inner' does not have" in refused.message
                assert 1 == len(await world.log(store, "t"))

        asyncio.run(main())

    def test_another_graph_under_the_name_of_the_subgraph_refuses_the_thread(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                mails = child(world, seen, identity=GraphIdentity("mails", "1"))
                await outer(world, seen, mails).run("t", Order(), store)
                letters = child(world, seen, identity=GraphIdentity("letters", "1"))
                refused = await outer(world, seen, letters).resume("t", KIM, store)

                assert FailureCode.WRONG_GRAPH is refused.code
                assert "inside the subgraph 'Work' of graph 'mails', which is 'letters' here" in refused.message

        asyncio.run(main())

    @BOTH
    def test_it_can_be_ended_where_it_waits(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), policy)
                await graph.run("t", Order(), store)
                ended = await graph.end("t", store, by="ann")

                assert (CancelReason.ENDED, "Work") == (ended.reason, ended.node)
                assert FailureCode.ENDED is (await graph.resume("t", KIM, store)).code

        asyncio.run(main())


class TestHooksAndBoundaries:
    def test_the_outermost_hooks_see_the_outermost_state(self, world: Any, seen: Seen) -> None:
        told = []

        def check(state: Order, ctx: Any) -> Order:
            told.append((ctx.node, state.total))
            return attrs.evolve(state, note="checked")

        def out(state: Order, inner: Draft) -> Order:
            return state

        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), on_resume=check, on_interrupted=told.append, leave=out)
                stopped = await graph.run("t", Order(), store)
                result = await graph.resume("t", KIM, store)

                assert [stopped, ("Work", 100.0)] == told
                assert "checked" == result.state.note

        asyncio.run(main())

    @BOTH
    @pytest.mark.parametrize("at", ["Send", "After"])
    def test_on_resume_is_asked_again_until_a_node_inside_has_committed(
        self, world: Any, seen: Seen, policy: CheckpointPolicy, at: str
    ) -> None:
        asked: list[Order] = []

        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), policy, on_resume=asked.append)
                await graph.run("t", Order(), store)
                seen.harm[at] = lambda: 1 / 0
                await graph.resume("t", KIM, store)
                seen.harm.clear()
                await graph.resume("t", None, store)

                assert (2 if at == "Send" else 1) == len(asked)

        asyncio.run(main())

    @BOTH
    @pytest.mark.parametrize(("at", "times"), [("One", 2), ("Two", 1)])
    def test_on_resume_counts_the_commits_of_a_subgraph_behind_the_wait(
        self, world: Any, seen: Seen, policy: CheckpointPolicy, at: str, times: int
    ) -> None:
        asked: list[Draft] = []

        async def main() -> None:
            async with world.open() as store:
                inner = new(Draft).add_node("One", seen.node("One")).add_node("Two", seen.node("Two"))
                same: Any = {"enter": lambda state: state, "leave": lambda _, done: done}
                graph = (
                    new(Draft)
                    .add_node("Ask", seen.node("Ask"))
                    .add_interrupt_boundary("Ask")
                    .add_subgraph("Work", inner.add_edge("One", "Two").compile(), **same)
                    .add_edge("Ask", "Work")
                    .compile(checkpointing=policy, clock=world.clock, on_resume=asked.append)
                )
                await graph.run("t", Draft(), store)
                seen.harm[at] = lambda: 1 / 0
                await graph.resume("t", KIM, store)
                seen.harm.clear()
                result = await graph.resume("t", None, store)

                assert Completed("t", Draft(done=("Ask", "One", "Two"))) == result
                assert times == len(asked)

        asyncio.run(main())

    def test_a_completion_record_is_written_once_and_by_the_outermost_graph(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen), completion_record=True)
                await graph.run("t", Order(), store)
                result = await graph.resume("t", KIM, store)

                assert isinstance(result, Completed)
                states = [row.state.value for row in await world.log(store, "t")]
                assert ["interrupted", "resumed", "completed"] == states

        asyncio.run(main())


def test_a_failed_refusal_of_a_resume_leaves_the_thread_waiting(world: Any, seen: Seen) -> None:
    async def main() -> None:
        async with world.open() as store:
            graph = outer(world, seen, child(world, seen))
            await graph.run("t", Order(), store)
            refused = await graph.resume("t", None, store)

            assert isinstance(refused, Failed)
            assert FailureCode.SIGNAL_REQUIRED is refused.code
            assert isinstance(await graph.resume("t", KIM, store), Completed)

    asyncio.run(main())
