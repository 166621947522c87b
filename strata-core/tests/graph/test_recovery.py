"""Threads whose process died: finished once, by whoever comes first, with nothing lost and nothing run again."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from lost_support import STOOD_STILL, lost

from strata_core.errors import InvalidInputError, LeaseLostError
from strata_core.graph import (
    CancellationToken,
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
from strata_core.records import Checkpoint, CheckpointStatus, GraphIdentity

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

TTL = timedelta(seconds=1)


@attrs.frozen
class Order:
    trace: tuple[str, ...] = ()


class Shop:
    """A graph of three nodes whose second one can be made to hang, and what its nodes have seen."""

    def __init__(self, world: Any, **options: Any) -> None:
        self.world = world
        self.ran: Counter[str] = Counter()
        self.contexts: list[Any] = []
        self.hanging = asyncio.Event()
        self.hangs = True
        self.graph = self.compile(**options)

    def compile(self, *, waits: bool = False, **options: Any) -> Any:
        defaults = {"checkpointing": CheckpointPolicy.EVERY_NODE, "clock": self.world.clock, "lease_ttl": TTL}
        graph = new(Order)
        for name in ("Price", "Charge", "Ship"):
            graph.add_node(name, self.node(name))
        graph.add_edge("Price", "Charge").add_edge("Charge", "Ship")
        if waits:
            graph.add_interrupt_boundary("Price")
        return graph.compile(**defaults | options)

    def node(self, name: str) -> Any:
        async def work(order: Order, ctx: Any) -> Order:
            self.ran[name] += 1
            self.contexts.append(ctx)
            if name == "Charge" and self.hangs:
                self.hanging.set()
                await asyncio.Event().wait()
            return attrs.evolve(order, trace=(*order.trace, name))

        return work

    def keys(self, node: str) -> list[str]:
        return [ctx.idempotency_key for ctx in self.contexts if ctx.node == node]

    async def die(self, store: Any, thread_id: str = "t", start: Any = None, **options: Any) -> None:
        """Run a thread and die in `Charge`; its lease has run out when this returns."""
        start = start or (lambda process: self.graph.run(thread_id, Order(), process, **options))
        await self.world.die(start, store, self.hanging)
        await self.world.lapse(store, thread_id, TTL)
        self.hangs = False
        self.hanging.clear()


DONE = Completed("t", Order(("Price", "Charge", "Ship")))


class TestRecover:
    def test_a_dead_thread_goes_on_at_the_node_that_was_running(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                shop = Shop(world)
                await shop.die(one)

                assert [("running", None, "Price"), ("running", "Price", "Charge")] == await world.rows(other, "t")
                assert DONE == await shop.graph.recover("t", other)
                assert [
                    ("running", None, "Price"),
                    ("running", "Price", "Charge"),
                    ("running", "Price", "Charge"),
                    ("running", "Charge", "Ship"),
                    ("completed", "Ship", None),
                ] == await world.rows(other, "t")
                assert {"Price": 1, "Charge": 2, "Ship": 1} == shop.ran
                assert None is await other.live_lease("t")

        asyncio.run(main())

    def test_the_node_that_was_running_is_told_the_same_key_and_later_ones_another(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                shop = Shop(world)
                await shop.die(one)
                shop.hangs = True
                await shop.die(one, start=lambda process: shop.graph.recover("t", process))
                await shop.graph.recover("t", other)

                assert 3 == len(shop.keys("Charge"))
                assert 1 == len(set(shop.keys("Charge")))
                assert 3 == len({ctx.idempotency_key for ctx in shop.contexts})
                assert [1, 1, 1] == [ctx.attempt for ctx in shop.contexts if ctx.node == "Charge"]

        asyncio.run(main())

    def test_the_key_is_the_same_when_the_thread_had_been_resumed_before_it_died(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world)
                stopped = asyncio.create_task(shop.graph.run("t", Order(), store))
                await shop.hanging.wait()
                stopped.cancel()
                await asyncio.wait({stopped})
                shop.hanging.clear()
                await shop.die(store, start=lambda process: shop.graph.resume("t", None, process))

                assert DONE == await shop.graph.recover("t", store)
                assert 3 == len(shop.keys("Charge"))
                assert 1 == len(set(shop.keys("Charge")))

        asyncio.run(main())

    def test_the_decision_and_the_metadata_are_kept_and_the_rows_tell_who_took_it(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world, waits=True, owner="replica-2")
                await shop.graph.run("t", Order(), store, metadata={"tenant": "acme"})
                answer = HumanSignal.approve("jdoe")
                await shop.die(store, start=lambda process: shop.graph.resume("t", answer, process))
                await shop.graph.recover("t", store)
                *_, taken, charged, completed = await world.log(store, "t")

                assert ["jdoe"] * 3 == [row.decision.reviewer for row in (taken, charged, completed)]
                assert ["jdoe"] * 3 == [ctx.decision.reviewer for ctx in shop.contexts[1:]]
                assert [{"tenant": "acme"}] * 4 == [dict(ctx.metadata) for ctx in shop.contexts]
                assert "replica-2" == taken.metadata["strata.recovered_by"]
                assert {"tenant": "acme"} == charged.metadata == completed.metadata

        asyncio.run(main())

    def test_a_thread_that_died_in_an_older_version_is_brought_up_to_this_one(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world, identity=GraphIdentity("shop", "1"))
                await shop.die(store)
                seen = []

                def upcast(state: Any, version: str) -> Any:
                    seen.append(version)
                    return {"trace": [*state["trace"], "upcast"]}

                newer = shop.compile(identity=GraphIdentity("shop", "2"), upcast=upcast)

                assert Completed("t", Order(("Price", "upcast", "Charge", "Ship"))) == await newer.recover("t", store)
                assert ["1"] == seen
                assert ["1", "1", "2", "2", "2"] == [row.graph.version for row in await world.log(store, "t")]

        asyncio.run(main())

    def test_a_state_that_upcast_made_unsavable_is_refused_and_the_thread_stays_as_it_is(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = new(dict).add_node("A", lambda state: state)
                options = {"checkpointing": CheckpointPolicy.EVERY_NODE, "clock": world.clock}
                await store.save(running("t", graph=GraphIdentity("g", "1")))
                newer = graph.compile(
                    identity=GraphIdentity("g", "2"), upcast=lambda state, _: {**state, "n": float("nan")}, **options
                )
                result = await newer.recover("t", store)

                assert FailureCode.REHYDRATION_FAILED is result.code
                assert "failed to rehydrate state for thread 't'" == result.message
                assert "state.n" in result.detail
                assert 1 == len(await world.log(store, "t"))
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_a_recovery_that_comes_to_a_boundary_freezes_the_thread_there(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(dict)
                    .add_node("A", lambda state: state)
                    .add_interrupt_boundary("A")
                    .add_node("B", lambda state: state)
                    .add_edge("A", "B")
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                await store.save(running("t"))
                result = await graph.recover("t", store)

                assert isinstance(result, Interrupted)
                assert ("A", "B") == (result.suspended_node, result.next_node)
                assert ["running", "running", "interrupted"] == [row[0] for row in await world.rows(store, "t")]

        asyncio.run(main())

    def test_a_failure_and_a_deadline_leave_a_thread_that_can_be_resumed(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world)
                await shop.die(store)
                late = await shop.graph.recover("t", store, deadline=timedelta(0))
                token = CancellationToken()
                token.cancel("maintenance")
                refused = await shop.graph.recover("t", store, cancellation=token)

                assert Cancelled("t", CancelReason.DEADLINE, "Charge") == late
                assert FailureCode.NOT_RUNNING is refused.code
                assert DONE == await shop.graph.resume("t", None, store)
                assert 1 == len(set(shop.keys("Charge")))

        asyncio.run(main())

    def test_a_graph_that_writes_only_at_boundaries_finishes_a_thread_as_it_was_begun(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world)
                await shop.die(store)
                graph = shop.compile(checkpointing=CheckpointPolicy.BOUNDARIES)

                assert DONE == await graph.recover("t", store)
                assert ["running"] * 4 + ["completed"] == [row[0] for row in await world.rows(store, "t")]

        asyncio.run(main())

    def test_cancelling_its_task_leaves_a_cancelled_thread(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world)
                await shop.die(store)
                shop.hangs = True
                task = asyncio.create_task(shop.graph.recover("t", store))
                await shop.hanging.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

                assert ("cancelled", "Charge", "Charge") == (await world.rows(store, "t"))[-1]
                shop.hangs = False
                assert DONE == await shop.graph.resume("t", None, store)

        asyncio.run(main())


def running(thread_id: str, **changes: Any) -> Checkpoint:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    seed = Checkpoint(thread_id, CheckpointStatus.RUNNING, {"n": 1}, at, None, "A")
    return attrs.evolve(seed, **changes)


class TestRefusals:
    def test_a_run_that_lives_is_never_taken(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                shop = Shop(world)
                task = asyncio.create_task(shop.graph.run("t", Order(), one))
                await shop.hanging.wait()
                before = await world.log(other, "t")
                refused = await shop.graph.recover("t", other)
                report = await shop.graph.recover_all(other)

                assert FailureCode.LEASE_HELD is refused.code
                assert before == await world.log(other, "t")
                assert ({}, {}, {}) == (report.results, report.refused, report.errors)
                task.cancel()
                await asyncio.wait({task})
                assert {"Price": 1, "Charge": 1} == shop.ran

        asyncio.run(main())

    def test_so_is_one_that_went_on_since_the_thread_was_read(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                shop = Shop(world)
                graph = shop.compile(lease_ttl=timedelta(minutes=1))
                await one.save(running("t", frozen_state={"trace": []}, next_node="Price"))
                runs: list[Any] = []

                class Late:
                    def __getattr__(self, name: str) -> Any:
                        return getattr(other, name)

                    async def load(self, thread_id: str) -> Any:
                        entry = await other.load(thread_id)
                        runs.append(asyncio.create_task(graph.recover("t", one)))
                        await shop.hanging.wait()
                        return entry

                refused = await graph.recover("t", Late())

                assert FailureCode.LEASE_HELD is refused.code
                assert ("running", "Price", "Charge") == (await world.rows(one, "t"))[-1]
                runs[0].cancel()
                await asyncio.wait(runs)

        asyncio.run(main())

    @pytest.mark.parametrize("policy", list(CheckpointPolicy))
    @pytest.mark.parametrize(
        ("changes", "code", "hint"),
        [
            (None, FailureCode.NOT_FOUND, "has no checkpoint"),
            ({"status": CheckpointStatus.INTERRUPTED}, FailureCode.NOT_RUNNING, "waits"),
            ({"status": CheckpointStatus.FAILED}, FailureCode.NOT_RUNNING, "graph.resume() tries its node again"),
            ({"status": CheckpointStatus.CANCELLED}, FailureCode.NOT_RUNNING, "graph.resume() goes on with it"),
            ({"status": CheckpointStatus.COMPLETED}, FailureCode.COMPLETED, "has completed"),
            ({"status": CheckpointStatus.ENDED}, FailureCode.ENDED, "was ended"),
            ({"resumed_at": running("t").created_at}, FailureCode.NOT_RECOVERABLE, "end it with graph.end()"),
            ({"graph": GraphIdentity("other", "1")}, FailureCode.WRONG_GRAPH, "belongs to graph 'other'"),
            ({"next_node": "Gone"}, FailureCode.UNKNOWN_NODE, "'Gone'"),
            ({"next_node": None}, FailureCode.UNKNOWN_NODE, "None"),
            ({"nested": running("t")}, FailureCode.UNKNOWN_NODE, "inside the subgraph"),
        ],
        ids=lambda value: None if not isinstance(value, dict) else "+".join(value),
    )
    def test_what_is_not_dead_is_refused_with_a_code_of_its_own(
        self, world: Any, policy: CheckpointPolicy, changes: Any, code: FailureCode, hint: str
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(dict)
                    .add_node("A", lambda state: state)
                    .compile(checkpointing=policy, identity=GraphIdentity("mine", "1"), clock=world.clock)
                )
                if changes is not None:
                    await store.save(running("t", **changes))
                before = await world.log(store, "t")
                result = await graph.recover("t", store)

                assert isinstance(result, Failed)
                assert code is result.code
                assert hint in result.message
                assert before == await world.log(store, "t")
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_a_thread_that_was_resumed_and_died_is_ended_and_run_anew(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world, waits=True, checkpointing=CheckpointPolicy.BOUNDARIES)
                await shop.graph.run("t", Order(), store)
                answer = HumanSignal.approve("jdoe")
                await shop.die(store, start=lambda process: shop.graph.resume("t", answer, process))
                refused = await shop.graph.recover("t", store)
                ended = await shop.graph.end("t", store, by="ops", reason="its process died")
                await shop.graph.run("t-again", Order(), store)
                anew = await shop.graph.resume("t-again", answer, store)

                assert FailureCode.NOT_RECOVERABLE is refused.code
                assert Cancelled("t", CancelReason.ENDED, "Price") == ended
                assert Completed("t-again", DONE.state) == anew

        asyncio.run(main())

    @pytest.mark.parametrize("thread_id", ["", "a\0b", 3, None])
    def test_a_thread_id_that_is_none_is_refused(self, world: Any, thread_id: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                with pytest.raises(InvalidInputError, match=r"^thread_id"):
                    await Shop(world).graph.recover(thread_id, store)

        asyncio.run(main())


class Noting:
    """A store that notes which calls are made, and how."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, options))
            return await method(*args, **options)

        return call


