"""Events that threads wait for."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import attrs
import pytest

from strata_core.errors import InvalidInputError, StoreUnavailableError, UsageError
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
    StateGraph,
)
from strata_core.memory import MemoryBackend
from strata_core.records import ThreadState, Wait, WaitKind
from strata_core.store import RowStore

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
DAY = timedelta(days=1)
PAID = EventSignal("payment.settled")
DUE = LevelSignals.due()


@attrs.frozen
class Order:
    total: int = 0
    paid: int = 0
    status: str = "new"


async def ship(state: Order) -> Order:
    for _ in range(5):
        await asyncio.sleep(0)
    return attrs.evolve(state, status="shipped")


def graph(world: Any, policy: CheckpointPolicy, *, ship: Any = ship, **wait: Any) -> Any:
    return (
        new(Order)
        .add_node("Order", lambda state: attrs.evolve(state, status="ordered"))
        .add_wait_for_event("Order", "payment.settled", **wait)
        .add_node("Ship", ship)
        .add_edge("Order", "Ship")
        .compile(checkpointing=policy, clock=world.clock)
    )


def code(result: Any) -> str:
    return getattr(result, "code", None) or getattr(result, "reason", None) or type(result).__name__


class TestEventSignal:
    def test_it_is_a_value_that_chains(self) -> None:
        signal = PAID.with_override("paid", 7).with_override("lines", [1])

        assert EventSignal("payment.settled", {"paid": 7, "lines": [1]}) == signal
        assert EventSignal("payment.settled") == PAID
        with pytest.raises(TypeError):
            signal.overrides["paid"] = 8  # type: ignore[index]

    @pytest.mark.parametrize("event_type", ["", "x" * 513, "a\0", "\ud800", None, 7, b"paid"])
    def test_its_type_follows_the_rules_of_a_thread_id(self, event_type: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"^event_type: "):
            EventSignal(event_type)

    @pytest.mark.parametrize("overrides", [[], "x", {1: 2}])
    def test_its_overrides_are_a_mapping_with_str_keys(self, overrides: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"^overrides: "):
            EventSignal("paid", overrides)


@BOTH
def test_an_event_brings_its_overrides_and_decides_nothing(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            stopped = await compiled.run("t", Order(5), store, metadata={"tenant": "acme"})
            world.clock.advance(60)
            result = await compiled.signal("t", PAID.with_override("paid", 5), store)
            log = await world.log(store, "t")

            wait = Wait(WaitKind.EVENT, "payment.settled")
            assert Interrupted("t", "Order", "Ship", Order(5, 0, "ordered"), ("Order",), wait) == stopped
            assert Completed("t", Order(5, 5, "shipped")) == result
            assert {None} == {checkpoint.decision for checkpoint in log}
            assert [{"tenant": "acme"}] * len(log) == [checkpoint.metadata for checkpoint in log]
            if policy is CheckpointPolicy.BOUNDARIES:
                waiting, stamped = log
                assert world.clock.now() == stamped.resumed_at
                assert waiting == attrs.evolve(stamped, resumed_at=None)
            else:
                assert [
                    ("running", None, "Order"),
                    ("interrupted", "Order", "Ship"),
                    ("running", "Order", "Ship"),
                    ("completed", "Ship", None),
                ] == await world.rows(store, "t")
                assert [0, 0, 5, 5] == [checkpoint.frozen_state["paid"] for checkpoint in log]
            assert None is await store.live_lease("t")

    asyncio.run(main())


@BOTH
def test_a_resume_with_the_event_is_the_same(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", Order(5), store)
            signals = LevelSignals.event(PAID.with_override("paid", 5))

            assert Completed("t", Order(5, 5, "shipped")) == await compiled.resume("t", signals, store)

    asyncio.run(main())


@BOTH
def test_a_wait_for_an_event_on_an_end_of_the_graph_completes_with_the_overrides(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = (
                new(Order)
                .add_node("Order", lambda state: state)
                .add_wait_for_event("Order", "payment.settled")
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", Order(), store)
            before = len(await world.log(store, "t"))

            assert Completed("t", Order(0, 5)) == await compiled.signal("t", PAID.with_override("paid", 5), store)
            added = (await world.log(store, "t"))[before:]
            assert [["resumed"], ["completed"]][policy is CheckpointPolicy.EVERY_NODE] == [c.state for c in added]

    asyncio.run(main())


@BOTH
class TestRefusals:
    def refused(self, world: Any, policy: CheckpointPolicy, event: EventSignal) -> Any:
        """Signal an event to a waiting thread, and return the refusal; the thread waits on."""

        async def main() -> Any:
            async with world.open() as store:
                compiled = graph(world, policy)
                await compiled.run("t", Order(), store)
                before = await world.log(store, "t")
                refused = await compiled.signal("t", event, store)

                assert before == await world.log(store, "t")
                assert None is refused.node
                assert isinstance(await compiled.signal("t", PAID, store), Completed)
                return refused

        return asyncio.run(main())

    def test_another_type_is_told_which_one_is_waited_for(self, world: Any, policy: CheckpointPolicy) -> None:
        refused = self.refused(world, policy, EventSignal("payment.Settled"))

        assert FailureCode.WRONG_EVENT is refused.code
        assert "thread 't' waits for the event 'payment.settled', not for 'payment.Settled'" == refused.message

    @pytest.mark.parametrize(
        ("key", "value", "detail"),
        [
            ("paid", "5", "state.paid: must be an int, not str"),
            ("payd", 5, "state.payd: is no field of Order (did you mean 'paid'?)"),
            ("paid", float("nan"), "overrides.paid: "),
        ],
    )
    def test_an_override_that_does_not_fit(
        self, world: Any, policy: CheckpointPolicy, key: str, value: Any, detail: str
    ) -> None:
        refused = self.refused(world, policy, PAID.with_override(key, value))

        assert FailureCode.INVALID_SIGNAL is refused.code
        assert "still waits" in refused.message
        assert refused.detail.startswith(detail)

    def test_a_person_cannot_answer_for_an_event(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = graph(world, policy)
                await compiled.run("t", Order(), store)
                refused = await compiled.resume("t", HumanSignal.approve("jdoe"), store)
                text = (
                    "thread 't' waits for the event 'payment.settled', not for a person; signal it with an EventSignal"
                )

                assert (FailureCode.WRONG_WAIT, text) == (refused.code, refused.message)

        asyncio.run(main())

    def test_an_event_cannot_answer_for_a_person_or_a_timer(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                builder = new(Order).add_node("A", lambda state: state).add_node("B", lambda state: state)
                builder.add_edge("A", "B").add_interrupt_boundary("A").add_timer("B", DAY)
                compiled = builder.compile(checkpointing=policy, clock=world.clock)
                await compiled.run("t", Order(), store)
                person = await compiled.signal("t", PAID, store)
                await compiled.resume("t", HumanSignal.approve("jdoe"), store)
                timer = await compiled.signal("t", PAID, store)

                assert [FailureCode.WRONG_WAIT] * 2 == [person.code, timer.code]
                assert "thread 't' waits for a person, not for an event" == person.message
                until = "2026-01-02T00:00:00+00:00"
                assert f"thread 't' waits for a timer, until {until}, not for an event" == timer.message

        asyncio.run(main())

    def test_a_signal_before_the_wait_is_not_kept(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                early: list[Any] = []

                async def order(state: Order) -> Order:
                    early.append(await compiled.signal("t", PAID, other))
                    return state

                compiled = (
                    new(Order)
                    .add_node("Order", order)
                    .add_wait_for_event("Order", "payment.settled")
                    .compile(checkpointing=policy, clock=world.clock)
                )
                stopped = await compiled.run("t", Order(), one)

                assert isinstance(stopped, Interrupted)
                if policy is CheckpointPolicy.EVERY_NODE:
                    assert FailureCode.RUNNING is early[0].code
                    assert "a signal that comes before its wait is not kept: send it again" in early[0].message
                else:
                    assert FailureCode.NOT_FOUND is early[0].code

        asyncio.run(main())

    def test_a_second_signal_is_told_that_the_first_one_came(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = graph(world, policy)
                await compiled.run("t", Order(), store)
                await compiled.signal("t", PAID, store)
                before = await world.log(store, "t")
                again = await compiled.signal("t", PAID, store)

                done = [FailureCode.ALREADY_RESUMED, FailureCode.COMPLETED]
                assert done[policy is CheckpointPolicy.EVERY_NODE] is again.code
                assert before == await world.log(store, "t")

        asyncio.run(main())


class Replaced:
    """A store with some methods replaced."""

    def __init__(self, store: Any, **methods: Any) -> None:
        self._store = store
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._store, name)


class Meeting:
    """Lets nobody go on from the first load of a thread before all have loaded it."""

    def __init__(self, parties: int) -> None:
        self._barrier = asyncio.Barrier(parties)
        self._expected = parties

    def on(self, store: Any) -> Any:
        async def load(thread_id: str) -> Any:
            entry = await store.load(thread_id)
            self._expected -= 1
            if self._expected >= 0:
                await self._barrier.wait()
            return entry

        return Replaced(store, load=load)


@BOTH
class TestRaces:
    def test_of_fifty_signals_that_saw_the_same_row_exactly_one_wins(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                shipped = []

                async def count(state: Order) -> Order:
                    shipped.append(state.paid)
                    return await ship(state)

                compiled = graph(world, policy, ship=count)
                await compiled.run("t", Order(), one)
                meeting = Meeting(50)
                stores = [meeting.on(one), meeting.on(other)]
                results = await asyncio.gather(
                    *(compiled.signal("t", PAID.with_override("paid", n), stores[n % 2]) for n in range(50))
                )

                assert {"Completed": 1, FailureCode.ALREADY_RESUMED: 49} == Counter(map(code, results))
                assert shipped == [result.state.paid for result in results if isinstance(result, Completed)]

        asyncio.run(main())

    @pytest.mark.parametrize("route", ["Late", None])
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
    def test_of_a_signal_a_timeout_and_an_end_that_saw_the_same_row_exactly_one_wins(
        self, world: Any, policy: CheckpointPolicy, route: str | None, order: tuple[int, ...]
    ) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                ran: list[str] = []

                def note(name: str) -> Any:
                    async def node(state: Order) -> Order:
                        ran.append(name)
                        return await ship(state)

                    return node

                compiled = (
                    new(Order)
                    .add_node("Order", lambda state: state)
                    .add_wait_for_event("Order", "payment.settled", timeout=DAY, on_timeout=route)
                    .add_node("Ship", note("Ship"))
                    .add_node("Late", note("Late"))
                    .add_conditional_edge("Order", lambda state: "Ship", ["Ship", "Late"])
                    .compile(checkpointing=policy, clock=world.clock)
                )
                await compiled.run("t", Order(), one)
                world.clock.advance(DAY)
                meeting = Meeting(3)
                calls = [
                    lambda: compiled.signal("t", PAID, meeting.on(one)),
                    lambda: compiled.resume("t", DUE, meeting.on(other)),
                    lambda: compiled.end("t", meeting.on(one)),
                ]
                outcomes = await asyncio.gather(*(calls[n]() for n in order))
                signalled, due, ended = (outcomes[order.index(n)] for n in range(3))
                won = [result for result in outcomes if not isinstance(result, Failed)]
                last = (await world.log(one, "t"))[-1]

                assert 1 == len(won)
                assert (["Ship"] if won == [signalled] else ["Late"] if won == [due] and route else []) == ran
                if won == [ended] or (won == [due] and route is None):
                    assert "ended" == last.state
                    assert [FailureCode.ENDED] * 2 == [r.code for r in outcomes if r is not won[0]]
                else:
                    assert {FailureCode.ALREADY_RESUMED, FailureCode.LEASE_HELD} >= {
                        r.code for r in outcomes if r is not won[0]
                    }
                    assert FailureCode.LEASE_HELD not in {getattr(r, "code", None) for r in (signalled, due)}
                states = [row[0] for row in await world.rows(one, "t")]
                assert "ended" not in states[:-1], "nothing follows the end"
                assert None is await one.live_lease("t")

        asyncio.run(main())

    def test_a_signal_whose_answer_was_lost_is_not_taken_for_somebody_elses(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                lost: list[str] = []

                def losing(name: str) -> Any:
                    async def call(*args: Any, **kwargs: Any) -> Any:
                        answer = await getattr(store, name)(*args, **kwargs)
                        if name in lost:
                            return answer
                        lost.append(name)
                        raise StoreUnavailableError("the answer was lost", maybe_written=True)

                    return call

                compiled = graph(world, policy)
                await compiled.run("t", Order(), store)
                names = ("save_if_latest", "acquire_lease", "save_under_lease")
                replaced = Replaced(store, **{name: losing(name) for name in names})
                result = await compiled.signal("t", PAID, replaced)

                assert Completed("t", Order(0, 0, "shipped")) == result
                assert lost
                states = [row[0] for row in await world.rows(store, "t")]
                assert 1 == sum(s in ("resumed", "completed") for s in states)

        asyncio.run(main())

    def test_a_timeout_whose_answer_was_lost_ends_the_thread_once(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                lost: list[int] = []

                async def save(*args: Any, **kwargs: Any) -> Any:
                    answer = await store.save_if_latest(*args, **kwargs)
                    if not lost:
                        lost.append(answer)
                        raise StoreUnavailableError("the answer was lost", maybe_written=True)
                    return answer

                compiled = graph(world, policy, timeout=DAY)
                await compiled.run("t", Order(), store)
                world.clock.advance(DAY)
                result = await compiled.resume("t", DUE, Replaced(store, save_if_latest=save))

                assert Cancelled("t", CancelReason.TIMED_OUT, "Order") == result
                assert 1 == len(lost)
                assert 1 == [row[0] for row in await world.rows(store, "t")].count("ended")

        asyncio.run(main())

    def test_a_thread_that_was_purged_meanwhile_is_not_found(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = graph(world, policy)

                async def load(thread_id: str) -> Any:
                    entry = await store.load(thread_id)
                    await store.purge(world.clock.now() + DAY, states={ThreadState.INTERRUPTED})
                    return entry

                await compiled.run("t", Order(), store)
                refused = await compiled.signal("t", PAID, Replaced(store, load=load))

                assert FailureCode.NOT_FOUND is refused.code
                assert "thread 't' was purged meanwhile" == refused.message
                assert None is await store.load("t")

        asyncio.run(main())

    def test_a_store_that_is_down_raises_and_the_thread_waits_on(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:

                async def down(*args: Any, **kwargs: Any) -> Any:
                    raise StoreUnavailableError("the connection broke")

                compiled = graph(world, policy)
                await compiled.run("t", Order(), store)
                for name in ("load", ["save_if_latest", "acquire_lease"][policy is CheckpointPolicy.EVERY_NODE]):
                    with pytest.raises(StoreUnavailableError):
                        await compiled.signal("t", PAID, Replaced(store, **{name: down}))

                assert isinstance(await compiled.signal("t", PAID, store), Completed)

        asyncio.run(main())


@BOTH
def test_a_deadline_and_a_token_stop_what_a_signal_began(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            token = CancellationToken()
            token.cancel("maintenance")
            for thread_id, limit in (("d", {"deadline": timedelta(0)}), ("t", {"cancellation": token})):
                await compiled.run(thread_id, Order(), store)
                stopped = await compiled.signal(thread_id, PAID.with_override("paid", 5), store, **limit)

                assert "Ship" == stopped.node
                last = (await world.log(store, thread_id))[-1]
                assert ("cancelled", 5) == (last.state, last.frozen_state["paid"])
                result = await compiled.resume(thread_id, None, store)
                assert Completed(thread_id, Order(0, 5, "shipped")) == result

    asyncio.run(main())


@BOTH
def test_the_call_without_a_loop_does_the_same(world: Any, policy: CheckpointPolicy) -> None:
    backend = MemoryBackend()
    compiled = graph(world, policy, timeout=DAY)
    for thread_id in ("t", "u"):
        compiled.run_sync(thread_id, Order(), RowStore(backend))

    assert Completed("t", Order(0, 5, "shipped")) == compiled.signal_sync(
        "t", PAID.with_override("paid", 5), RowStore(backend)
    )
    world.clock.advance(DAY)
    assert {"u": Cancelled("u", CancelReason.TIMED_OUT, "Order")} == compiled.wake_due_sync(RowStore(backend)).results

    async def inside() -> None:
        with pytest.raises(UsageError, match=r"signal_sync blocks"):
            compiled.signal_sync("t", PAID, RowStore(backend))
        with pytest.raises(UsageError, match=r"wake_due_sync blocks"):
            compiled.wake_due_sync(RowStore(backend))

    asyncio.run(inside())


def test_a_wrong_argument_is_refused_by_name(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled: Any = graph(world, CheckpointPolicy.BOUNDARIES)
            with pytest.raises(InvalidInputError, match=r"^event: must be an EventSignal, not HumanSignal$"):
                await compiled.signal("t", HumanSignal.approve("jdoe"), store)
            with pytest.raises(InvalidInputError, match=r"^event: must be an EventSignal, not LevelSignals$"):
                await compiled.signal("t", LevelSignals.event(PAID), store)
            with pytest.raises(InvalidInputError, match=r"^signal: .* not EventSignal; give it to signal, or Level"):
                await compiled.resume("t", PAID, store)
            with pytest.raises(InvalidInputError, match=r"^thread_id: "):
                await compiled.signal("", PAID, store)
            with pytest.raises(InvalidInputError, match=r"^store: "):
                await compiled.signal("t", PAID, "orders.db")
            with pytest.raises(InvalidInputError, match=r"^deadline: "):
                await compiled.signal("t", PAID, store, deadline=5)

    asyncio.run(main())
