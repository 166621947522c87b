"""What a graph asks before it goes on after a wait, whom it tells that it waits, and the record of its completion."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from strata_core.errors import InvalidInputError
from strata_core.graph import (
    CancellationToken,
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
    RetryPolicy,
    StateGraph,
)
from strata_core.records import ThreadState

pytestmark = pytest.mark.once("functions of the graph, called between two calls of the store")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
APPROVE = HumanSignal.approve("jdoe")
TTL = timedelta(seconds=1)


@attrs.frozen
class Order:
    price: int = 10
    paid: int = 0
    sent: bool = False


class Asked(list[Any]):
    """An `on_resume` that notes what it is asked, and does as it is told."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def check(self, order: Order, ctx: Any) -> Any:
        self.append((ctx.node, None if ctx.decision is None else ctx.decision.is_approved, order.price))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def selling(world: Any, policy: CheckpointPolicy, pay: Any = None, **options: Any) -> Any:
    return (
        new(Order)
        .add_node("Ask", lambda order: order)
        .add_interrupt_boundary("Ask", on_reject="Cancel")
        .add_node("Pay", pay or (lambda order: attrs.evolve(order, paid=order.price)))
        .add_node("Send", lambda order: attrs.evolve(order, sent=True))
        .add_node("Cancel", lambda order: order)
        .add_edge("Ask", "Pay")
        .add_edge("Pay", "Send")
        .compile(checkpointing=policy, clock=world.clock, lease_ttl=TTL, **options)
    )


