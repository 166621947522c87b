"""The small store in `plugins` is a store like any other: the suite judges it, and the engine runs on it.

So nothing above the row boundary knows a database.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter

import attrs
import pytest

from strata_conformance.suite import (
    CheckpointStoreTests,
    ConditionalSaveTests,
    LeasedSaveTests,
    QueryTests,
    RetentionTests,
    RowLeaseTests,
)
from strata_core import (
    CancelReason,
    CheckpointPolicy,
    Completed,
    FailureCode,
    GraphIdentity,
    HumanSignal,
    StateGraph,
    open_store,
)
from strata_core.store import RowStore


class TestSuite(CheckpointStoreTests, ConditionalSaveTests, LeasedSaveTests, QueryTests, RetentionTests, RowLeaseTests):
    """What the engine and the command use of a store."""

    @pytest.fixture
    def open_backend(self, tmp_path, clock):
        from strata_jsonl import JsonLinesBackend  # type: ignore[import-not-found]  # in `plugins`

        return lambda: JsonLinesBackend(tmp_path / "threads.jsonl", clock)

    @pytest.fixture
    def open_store(self, open_backend):
        return lambda **options: RowStore(open_backend(), **options)

    @pytest.fixture
    def reference(self, tmp_path):
        from strata_jsonl import JsonLinesBackend

        return functools.partial(JsonLinesBackend, tmp_path / "threads.jsonl")


@attrs.frozen
class Order:
    amount: float
    status: str = "new"
    attempts: int = 0


class TestEngine:
    """Each test finds the store by its URL, through its entry point."""

    @pytest.fixture(params=list(CheckpointPolicy))
    def graph(self, request):
        return (
            StateGraph(Order)
            .add_node("Check", lambda order: attrs.evolve(order, status="checked"))
            .add_interrupt_boundary("Check", on_reject="Cancel")
            .add_node("Pay", lambda order: attrs.evolve(order, status="paid"))
            .add_node("Cancel", lambda order: attrs.evolve(order, status="cancelled"))
            .add_edge("Check", "Pay")
            .compile(identity=GraphIdentity("order", "1"), checkpointing=request.param)
        )

    @staticmethod
    def _run(shelf, work):
        async def main():
            async with open_store(shelf.url) as one, open_store(shelf.url) as other:
                return await work(one, other)

        return asyncio.run(main())

    def test_a_thread_stops_and_goes_on_in_another_store(self, shelf, graph):
        async def work(one, other):
            await graph.run("order-1", Order(10.0), one)
            return await graph.resume("order-1", HumanSignal.approve("jdoe").with_override("amount", 9.5), other)

        assert Completed("order-1", Order(9.5, "paid")) == self._run(shelf, work)

    def test_a_rejection_takes_its_route(self, shelf, graph):
        async def work(one, other):
            await graph.run("order-1", Order(10.0), one)
            return await graph.resume("order-1", HumanSignal.reject("jdoe"), other)

        assert Completed("order-1", Order(10.0, "cancelled")) == self._run(shelf, work)

    def test_a_refused_override_leaves_the_thread_as_it_was(self, shelf, graph):
        async def work(one, other):
            await graph.run("order-1", Order(10.0), one)
            before = await one.load("order-1")
            refused = await graph.resume("order-1", HumanSignal.approve("jdoe").with_override("amount", "9.5"), other)
            return refused.code, before == await other.load("order-1")

        assert (FailureCode.INVALID_SIGNAL, True) == self._run(shelf, work)

    def test_of_many_answers_at_once_one_wins(self, shelf, graph):
        async def work(one, other):
            await graph.run("order-1", Order(10.0), one)
            return await asyncio.gather(
                *(
                    graph.resume("order-1", HumanSignal.approve(f"person-{number}"), (one, other)[number % 2])
                    for number in range(20)
                )
            )

        assert {"Completed": 1, FailureCode.ALREADY_RESUMED: 19} == Counter(
            getattr(result, "code", type(result).__name__) for result in self._run(shelf, work)
        )

    def test_an_ended_thread_is_not_resumed(self, shelf, graph):
        async def work(one, other):
            await graph.run("order-1", Order(10.0), one)
            ended = await graph.end("order-1", other, by="operator")
            refused = await graph.resume("order-1", HumanSignal.approve("jdoe"), one)
            return ended.reason, refused.code

        assert (CancelReason.ENDED, FailureCode.ENDED) == self._run(shelf, work)

    def test_a_failed_node_runs_again_from_the_last_committed_state(self, shelf):
        def flaky(order, ctx):
            if order.amount < 0:
                raise ValueError("a negative amount")
            return attrs.evolve(order, status="paid")

        graph = StateGraph(Order).add_node("Pay", flaky).compile(checkpointing=CheckpointPolicy.EVERY_NODE)

        async def work(one, other):
            failed = await graph.run("order-1", Order(-1.0), one)
            corrected = HumanSignal.approve("jdoe").with_override("amount", 1.0)
            return failed.code, await graph.resume("order-1", corrected, other)

        assert (FailureCode.NODE_FAILED, Completed("order-1", Order(1.0, "paid"))) == self._run(shelf, work)
