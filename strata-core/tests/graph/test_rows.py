"""What a run leaves in the log, under each policy."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import attrs
import pytest

from strata_core.graph import (
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    Completed,
    Failed,
    FailureCode,
    HumanSignal,
    Interrupted,
    StateGraph,
)
from strata_core.records import GraphIdentity

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))


@attrs.frozen
class Transfer:
    amount: float
    status: str = "new"
    by: str | None = None


def graph(world: Any, policy: CheckpointPolicy, **options: Any) -> Any:
    def execute(state: Transfer, ctx: Any) -> Transfer:
        return attrs.evolve(state, status="sent", by=ctx.decision.reviewer)

    return (
        new(Transfer)
        .add_node("Prepare", lambda state: attrs.evolve(state, status="prepared"))
        .add_interrupt_boundary("Prepare", on_reject="Cancel")
        .add_node("Execute", execute)
        .add_node("Cancel", lambda state: attrs.evolve(state, status="cancelled"))
        .add_edge("Prepare", "Execute")
        .compile(checkpointing=policy, clock=world.clock, **options)
    )


def straight(world: Any, policy: CheckpointPolicy) -> Any:
    return (
        new(Transfer)
        .add_node("A", lambda state: attrs.evolve(state, amount=state.amount + 1))
        .add_node("B", lambda state: attrs.evolve(state, amount=state.amount * 2))
        .add_node("C", lambda state: attrs.evolve(state, status="done"))
        .add_edge("A", "B")
        .add_edge("B", "C")
        .compile(checkpointing=policy, clock=world.clock)
    )


class TestEveryNode:
    def test_a_straight_run_of_three_nodes_leaves_four_rows(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                result = await straight(world, CheckpointPolicy.EVERY_NODE).run("t", Transfer(1.0), store)

                assert Completed("t", Transfer(4.0, "done")) == result
                assert [
                    ("running", None, "A"),
                    ("running", "A", "B"),
                    ("running", "B", "C"),
                    ("completed", "C", None),
                ] == await world.rows(store, "t")
                assert [1.0, 2.0, 4.0, 4.0] == [c.frozen_state["amount"] for c in await world.log(store, "t")]
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_a_boundary_and_its_resume_leave_four_rows_and_no_lease(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = graph(world, CheckpointPolicy.EVERY_NODE)
                first = await compiled.run("t", Transfer(4200.5), store)

                assert Interrupted("t", "Prepare", "Execute", Transfer(4200.5, "prepared"), ("Prepare",)) == first
                assert None is await store.live_lease("t")

                world.clock.advance(60)
                second = await compiled.resume(
                    "t", HumanSignal.approve("jdoe@acme.io").with_override("amount", 4150.25), store
                )

                assert Completed("t", Transfer(4150.25, "sent", "jdoe@acme.io")) == second
                assert [
                    ("running", None, "Prepare"),
                    ("interrupted", "Prepare", "Execute"),
                    ("running", "Prepare", "Execute"),
                    ("completed", "Execute", None),
                ] == await world.rows(store, "t")
                log = await world.log(store, "t")
                assert [None, None, True, True] == [c.decision and c.decision.is_approved for c in log]
                decision = log[2].decision
                assert "Prepare" == decision.boundary
                assert {"amount": 4150.25} == decision.overrides
                assert world.clock.now() == decision.decided_at
                assert 4150.25 == log[2].frozen_state["amount"]
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_a_run_holds_the_lease_while_its_nodes_run(self, world: Any) -> None:
        seen = []

        async def main() -> None:
            async with world.open() as store:

                async def look(state: Transfer) -> Transfer:
                    lease = await store.live_lease("t")
                    seen.append((lease.owner, world.left(lease)))
                    return state

                compiled = (
                    new(Transfer)
                    .add_node("A", look)
                    .compile(
                        checkpointing=CheckpointPolicy.EVERY_NODE,
                        clock=world.clock,
                        owner="worker-7",
                        lease_ttl=timedelta(seconds=9),
                    )
                )
                await compiled.run("t", Transfer(1.0), store)

                assert [("worker-7", timedelta(seconds=9))] == seen

        asyncio.run(main())

    def test_a_failed_node_replaces_its_running_row(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = (
                    new(Transfer)
                    .add_node("A", lambda state: attrs.evolve(state, amount=2.0))
                    .add_node("B", lambda state: 1 / 0)
                    .add_edge("A", "B")
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                result = await compiled.run("t", Transfer(1.0), store, metadata={"tenant": "acme"})

                assert (
                    Failed("t", FailureCode.NODE_FAILED, "node 'B' failed", "B", "ZeroDivisionError: division by zero")
                    == result
                )
                assert [("running", None, "A"), ("running", "A", "B"), ("failed", "B", "B")] == await world.rows(
                    store, "t"
                )
                last = (await world.log(store, "t"))[-1]
                assert {"tenant": "acme", "strata.error": "ZeroDivisionError: division by zero"} == last.metadata
                assert 2.0 == last.frozen_state["amount"]
                assert None is await store.live_lease("t")

        asyncio.run(main())


class TestBoundaries:
    def test_a_straight_run_leaves_nothing(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                result = await straight(world, CheckpointPolicy.BOUNDARIES).run("t", Transfer(1.0), store)

                assert Completed("t", Transfer(4.0, "done")) == result
                assert [] == await world.rows(store, "t")

        asyncio.run(main())

    def test_a_resume_appends_a_copy_with_the_decision_and_nothing_else_changed(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = graph(world, CheckpointPolicy.BOUNDARIES, identity=GraphIdentity("wire", "1"))
                await compiled.run("t", Transfer(4200.5), store, metadata={"tenant": "acme"})
                world.clock.advance(60)
                await compiled.resume("t", HumanSignal.reject("jdoe").with_override("amount", 1.0), store)

                waiting, stamped = await world.log(store, "t")
                assert "resumed" == stamped.state
                assert world.clock.now() == stamped.resumed_at
                assert not stamped.decision.is_approved
                assert waiting == attrs.evolve(stamped, resumed_at=None, decision=None)

        asyncio.run(main())


@BOTH
def test_a_rejection_takes_its_route_and_keeps_the_decision(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", Transfer(4200.5), store)
            result = await compiled.resume("t", HumanSignal.reject("jdoe"), store)

            assert Completed("t", Transfer(4200.5, "cancelled")) == result

    asyncio.run(main())


@BOTH
def test_a_run_without_a_store_stops_at_its_boundary(world: Any, policy: CheckpointPolicy) -> None:
    result = asyncio.run(graph(world, policy).run("t", Transfer(1.0)))

    assert Interrupted("t", "Prepare", "Execute", Transfer(1.0, "prepared"), ("Prepare",)) == result


@BOTH
def test_ending_a_waiting_thread_keeps_its_state_and_says_who_and_why(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", Transfer(1.0), store, metadata={"tenant": "acme"})
            result = await compiled.end("t", store, by="ops\0\ud800", reason="x" * 2000)

            assert Cancelled("t", CancelReason.ENDED, "Prepare") == result
            last = (await world.log(store, "t"))[-1]
            assert ("ended", "Prepare", None) == (last.state, last.suspended_node, last.next_node)
            assert "prepared" == last.frozen_state["status"]
            assert "ops\\x00\\ud800" == last.metadata["strata.ended_by"]
            assert 1024 == len(last.metadata["strata.ended_reason"].encode())
            assert "acme" == last.metadata["tenant"]
            again = await compiled.resume("t", HumanSignal.approve("jdoe"), store)
            assert isinstance(again, Failed)
            assert FailureCode.ENDED is again.code

    asyncio.run(main())


@BOTH
def test_answering_a_boundary_on_an_end_of_the_graph_is_one_write(world: Any, policy: CheckpointPolicy) -> None:
    """A second one could fail after the thread had completed."""

    class Counting:
        def __init__(self, store: Any) -> None:
            self._store = store
            self.calls: list[str] = []

        def __getattr__(self, name: str) -> Any:
            async def call(*args: Any, **kwargs: Any) -> Any:
                self.calls.append(name)
                return await getattr(self._store, name)(*args, **kwargs)

            return call

    async def main() -> None:
        async with world.open() as store:
            compiled = (
                StateGraph(dict)
                .add_node("A", lambda state: state)
                .add_interrupt_boundary("A")
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", {}, store)
            counting: Any = Counting(store)
            result = await compiled.resume("t", HumanSignal.approve("jdoe"), counting)

            assert Completed("t", {}) == result
            assert ["load", "save_if_latest"] == counting.calls
            assert None is await store.live_lease("t")

    asyncio.run(main())


@BOTH
def test_a_boundary_on_an_end_of_the_graph_completes_when_it_is_answered(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = (
                new(Transfer)
                .add_node("Only", lambda state: attrs.evolve(state, status="checked"))
                .add_interrupt_boundary("Only")
                .compile(checkpointing=policy, clock=world.clock)
            )
            first = await compiled.run("t", Transfer(1.0), store)
            result = await compiled.resume("t", HumanSignal.approve("jdoe"), store)

            assert None is first.next_node
            assert Completed("t", Transfer(1.0, "checked")) == result
            last = (await world.log(store, "t"))[-1]
            assert "jdoe" == last.decision.reviewer
            assert ("resumed" if policy is CheckpointPolicy.BOUNDARIES else "completed") == last.state
            assert None is await store.live_lease("t")

    asyncio.run(main())