@BOTH
class TestOnResume:
    def test_it_is_asked_once_before_the_first_node_after_the_wait(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = Asked()
                graph = selling(world, policy, on_resume=asked.check)
                await graph.run("t", Order(), store)

                assert [] == asked
                signal = APPROVE.with_override("price", 12)
                assert Completed("t", Order(12, 12, True)) == await graph.resume("t", signal, store)
                assert [("Pay", True, 12)] == asked
                assert not any("strata.after_wait" in row.metadata for row in (await world.log(store, "t"))[3:])

        asyncio.run(main())

    def test_the_first_node_begins_with_the_state_it_returns(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:

                async def reprice(order: Order) -> Order:
                    await asyncio.sleep(0)
                    return attrs.evolve(order, price=99)

                graph = selling(world, policy, on_resume=reprice)
                await graph.run("t", Order(), store)

                assert Completed("t", Order(99, 99, True)) == await graph.resume("t", APPROVE, store)

        asyncio.run(main())

    def test_a_change_in_place_that_is_not_returned_is_lost(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(dict)
                    .add_node("A", lambda state: state)
                    .add_interrupt_boundary("A")
                    .add_node("B", lambda state: state)
                    .add_edge("A", "B")
                    .compile(checkpointing=policy, clock=world.clock, on_resume=lambda state: state["lines"].append(2))
                )
                await graph.run("t", {"lines": [1]}, store)

                assert Completed("t", {"lines": [1]}) == await graph.resume("t", APPROVE, store)

        asyncio.run(main())

    def test_it_is_asked_however_the_wait_ended(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = Asked()
                graph = selling(world, policy, on_resume=asked.check)
                await graph.run("rejected", Order(), store)
                await graph.resume("rejected", HumanSignal.reject("jdoe"), store)
                waiting = (
                    new(Order)
                    .add_node("Order", lambda order: order)
                    .add_wait_for_event("Order", "paid", timeout=timedelta(days=1), on_timeout="Remind")
                    .add_node("Ship", lambda order: order)
                    .add_node("Remind", lambda order: order)
                    .add_edge("Order", "Ship")
                    .compile(checkpointing=policy, clock=world.clock, on_resume=asked.check)
                )
                for thread_id in ("paid", "due"):
                    await waiting.run(thread_id, Order(), store)
                await waiting.signal("paid", EventSignal("paid"), store)
                world.clock.advance(timedelta(days=1))
                await waiting.resume("due", LevelSignals.due(), store)

                assert [("Cancel", False, 10), ("Ship", None, 10), ("Remind", None, 10)] == asked

        asyncio.run(main())

    def test_what_it_raises_fails_the_thread_which_keeps_the_answer_and_is_checked_again(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = Asked(ValueError("sold out"))
                graph = selling(world, policy, on_resume=asked.check)
                await graph.run("t", Order(), store, metadata={"tenant": "acme"})
                failed = await graph.resume("t", APPROVE, store)
                latest = (await world.log(store, "t"))[-1]

                assert (
                    Failed(
                        "t",
                        FailureCode.RESUME_CHECK_FAILED,
                        "on_resume failed before node 'Pay'",
                        "Pay",
                        "ValueError: sold out",
                    )
                    == failed
                )
                assert asked.answer is failed.error
                assert (ThreadState.FAILED, "Pay", "Pay") == (latest.state, latest.suspended_node, latest.next_node)
                assert "ValueError: sold out" == latest.metadata["strata.error"]
                assert "jdoe" == latest.decision.reviewer

                again = await graph.resume("t", None, store)
                asked.answer = None
                corrected = await graph.resume("t", HumanSignal.approve("ann").with_override("price", 7), store)

                assert FailureCode.RESUME_CHECK_FAILED is again.code
                assert Completed("t", Order(7, 7, True)) == corrected
                assert [("Pay", True, 10), ("Pay", True, 10), ("Pay", True, 7)] == asked

        asyncio.run(main())

    def test_it_is_asked_again_until_the_node_has_committed_and_not_after(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = Asked()
                trouble = [ValueError("no answer"), None, ValueError("no stamps")]

                def fail(order: Order, ctx: Any) -> Order:
                    error = trouble.pop(0)
                    if error is not None:
                        raise error
                    return attrs.evolve(order, paid=order.price)

                graph = (
                    new(Order)
                    .add_node("Ask", lambda order: order)
                    .add_interrupt_boundary("Ask")
                    .add_node("Pay", fail)
                    .add_node("Send", fail)
                    .add_edge("Ask", "Pay")
                    .add_edge("Pay", "Send")
                    .compile(checkpointing=policy, clock=world.clock, on_resume=asked.check)
                )
                await graph.run("t", Order(), store)
                codes = [(await graph.resume("t", signal, store)).node for signal in (APPROVE, None)]
                trouble.append(None)
                last = await graph.resume("t", None, store)

                assert ["Pay", "Send"] == codes
                assert isinstance(last, Completed)
                assert [("Pay", True, 10), ("Pay", True, 10)] == asked

        asyncio.run(main())

    def test_a_cancellation_while_the_first_node_commits_does_not_bring_the_question_back(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = Asked()
                graph = selling(world, policy, on_resume=asked.check)
                await graph.run("t", Order(), store)

                class Cancelling:
                    def __getattr__(self, name: str) -> Any:
                        return getattr(store, name)

                    async def save_under_lease(self, *args: Any, **options: Any) -> Any:
                        answer = await store.save_under_lease(*args, **options)
                        if task.cancelling() == 0:
                            task.cancel()
                            await asyncio.sleep(0)
                        return answer

                task = asyncio.create_task(graph.resume("t", APPROVE, Cancelling()))
                if policy is CheckpointPolicy.EVERY_NODE:
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    assert ("cancelled", "Send", "Send") == (await world.rows(store, "t"))[-1]
                    task = asyncio.create_task(graph.resume("t", None, store))

                assert Completed("t", Order(10, 10, True)) == await task
                assert 1 == len(asked)

        asyncio.run(main())

    def test_a_retry_within_the_run_asks_nothing(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = Asked()
                attempts = []

                def second_time(order: Order) -> Order:
                    attempts.append(order)
                    if len(attempts) == 1:
                        raise ConnectionError
                    return order

                graph = (
                    new(Order)
                    .add_node("Ask", lambda order: order)
                    .add_interrupt_boundary("Ask")
                    .add_node("Pay", second_time, retry=RetryPolicy(max_attempts=2, initial_delay=timedelta(0)))
                    .add_edge("Ask", "Pay")
                    .compile(checkpointing=policy, clock=world.clock, on_resume=asked.check)
                )
                await graph.run("t", Order(), store)
                await graph.resume("t", APPROVE, store)

                assert (2, 1) == (len(attempts), len(asked))

        asyncio.run(main())

    def test_a_deadline_interrupts_it_and_the_thread_is_checked_when_it_is_resumed(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = []
                started = asyncio.Event()

                async def check(order: Order, ctx: Any) -> None:
                    asked.append(ctx.node)
                    if len(asked) == 1:
                        started.set()
                        await asyncio.Event().wait()

                graph = selling(world, policy, on_resume=check)
                await graph.run("t", Order(), store)
                token = CancellationToken()
                task = asyncio.create_task(graph.resume("t", APPROVE, store, cancellation=token))
                await started.wait()
                token.cancel()

                assert Cancelled("t", CancelReason.CANCELLED, "Pay") == await task
                assert Completed("t", Order(10, 10, True)) == await graph.resume("t", None, store)
                assert ["Pay", "Pay"] == asked

        asyncio.run(main())

    @pytest.mark.parametrize("wrong", [{"price": 1}, 7, "Order"])
    def test_what_is_no_state_is_refused_as_its_failure(
        self, world: Any, policy: CheckpointPolicy, wrong: object
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = selling(world, policy, on_resume=lambda order: wrong)
                await graph.run("t", Order(), store)
                failed = await graph.resume("t", APPROVE, store)

                assert FailureCode.RESUME_CHECK_FAILED is failed.code
                assert f"on_resume returned {type(wrong).__name__}, not Order" in failed.detail

        asyncio.run(main())

    @pytest.mark.parametrize("price", [float("nan"), 10**4300], ids=["no int", "too long for JSON"])
    def test_a_state_that_cannot_be_saved_is_its_failure_too_and_leaves_no_lease(
        self, world: Any, policy: CheckpointPolicy, price: Any
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = selling(world, policy, on_resume=lambda order: attrs.evolve(order, price=price))
                await graph.run("t", Order(), store)
                failed = await graph.resume("t", APPROVE, store)

                assert FailureCode.RESUME_CHECK_FAILED is failed.code
                assert "price" in failed.detail
                assert "failed" == (await world.rows(store, "t"))[-1][0]
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_at_an_end_of_the_graph_there_is_nothing_to_ask(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked = Asked(ValueError("never"))
                graph = (
                    new(Order)
                    .add_node("Ask", lambda order: order)
                    .add_interrupt_boundary("Ask")
                    .compile(checkpointing=policy, clock=world.clock, on_resume=asked.check)
                )
                await graph.run("t", Order(), store)

                assert Completed("t", Order()) == await graph.resume("t", APPROVE, store)
                assert [] == asked

        asyncio.run(main())

    def test_what_it_awaits_may_be_cancelled_without_the_run(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:

                async def check(order: Order) -> None:
                    other = asyncio.create_task(asyncio.sleep(60))
                    other.cancel()
                    await other

                graph = selling(world, policy, on_resume=check)
                await graph.run("t", Order(), store)

                assert FailureCode.RESUME_CHECK_FAILED is (await graph.resume("t", APPROVE, store)).code

        asyncio.run(main())


class TestOnResumeAfterADeath:
    @pytest.mark.parametrize("dies_in", ["check", "Pay", "Send"])
    def test_a_recovery_asks_as_long_as_the_first_node_has_not_committed(self, world: Any, dies_in: str) -> None:
        async def main() -> None:
            async with world.open() as store:
                asked: list[str] = []
                hanging = asyncio.Event()
                hangs = True

                async def hang(where: str) -> None:
                    if hangs and where == dies_in:
                        hanging.set()
                        await asyncio.Event().wait()

                async def check(order: Order, ctx: Any) -> None:
                    asked.append(ctx.idempotency_key)
                    await hang("check")

                async def work(order: Order, ctx: Any) -> Order:
                    await hang(ctx.node)
                    return order

                graph = (
                    new(Order)
                    .add_node("Ask", lambda order: order)
                    .add_interrupt_boundary("Ask")
                    .add_node("Pay", work)
                    .add_node("Send", work)
                    .add_edge("Ask", "Pay")
                    .add_edge("Pay", "Send")
                    .compile(
                        checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock, lease_ttl=TTL, on_resume=check
                    )
                )
                await graph.run("t", Order(), store)
                await world.die(lambda process: graph.resume("t", APPROVE, process), store, hanging)
                await world.lapse(store, "t", TTL)
                hanging.clear()
                await world.die(lambda process: graph.recover("t", process), store, hanging)
                await world.lapse(store, "t", TTL)
                hangs = False

                assert Completed("t", Order()) == await graph.recover("t", store)
                assert (1 if dies_in == "Send" else 3) == len(asked)
                assert 1 == len(set(asked)), "the key of the node that is next"

        asyncio.run(main())


@BOTH
class TestOnInterrupted:
    def test_it_is_told_the_result_after_the_row_is_saved(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                told = []

                async def tell(interrupted: Any) -> None:
                    told.append((interrupted, (await world.rows(other, "t"))[-1], await other.live_lease("t")))

                graph = selling(world, policy, on_interrupted=tell)
                result = await graph.run("t", Order(), one)

                assert isinstance(result, Interrupted)
                assert [(result, ("interrupted", "Ask", "Pay"), None)] == told

        asyncio.run(main())

    def test_a_resume_a_signal_and_a_wake_that_come_to_the_next_wait_tell_too(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                told: list[tuple[str, str]] = []
                graph = new(Order)
                for name in ("A", "B", "C", "D"):
                    graph.add_node(name, lambda order: order)
                compiled = (
                    graph.add_edge("A", "B").add_edge("B", "C").add_edge("C", "D")
                    .add_interrupt_boundary("A").add_wait_for_event("B", "paid").add_timer("C", timedelta(hours=1))
                    .compile(
                        checkpointing=policy,
                        clock=world.clock,
                        on_interrupted=lambda it: told.append((it.suspended_node, it.wait and it.wait.kind)),
                    )
                )  # fmt: skip
                await compiled.run("t", Order(), store)
                await compiled.resume("t", APPROVE, store)
                await compiled.signal("t", EventSignal("paid"), store)
                world.clock.advance(timedelta(hours=1))
                report = await compiled.wake_due(store)

                assert {"t": Completed("t", Order())} == report.results
                assert [("A", None), ("B", "event"), ("C", "timer")] == told

        asyncio.run(main())

    @pytest.mark.parametrize("way", ["def", "async", "cancelled"])
    def test_its_failure_is_logged_and_changes_nothing(
        self, world: Any, policy: CheckpointPolicy, way: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        def sync(found: Any) -> None:
            raise ConnectionError(f"no mail about {found.frozen_state}")

        async def asynchronous(found: Any) -> None:
            sync(found)

        async def cancelled(_: Any) -> None:
            other = asyncio.create_task(asyncio.sleep(60))
            other.cancel()
            await other

        async def main() -> None:
            async with world.open() as store:
                tell = {"def": sync, "async": asynchronous, "cancelled": cancelled}[way]
                graph = selling(world, policy, on_interrupted=tell)
                result = await graph.run("t", Order(price=4711), store)

                assert isinstance(result, Interrupted)
                assert "interrupted" == (await world.rows(store, "t"))[-1][0]
                assert Completed("t", Order(4711, 4711, True)) == await graph.resume("t", APPROVE, store)

        with caplog.at_level(logging.ERROR):
            asyncio.run(main())

        (record,) = caplog.records
        assert record.message.startswith("thread 't' waits, but on_interrupted failed with ")
        assert Path(__file__).name in record.message, "where it failed"
        assert "4711" not in caplog.text, "what an error says may hold something of the state"

    def test_what_it_does_to_the_state_does_not_reach_the_result(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(dict)
                    .add_node("A", lambda state: state)
                    .add_interrupt_boundary("A")
                    .compile(
                        checkpointing=policy,
                        clock=world.clock,
                        on_interrupted=lambda found: found.frozen_state["lines"].clear(),
                    )
                )
                result = await graph.run("t", {"lines": [1]}, store)

                assert {"lines": [1]} == result.frozen_state

        asyncio.run(main())

    def test_cancelling_the_call_meanwhile_leaves_the_thread_waiting(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                started = asyncio.Event()

                async def tell(_: Any) -> None:
                    started.set()
                    await asyncio.Event().wait()

                graph = selling(world, policy, on_interrupted=tell)
                task = asyncio.create_task(graph.run("t", Order(), store))
                await started.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

                assert "interrupted" == (await world.rows(store, "t"))[-1][0]
                assert Completed("t", Order(10, 10, True)) == await graph.resume("t", APPROVE, store)

        asyncio.run(main())

    def test_neither_deadline_nor_token_interrupts_it(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                token = CancellationToken()
                told = []

                async def tell(_: Any) -> None:
                    token.cancel()
                    world.clock.advance(timedelta(minutes=2))
                    for _ in range(5):
                        await asyncio.sleep(0)
                    told.append(True)

                graph = selling(world, policy, on_interrupted=tell)
                result = await graph.run("t", Order(), store, deadline=timedelta(minutes=1), cancellation=token)

                assert isinstance(result, Interrupted)
                assert [True] == told

        asyncio.run(main())

    def test_without_a_store_nobody_can_answer_and_nobody_is_told(self, world: Any, policy: CheckpointPolicy) -> None:
        told: list[Any] = []
        result = asyncio.run(selling(world, policy, on_interrupted=told.append).run("t", Order()))

        assert isinstance(result, Interrupted)
        assert [] == told


def test_a_recovery_that_freezes_a_thread_tells_so(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            told: list[Any] = []
            hanging = asyncio.Event()
            hangs = True

            async def work(order: Order) -> Order:
                if hangs:
                    hanging.set()
                    await asyncio.Event().wait()
                return order

            graph = (
                new(Order)
                .add_node("A", work)
                .add_interrupt_boundary("A")
                .compile(
                    checkpointing=CheckpointPolicy.EVERY_NODE,
                    clock=world.clock,
                    lease_ttl=TTL,
                    on_interrupted=told.append,
                )
            )
            await world.die(lambda process: graph.run("t", Order(), process), store, hanging)
            await world.lapse(store, "t", TTL)
            hangs = False
            report = await graph.recover_all(store)

            assert ["t"] == list(report.results)
            assert list(report.results.values()) == told

    asyncio.run(main())


class TestCompletionRecord:
    def test_a_straight_run_leaves_one_row(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = straight(world)
                await graph.run("t", {"n": 1}, store, metadata={"tenant": "acme"})
                (row,) = await world.log(store, "t")

                assert ("completed", "B", None) == (row.status.value, row.suspended_node, row.next_node)
                assert ({"n": 1}, {"tenant": "acme"}) == (row.frozen_state, row.metadata)
                again = await graph.run("t", {"n": 2}, store, if_exists="error")
                assert FailureCode.THREAD_EXISTS is again.code

        asyncio.run(main())

    def test_a_thread_that_waited_has_three_rows_and_is_purged(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = selling(world, CheckpointPolicy.BOUNDARIES, completion_record=True)
                await graph.run("t", Order(), store)
                await graph.resume("t", APPROVE, store)

                assert ["interrupted", "resumed", "completed"] == [row[0] for row in await world.rows(store, "t")]
                assert "jdoe" == (await world.log(store, "t"))[-1].decision.reviewer
                assert FailureCode.ALREADY_RESUMED is (await graph.resume("t", APPROVE, store)).code
                world.clock.advance(timedelta(days=1))
                assert 1 == await store.purge(world.clock.now())

        asyncio.run(main())

    def test_an_answer_at_an_end_of_the_graph_needs_one_row(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(dict)
                    .add_node("A", lambda state: state)
                    .add_interrupt_boundary("A")
                    .compile(clock=world.clock, completion_record=True)
                )
                await graph.run("t", {"n": 1}, store)

                assert Completed("t", {"n": 2}) == await graph.resume("t", APPROVE.with_override("n", 2), store)
                assert ["interrupted", "completed"] == [row[0] for row in await world.rows(store, "t")]
                assert {"n": 2} == (await world.log(store, "t"))[-1].frozen_state

        asyncio.run(main())

    def test_it_is_not_written_over_what_somebody_else_has_written_meanwhile(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):

                async def end_meanwhile(order: Order) -> Order:
                    assert isinstance(await graph.end("t", other), Cancelled)
                    return order

                graph = selling(world, CheckpointPolicy.BOUNDARIES, end_meanwhile, completion_record=True)
                await graph.run("t", Order(), one)

                assert Cancelled("t", CancelReason.ENDED, "Send") == await graph.resume("t", APPROVE, one)
                assert ["interrupted", "resumed", "ended"] == [row[0] for row in await world.rows(one, "t")]

        asyncio.run(main())

    def test_of_racing_runs_of_a_new_thread_one_completes(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                graph = straight(world)
                results = await asyncio.gather(
                    *(graph.run("t", {"n": n}, store, if_exists="error") for n, store in enumerate([one, other] * 5))
                )

                assert 1 == sum(isinstance(result, Completed) for result in results)
                assert [FailureCode.THREAD_EXISTS] * 9 == [r.code for r in results if isinstance(r, Failed)]
                assert 1 == len(await world.log(one, "t"))

        asyncio.run(main())

    def test_a_state_that_cannot_be_saved_fails_the_last_node(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(dict)
                    .add_node("A", lambda state: {"n": float("nan")})
                    .compile(clock=world.clock, completion_record=True)
                )
                result = await graph.run("t", {"n": 1}, store)

                assert (FailureCode.INVALID_STATE, "A") == (result.code, result.node)
                assert [("failed", "A", "A")] == await world.rows(store, "t")

        asyncio.run(main())

    def test_nothing_changes_where_every_node_is_written(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                await straight(world, checkpointing=CheckpointPolicy.EVERY_NODE).run("t", {"n": 1}, store)

                assert ["running", "running", "completed"] == [row[0] for row in await world.rows(store, "t")]

        asyncio.run(main())


def straight(world: Any, **options: Any) -> Any:
    return (
        new(dict)
        .add_node("A", lambda state: state)
        .add_node("B", lambda state: state)
        .add_edge("A", "B")
        .compile(clock=world.clock, completion_record=True, **options)
    )


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"completion_record": 1}, r"^completion_record: must be a bool, not int$"),
            ({"on_resume": "check"}, r"^on_resume: 'check' cannot be called$"),
            ({"on_resume": lambda: None}, r"^on_resume: takes no parameter"),
            ({"on_resume": lambda a, b, c: None}, r"^on_resume: has 3 required parameters"),
            ({"on_interrupted": 3}, r"^on_interrupted: 3 cannot be called$"),
            ({"on_interrupted": lambda a, b: None}, r"^on_interrupted: requires two parameters"),
        ],
    )
    def test_what_cannot_serve_is_refused_by_compile(self, options: Any, problem: str) -> None:
        with pytest.raises(InvalidInputError, match=problem):
            new(dict).add_node("A", lambda state: state).compile(**options)