def test_a_thread_is_read_once_and_taken_in_one_step_as_it_was_read(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            shop = Shop(world)
            await shop.die(store)
            read = await store.load("t")
            noting = Noting(store)
            await shop.graph.recover("t", noting)
            (_, taken), *_ = [call for call in noting.calls if call[0] == "acquire_lease"]

            assert ["load", "acquire_lease", "save_under_lease", "save_under_lease"] == [
                name for name, _ in noting.calls
            ]
            assert read.revision == taken["expected"]
            assert CheckpointStatus.RUNNING is taken["save"].status

    asyncio.run(main())


class TestFrozenWriters:
    """A process that is stopped for longer than its lease lives, and goes on afterwards."""

    @pytest.mark.parametrize("blocking", [False, True])
    def test_one_that_thaws_in_a_node_writes_nothing(self, world: Any, blocking: bool) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                ran: Counter[str] = Counter()
                loop = asyncio.get_running_loop()
                recovered: list[Any] = []

                def freeze(order: Order) -> Order:
                    ran["Freeze"] += 1
                    if ran["Freeze"] == 1:  # nothing of this process goes on until the other one is through
                        if not blocking:
                            world.clock.advance(TTL)
                        else:
                            loop.call_soon_threadsafe(world.clock.advance, TTL)
                            recovered.append(asyncio.run_coroutine_threadsafe(finish(), loop).result())
                    return attrs.evolve(order, trace=("Freeze",))

                async def finish() -> Any:
                    await world.lapse(other, "t", timedelta(0))
                    return await graph.recover("t", other)

                graph = (
                    new(Order)
                    .add_node("Freeze", freeze, blocking=blocking)
                    .add_node("Last", lambda order: order)
                    .add_edge("Freeze", "Last")
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock, lease_ttl=TTL)
                )
                result = await graph.run("t", Order(), one)
                if not blocking:
                    recovered.append(await finish())
                while not recovered:
                    await asyncio.sleep(0.001)

                assert lost("Freeze", STOOD_STILL, TTL) == result
                assert [Completed("t", Order(("Freeze",)))] == recovered
                assert ["running"] * 3 + ["completed"] == [row[0] for row in await world.rows(one, "t")]
                assert 2 == ran["Freeze"]

        asyncio.run(main())

    def test_a_blocking_node_is_not_waited_for_once_the_lease_is_lost(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                loop = asyncio.get_running_loop()
                let_go = threading.Event()
                seen = []

                def block(order: Order, ctx: Any) -> Order:
                    loop.call_soon_threadsafe(world.clock.advance, TTL)
                    let_go.wait(60)
                    seen.append(ctx.cancellation.is_cancelled)
                    return order

                graph = (
                    new(Order)
                    .add_node("Block", block, blocking=True)
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock, lease_ttl=TTL)
                )
                try:
                    result = await graph.run("t", Order(), store)
                    before = list(seen)
                finally:
                    let_go.set()

                assert lost("Block", STOOD_STILL, TTL) == result
                assert [] == before, "the handler is still at work"
                await loop.shutdown_default_executor()
                assert [True] == seen
                assert ["running"] == [row[0] for row in await world.rows(store, "t")]

        asyncio.run(main())

    def test_one_that_thaws_between_two_nodes_does_not_begin_the_next_one(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                shop = Shop(world)
                shop.hangs = False

                class Freezing:
                    def __getattr__(self, name: str) -> Any:
                        return getattr(store, name)

                    async def save_under_lease(self, *args: Any, **options: Any) -> Any:
                        answer = await store.save_under_lease(*args, **options)
                        world.clock._passed += TTL  # the time passes, and nothing in this process wakes up
                        return answer

                result = await shop.graph.run("t", Order(), Freezing())

                assert lost("Charge", STOOD_STILL, TTL) == result
                assert {"Price": 1} == shop.ran

        asyncio.run(main())

    def test_its_lease_is_of_no_use_any_more(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                shop = Shop(world)
                lease = await one.acquire_lease("t", owner="frozen", ttl=TTL, save=running("t", next_node="Price"))
                await world.lapse(other, "t", TTL)
                task = asyncio.create_task(shop.compile(lease_ttl=timedelta(minutes=1)).recover("t", other))
                failed = asyncio.create_task(shop.hanging.wait())
                await asyncio.wait({failed, task}, return_when=asyncio.FIRST_COMPLETED)
                holder = await one.live_lease("t")
                with pytest.raises(LeaseLostError):
                    await one.renew_lease(lease, ttl=TTL)
                with pytest.raises(LeaseLostError):
                    await one.save_under_lease(running("t"), lease)
                await one.release_lease(lease)

                assert holder == await one.live_lease("t")
                failed.cancel()
                task.cancel()
                await asyncio.wait({task, failed})

        asyncio.run(main())
