"""What stops inside a subgraph, goes on inside: failures, retries, fallbacks, cancellations and deaths."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import attrs
import pytest
from levels_support import Draft, Order, Seen, child, outer, path_of, wrapped

from strata_core.errors import GraphValidationError
from strata_core.graph import (
    CancellationToken,
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    Completed,
    FailureCode,
    HumanSignal,
    ProblemCode,
    RetryPolicy,
    StateGraph,
)

pytestmark = pytest.mark.once(
    "test_subgraphs brings nested records to every store; how a level fails is the engine's alone"
)


new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
KIM = HumanSignal.approve("kim")
ALL = ("Before", "Write", "Approve", "Send", "After")
DONE = Completed("t", Order(100.0, "draft", ALL))
TTL = timedelta(seconds=30)


@pytest.fixture
def seen() -> Seen:
    return Seen()


class BounceError(Exception):
    """What a node raises now and then."""


def failing(times: int) -> Any:
    """Return harm that raises that many times."""
    left = [times]

    def harm() -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise BounceError("it bounced")

    return harm


class TestFailures:
    @BOTH
    @pytest.mark.parametrize("depth", [0, 2])
    def test_a_failure_inside_stops_the_thread_there_and_a_resume_goes_on_there(
        self, world: Any, seen: Seen, policy: CheckpointPolicy, depth: int
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = child(world, seen, wait=None)
                for _ in range(depth):
                    inner = wrapped(world, inner)
                graph = outer(world, seen, inner, policy)
                seen.harm["Approve"] = failing(1)
                failed = await graph.run("t", Order(), store)

                where = "".join([", inside 'Inner'"] * depth + [", inside 'Work'"])
                assert (FailureCode.NODE_FAILED, "Work") == (failed.code, failed.node)
                assert f"node 'Approve' failed{where}" == failed.message
                assert "BounceError: it bounced" == failed.detail
                *_, row = await world.log(store, "t")
                assert [("failed", "Work", "Work"), *[("failed", "Inner", "Inner")] * depth,
                        ("failed", "Approve", "Approve")] == path_of(row)  # fmt: skip
                assert "BounceError: it bounced" == row.metadata["strata.error"]

                assert DONE == await graph.resume("t", None, store)
                assert ["Before", "Write", "Approve", "Approve", "Send", "After"] == seen.nodes
                assert 1 == len(set(seen.keys("Approve")))

        asyncio.run(main())

    @BOTH
    def test_a_correction_reaches_the_innermost_state_and_decides_nothing(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy)
                seen.harm["Send"] = failing(1)
                await graph.run("t", Order(), store)
                result = await graph.resume("t", KIM.with_override("text", "corrected"), store)

                assert "corrected" == result.state.note
                assert None is seen.decision("Send")

        asyncio.run(main())

    @BOTH
    def test_nodes_inside_have_their_own_retries_and_fallbacks(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = (
                    new(Draft)
                    .add_node("Try", seen.node("Try"), retry=RetryPolicy(max_attempts=2), fallback="Other")
                    .add_node("Other", seen.node("Other"))
                    .compile()
                )
                graph = outer(world, seen, inner, policy)
                seen.harm["Try"] = failing(9)
                result = await graph.run("t", Order(), store)

                assert ("Before", "Other", "After") == result.state.done
                assert [1, 2] == [ctx.attempt for ctx in seen.contexts if ctx.node == "Try"]

        asyncio.run(main())

    @BOTH
    @pytest.mark.parametrize(
        ("break_it", "code", "text"),
        [
            (lambda graph: graph.add_conditional_edge("A", lambda _: "Nowhere", ["B"]), FailureCode.ROUTING_FAILED,
             "the router of node 'A' named 'Nowhere'; its targets are B, inside 'Work'"),
            (lambda graph: graph.add_edge("A", "B").add_timer("A", lambda _: "soon"), FailureCode.TIMER_FAILED,
             "the delay of the timer at node 'A' must be a timedelta or an aware datetime, not str, inside 'Work'"),
        ],
    )  # fmt: skip
    def test_routers_and_timers_inside_fail_the_node_around_them(
        self, world: Any, seen: Seen, policy: CheckpointPolicy, break_it: Any, code: FailureCode, text: str
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = new(Draft).add_node("A", seen.node("A")).add_node("B", seen.node("B"))
                failed = await outer(world, seen, break_it(inner).compile(), policy).run("t", Order(), store)

                assert (code, text, "Work") == (failed.code, failed.message, failed.node)

        asyncio.run(main())

    def test_a_state_inside_that_cannot_be_saved_fails_its_node(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = (
                    new(Draft)
                    .add_node("A", lambda state: attrs.evolve(state, amount=float("nan")))
                    .add_node("B", seen.node("B"))
                    .add_edge("A", "B")
                    .compile()
                )
                failed = await outer(world, seen, inner, CheckpointPolicy.EVERY_NODE).run("t", Order(), store)
                *_, row = await world.log(store, "t")

                assert FailureCode.INVALID_STATE is failed.code
                assert "the state that node 'A' returned cannot be saved, inside 'Work'" == failed.message
                assert [("failed", "Work", "Work"), ("failed", "A", "A")] == path_of(row)

        asyncio.run(main())


class TestEnterAndLeave:
    @BOTH
    def test_when_enter_fails_nothing_inside_has_begun(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        harm = failing(1)

        def into(state: Order) -> Draft:
            harm()
            return Draft(amount=state.total)

        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy, enter=into)
                failed = await graph.run("t", Order(), store)

                assert ("enter failed, inside 'Work'", "Work") == (failed.message, failed.node)
                *_, row = await world.log(store, "t")
                assert [("failed", "Work", "Work")] == path_of(row)
                assert DONE == await graph.resume("t", None, store)

        asyncio.run(main())

    @BOTH
    def test_when_leave_fails_no_node_inside_runs_again_and_a_correction_reaches_the_last_state(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        def out(state: Order, inner: Draft) -> Order:
            if inner.text == "draft":
                raise BounceError("no title")
            return attrs.evolve(state, note=inner.text)

        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy, leave=out)
                failed = await graph.run("t", Order(), store)

                assert ("leave failed, inside 'Work'", "BounceError: no title") == (failed.message, failed.detail)
                *_, row = await world.log(store, "t")
                assert [("failed", "Work", "Work"), ("completed", "Send", None)] == path_of(row)
                assert FailureCode.NODE_FAILED is (await graph.resume("t", None, store)).code
                result = await graph.resume("t", KIM.with_override("text", "titled"), store)
                assert Completed("t", Order(100.0, "titled", ("Before", "After"))) == result
                assert list(ALL) == seen.nodes

        asyncio.run(main())

    @BOTH
    @pytest.mark.parametrize("which", ["enter", "leave"])
    def test_what_is_no_state_is_refused(self, world: Any, seen: Seen, policy: CheckpointPolicy, which: str) -> None:
        async def main() -> None:
            async with world.open() as store:
                options: Any = {which: lambda *_: None}
                failed = await outer(world, seen, child(world, seen, wait=None), policy, **options).run(
                    "t", Order(), store
                )

                wanted = "Draft" if which == "enter" else "Order"
                assert FailureCode.INVALID_STATE is failed.code
                assert f"NodeReturnError: {which} returned NoneType, not {wanted}" == failed.detail

        asyncio.run(main())

    @BOTH
    def test_a_state_from_enter_that_cannot_be_saved_fails_before_anything_inside_runs(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                into = lambda _: Draft(amount=float("inf"))  # noqa: E731
                failed = await outer(world, seen, child(world, seen, wait=None), policy, enter=into).run(
                    "t", Order(), store
                )

                assert (FailureCode.INVALID_STATE, ["Before"]) == (failed.code, seen.nodes)
                assert "the state that enter returned cannot be saved, inside 'Work'" == failed.message

        asyncio.run(main())


class TestRetryAndFallbackAround:
    @BOTH
    def test_another_attempt_goes_on_at_the_node_that_failed(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                retry = RetryPolicy(max_attempts=3, retry_on=BounceError)
                graph = outer(world, seen, child(world, seen, wait=None), policy, retry=retry)
                seen.harm["Approve"] = failing(1)
                seen.harm["Send"] = failing(1)

                assert DONE == await graph.run("t", Order(), store)
                assert ["Before", "Write", "Approve", "Approve", "Send", "Send", "After"] == seen.nodes
                assert 1 == len(set(seen.keys("Send")))

        asyncio.run(main())

    @BOTH
    def test_attempts_are_counted_for_the_visit_and_then_it_has_failed(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy, retry=RetryPolicy(max_attempts=2))
                seen.harm["Send"] = failing(2)
                failed = await graph.run("t", Order(), store)

                assert "node 'Send' failed, inside 'Work' after 2 attempts" == failed.message
                assert 2 == seen.nodes.count("Send")

        asyncio.run(main())

    @BOTH
    def test_leave_is_tried_again_alone(self, world: Any, seen: Seen, policy: CheckpointPolicy) -> None:
        harm = failing(2)

        def out(state: Order, inner: Draft) -> Order:
            harm()
            return attrs.evolve(state, note="left")

        async def main() -> None:
            async with world.open() as store:
                retry = RetryPolicy(max_attempts=3)
                graph = outer(world, seen, child(world, seen, wait=None), policy, leave=out, retry=retry)

                assert "left" == (await graph.run("t", Order(), store)).state.note
                assert list(ALL) == seen.nodes

        asyncio.run(main())

    @BOTH
    def test_a_fallback_takes_over_from_the_state_around_the_child(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy, fallback="Instead")
                seen.harm["Send"] = failing(1)
                result = await graph.run("t", Order(), store)

                assert Completed("t", Order(100.0, "", ("Before", "Instead"))) == result

        asyncio.run(main())

    @BOTH
    def test_a_fallback_that_fails_is_where_the_thread_goes_on(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy, fallback="Instead")
                seen.harm["Send"] = failing(1)
                seen.harm["Instead"] = failing(1)
                failed = await graph.run("t", Order(), store)
                *_, row = await world.log(store, "t")

                assert "Instead" == failed.node
                assert [("failed", "Instead", "Instead")] == path_of(row)
                assert ("Before", "Instead") == (await graph.resume("t", None, store)).state.done

        asyncio.run(main())

    @BOTH
    def test_a_thread_that_waits_inside_has_not_failed_whatever_the_retries(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(
                    world, seen, child(world, seen), policy, retry=RetryPolicy(max_attempts=3), fallback="Instead"
                )
                stopped = await graph.run("t", Order(), store)

                assert ("Work", "Approve") == stopped.waiting_at
                assert list(ALL[:3]) == seen.nodes

        asyncio.run(main())

    def test_the_router_of_the_node_itself_that_fails_runs_nothing_inside_again(self, world: Any, seen: Seen) -> None:
        harm = failing(1)

        def route(state: Draft) -> str:
            harm()
            return "After"

        async def main() -> None:
            async with world.open() as store:
                same: Any = {"enter": lambda state: state, "leave": lambda _, done: done}
                graph = (
                    new(Draft)
                    .add_subgraph("Work", child(world, seen, wait=None), **same)
                    .add_node("After", seen.node("After"))
                    .add_conditional_edge("Work", route, ["After"])
                    .compile(clock=world.clock)
                )
                failed = await graph.run("t", Draft(), store)
                result = await graph.resume("t", None, store)

                assert FailureCode.ROUTING_FAILED is failed.code
                assert Completed("t", Draft(done=("Write", "Approve", "Send", "After"))) == result
                assert ["Write", "Approve", "Send", "After"] == seen.nodes

        asyncio.run(main())


class TestStopping:
    @BOTH
    def test_a_token_stops_it_inside_and_a_resume_goes_on_there(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, wrapped(world, child(world, seen, wait=None)), policy)
                token = CancellationToken()

                def hang() -> Any:
                    token.cancel("enough")
                    return asyncio.Event().wait()

                seen.harm["Approve"] = hang
                stopped = await graph.run("t", Order(), store, cancellation=token)
                *_, row = await world.log(store, "t")

                assert Cancelled("t", CancelReason.CANCELLED, "Work", "enough") == stopped
                assert [("cancelled", "Work", "Work"), ("cancelled", "Inner", "Inner"),
                        ("cancelled", "Approve", "Approve")] == path_of(row)  # fmt: skip
                seen.harm.clear()
                assert DONE == await graph.resume("t", None, store)
                assert 1 == len(set(seen.keys("Approve")))
                assert 1 == seen.nodes.count("Write")

        asyncio.run(main())

    @BOTH
    def test_cancelling_the_caller_writes_where_it_stopped_inside(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy)
                reached = asyncio.Event()

                def hang() -> Any:
                    reached.set()
                    return asyncio.Event().wait()

                seen.harm["Send"] = hang
                task = asyncio.create_task(graph.run("t", Order(), store))
                await reached.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                *_, row = await world.log(store, "t")

                assert [("cancelled", "Work", "Work"), ("cancelled", "Send", "Send")] == path_of(row)
                seen.harm.clear()
                assert DONE == await graph.resume("t", None, store)

        asyncio.run(main())

    @BOTH
    def test_a_deadline_that_has_passed_inside_stops_before_the_next_node(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, child(world, seen, wait=None), policy)
                seen.harm["Write"] = lambda: world.clock.advance(5)
                stopped = await graph.run("t", Order(), store, deadline=timedelta(seconds=3))

                assert Cancelled("t", CancelReason.DEADLINE, "Work") == stopped
                assert DONE == await graph.resume("t", None, store)

        asyncio.run(main())

    def test_a_commit_inside_that_was_under_way_when_the_caller_was_cancelled_counts(
        self, world: Any, seen: Seen
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = outer(world, seen, wrapped(world, child(world, seen, wait=None)), CheckpointPolicy.EVERY_NODE)

                class Cancelling:
                    """A store whose caller is cancelled while the row of a node is written."""

                    def __getattr__(self, name: str) -> Any:
                        return getattr(store, name)

                    async def save_under_lease(self, checkpoint: Any, *args: Any, **options: Any) -> Any:
                        sequence = await store.save_under_lease(checkpoint, *args, **options)
                        if path_of(checkpoint)[-1] == ("running", "Approve", "Send") and not task.cancelling():
                            task.cancel()
                            await asyncio.sleep(0)
                        return sequence

                task = asyncio.create_task(graph.run("t", Order(), Cancelling()))
                with pytest.raises(asyncio.CancelledError):
                    await task
                *_, row = await world.log(store, "t")

                assert ("cancelled", "Send", "Send") == path_of(row)[-1]
                assert DONE == await graph.resume("t", None, store)
                assert list(ALL) == seen.nodes

        asyncio.run(main())


class TestDeath:
    @pytest.mark.parametrize("at", ["Write", "Approve", "Send"])
    def test_a_recovery_goes_on_at_the_node_inside_with_its_key(self, world: Any, seen: Seen, at: str) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                inner = wrapped(world, child(world, seen, wait=None))
                graph = outer(world, seen, inner, CheckpointPolicy.EVERY_NODE, lease_ttl=TTL)
                reached = asyncio.Event()

                def hang() -> Any:
                    reached.set()
                    return asyncio.Event().wait()

                seen.harm[at] = hang
                await world.die(lambda store: graph.run("t", Order(), store), one, reached)
                seen.harm.clear()
                await world.lapse(other, "t", TTL)

                assert DONE == await graph.recover("t", other)
                index = ALL.index(at)
                assert [*ALL[: index + 1], *ALL[index:]] == seen.nodes
                assert 1 == len(set(seen.keys(at)))
                rows = [path_of(row) for row in await world.log(other, "t")]
                assert rows[index + 1] == rows[index]
                assert len(ALL) + 2 == len(rows)

        asyncio.run(main())

    def test_a_recovery_keeps_the_inner_decision(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                graph = outer(world, seen, child(world, seen), CheckpointPolicy.EVERY_NODE, lease_ttl=TTL)
                await graph.run("t", Order(), one)
                reached = asyncio.Event()

                def hang() -> Any:
                    reached.set()
                    return asyncio.Event().wait()

                seen.harm["Send"] = hang
                await world.die(lambda store: graph.resume("t", KIM, store), one, reached)
                seen.harm.clear()
                await world.lapse(other, "t", TTL)
                report = await graph.recover_all(other)

                assert {"t": DONE} == report.results
                assert "kim" == seen.decision("Send").reviewer
                assert 1 == len(set(seen.keys("Send")))

        asyncio.run(main())

    def test_a_recovery_of_a_child_that_had_come_to_its_end_leaves_it(self, world: Any, seen: Seen) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                inner = new(Draft).add_node("Ask", seen.node("Ask")).add_interrupt_boundary("Ask").compile()
                reached = asyncio.Event()
                hanging = True

                async def out(state: Order, inner: Draft) -> Order:
                    if hanging:
                        reached.set()
                        await asyncio.Event().wait()
                    return attrs.evolve(state, note="left")

                graph = outer(world, seen, inner, CheckpointPolicy.EVERY_NODE, leave=out, lease_ttl=TTL)
                await graph.run("t", Order(), one)
                await world.die(lambda store: graph.resume("t", KIM, store), one, reached)
                hanging = False
                await world.lapse(other, "t", TTL)

                assert "left" == (await graph.recover("t", other)).state.note
                assert 1 == seen.nodes.count("Ask")

        asyncio.run(main())


class TestKeys:
    @BOTH
    def test_nodes_of_one_name_on_several_levels_have_keys_of_their_own(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                same: Any = {"enter": lambda state: state, "leave": lambda _, done: done}
                inner = new(Draft).add_node("A", seen.node("A")).compile()
                middle = new(Draft).add_subgraph("A", inner, **same).compile()
                graph = (
                    new(Draft)
                    .add_node("A", seen.node("A"))
                    .add_subgraph("B", inner, **same)
                    .add_subgraph("C", middle, **same)
                    .add_conditional_edge("A", lambda _: "B", ["B"])
                    .add_edge("B", "C")
                    .compile(checkpointing=policy, clock=world.clock)
                )
                await graph.run("t", Draft(), store)

                assert 3 == len(set(seen.keys("A")))

        asyncio.run(main())

    @BOTH
    def test_a_fallback_named_as_the_node_inside_that_failed_has_another_key(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                inner = new(Draft).add_node("Pay", seen.node("Pay")).compile()
                graph = outer(world, seen, inner, policy, fallback="Pay")
                seen.harm["Pay"] = failing(1)
                result = await graph.run("t", Order(), store)

                assert ("Before", "Pay") == result.state.done
                assert 2 == len(set(seen.keys("Pay")))

        asyncio.run(main())

    @BOTH
    def test_a_loop_around_a_subgraph_gives_its_nodes_new_keys(
        self, world: Any, seen: Seen, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                same: Any = {"enter": lambda state: state, "leave": lambda _, done: done}
                inner = new(Draft).add_node("A", seen.node("A")).compile()
                graph = (
                    new(Draft)
                    .add_subgraph("Loop", inner, **same)
                    .add_node("End", seen.node("End"))
                    .add_conditional_edge("Loop", lambda s: "Loop" if len(s.done) < 3 else "End", ["Loop", "End"])
                    .compile(checkpointing=policy, clock=world.clock)
                )
                result = await graph.run("t", Draft(), store)

                assert ("A", "A", "A", "End") == result.state.done
                assert 3 == len(set(seen.keys("A")))

        asyncio.run(main())


class TestCompiling:
    def problems(self, graph: Any) -> list[tuple[ProblemCode, str | None]]:
        with pytest.raises(GraphValidationError) as caught:
            graph.compile()
        return [(problem.code, problem.node) for problem in caught.value.problems]

    @pytest.mark.parametrize("inner", [None, "graph", new(Draft).add_node("A", lambda state: state)])
    def test_a_child_that_is_no_compiled_graph_is_a_problem(self, inner: Any) -> None:
        graph = new(Draft).add_subgraph("Work", inner, enter=lambda s: s, leave=lambda s, c: c)

        assert [(ProblemCode.INVALID_CHILD, "Work")] == self.problems(graph)

    @pytest.mark.parametrize("enter", [None, lambda: None, lambda a, b: None])
    @pytest.mark.parametrize("leave", [3, lambda a: None, lambda a, b, c: None])
    def test_enter_and_leave_that_cannot_be_called_are_problems(self, enter: Any, leave: Any) -> None:
        inner = new(Draft).add_node("A", lambda state: state).compile()
        graph = new(Draft).add_subgraph("Work", inner, enter=enter, leave=leave)

        assert [(ProblemCode.INVALID_HANDLER, "Work")] * 2 == self.problems(graph)

    @pytest.mark.parametrize("hook", ["on_resume", "on_interrupted"])
    def test_a_child_with_a_hook_that_would_never_be_called_is_a_problem(self, hook: str) -> None:
        inner = new(Draft).add_node("A", lambda state: state).compile(**{hook: lambda state: None})
        graph = new(Draft).add_subgraph("Work", inner, enter=lambda s: s, leave=lambda s, c: c)

        assert [(ProblemCode.INNER_HOOK, "Work")] == self.problems(graph)

    def test_names_fallbacks_and_retries_are_checked_as_of_every_node(self) -> None:
        inner = new(Draft).add_node("A", lambda state: state).compile()
        graph = new(Draft)
        for name in ("Work", "Work"):
            graph.add_subgraph(name, inner, enter=lambda s: s, leave=lambda s, c: c, retry=3, fallback="Nowhere")

        assert {
            (ProblemCode.DUPLICATE_NODE, "Work"),
            (ProblemCode.INVALID_RETRY, "Work"),
            (ProblemCode.DANGLING_EDGE, "Work"),
        } == set(self.problems(graph))
