"""Writers that meet on one thread: exactly one wins, and the others know."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import attrs
import pytest
from lost_support import NO_ANSWER, OVERWRITTEN, STOOD_STILL, TAKEN, lost

from strata_core.errors import StoreUnavailableError
from strata_core.graph import Cancelled, CancelReason, CheckpointPolicy, Completed, FailureCode, HumanSignal, StateGraph

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

TTL = timedelta(seconds=30)
"""What a lease lives for unless a graph says otherwise."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))


@attrs.frozen
class Order:
    paid: int = 0


def graph(world: Any, policy: CheckpointPolicy, pay: Any = None) -> Any:
    async def slowly(state: Order) -> Order:
        for _ in range(5):
            await asyncio.sleep(0)
        return attrs.evolve(state, paid=state.paid + 1)

    return (
        new(Order)
        .add_node("Check", lambda state: state)
        .add_interrupt_boundary("Check")
        .add_node("Pay", pay or slowly)
        .add_node("Ship", lambda state: state)
        .add_edge("Check", "Pay")
        .add_edge("Pay", "Ship")
        .compile(checkpointing=policy, clock=world.clock)
    )


def code(result: Any) -> str:
    return getattr(result, "code", type(result).__name__)


@BOTH
def test_of_fifty_answers_exactly_one_wins(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            compiled = graph(world, policy)
            await compiled.run("t", Order(), one)
            results = await asyncio.gather(
                *(compiled.resume("t", HumanSignal.approve(f"person-{n}"), one if n % 2 else other) for n in range(50))
            )

            assert {"Completed": 1, FailureCode.ALREADY_RESUMED: 49} == Counter(map(code, results))
            assert [1] == [result.state.paid for result in results if isinstance(result, Completed)]
            log = await world.log(one, "t")
            assert 1 == len({c.decision.reviewer for c in log if c.decision is not None})

    asyncio.run(main())


@BOTH
def test_an_answer_that_comes_long_after_another_one_is_told_so(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", Order(), store)
            await compiled.resume("t", HumanSignal.approve("first"), store)
            before = await world.log(store, "t")
            late = await compiled.resume("t", HumanSignal.approve("second"), store)

            assert FailureCode.ALREADY_RESUMED is late.code
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
    """Lets nobody go on from the first loads before all have loaded."""

    def __init__(self, parties: int) -> None:
        self._barrier = asyncio.Barrier(parties)
        self._expected = parties

    def on(self, store: Any) -> Any:
        meeting = self

        class Held:
            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            async def load(self, thread_id: str) -> Any:
                entry = await store.load(thread_id)
                meeting._expected -= 1
                if meeting._expected >= 0:
                    await meeting._barrier.wait()
                return entry

        return Held()


@BOTH
@pytest.mark.parametrize("end_first", [True, False])
def test_of_an_end_and_an_answer_that_saw_the_same_row_exactly_one_wins(
    world: Any, policy: CheckpointPolicy, end_first: bool
) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            compiled = graph(world, policy)
            outcomes: Counter[tuple[str, str]] = Counter()
            for n in range(10):
                thread = f"t{n}"
                await compiled.run(thread, Order(), one)
                meeting = Meeting(2)
                resume = compiled.resume(thread, HumanSignal.approve("jdoe"), meeting.on(one))
                end = compiled.end(thread, meeting.on(other))
                if end_first:
                    ended, resumed = await asyncio.gather(end, resume)
                else:
                    resumed, ended = await asyncio.gather(resume, end)
                outcomes[code(resumed), code(ended)] += 1
                states = [row[0] for row in await world.rows(one, thread)]
                assert ("ended" == states[-1]) is isinstance(ended, Cancelled)
                assert "ended" not in states[:-1], "nothing follows the end"

            assert set(outcomes) <= {
                ("Completed", FailureCode.ALREADY_RESUMED),
                ("Completed", FailureCode.LEASE_HELD),
                (FailureCode.ENDED, "Cancelled"),
            }

    asyncio.run(main())


@BOTH
def test_of_fifty_answers_that_saw_the_same_row_exactly_one_wins(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            compiled = graph(world, policy)
            await compiled.run("t", Order(), one)
            meeting = Meeting(50)
            stores = [meeting.on(one), meeting.on(other)]
            results = await asyncio.gather(
                *(compiled.resume("t", HumanSignal.approve(f"person-{n}"), stores[n % 2]) for n in range(50))
            )

            assert {"Completed": 1, FailureCode.ALREADY_RESUMED: 49} == Counter(map(code, results))

    asyncio.run(main())


@BOTH
def test_an_answer_under_somebodys_lease_is_told_so_and_the_thread_still_waits(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            compiled = graph(world, policy)
            await compiled.run("t", Order(), one)
            before = await world.log(one, "t")
            lease = await other.acquire_lease("t", owner="operator", ttl=timedelta(seconds=30))
            refused = await compiled.resume("t", HumanSignal.approve("jdoe"), one)

            assert FailureCode.LEASE_HELD is refused.code
            assert before == await world.log(one, "t")
            await other.release_lease(lease)
            assert Completed("t", Order(1)) == await compiled.resume("t", HumanSignal.approve("jdoe"), one)

    asyncio.run(main())


def test_a_resumed_run_writes_nothing_after_somebody_ended_its_thread(world: Any) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):

            async def end_meanwhile(state: Order) -> Order:
                assert Cancelled("t", CancelReason.ENDED, "Check") == await compiled.end("t", other)
                raise ValueError("too late")

            compiled = graph(world, CheckpointPolicy.BOUNDARIES, end_meanwhile)
            await compiled.run("t", Order(), one)
            result = await compiled.resume("t", HumanSignal.approve("jdoe"), one)

            assert Cancelled("t", CancelReason.ENDED, "Pay") == result
            assert ["interrupted", "resumed", "ended"] == [row[0] for row in await world.rows(one, "t")]

    asyncio.run(main())


def test_a_resumed_run_that_was_overtaken_writes_nothing(world: Any) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):

            async def overtake(state: Order) -> Order:
                await compiled.run("t", Order(paid=7), other)
                raise ValueError("too late")

            compiled = graph(world, CheckpointPolicy.BOUNDARIES, overtake)
            await compiled.run("t", Order(), one)
            result = await compiled.resume("t", HumanSignal.approve("jdoe"), one)

            assert FailureCode.SUPERSEDED is result.code
            assert ["interrupted", "resumed", "interrupted"] == [row[0] for row in await world.rows(one, "t")]

    asyncio.run(main())


class TestLeases:
    def test_a_second_run_of_a_thread_is_refused_while_the_first_one_runs(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                results: list[Any] = []

                async def again(state: Order) -> Order:
                    if not results:
                        results.append(await compiled.run("t", Order(), other))
                        results.append(await compiled.end("t", other))
                    return state

                compiled = (
                    new(Order)
                    .add_node("A", again)
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                first = await compiled.run("t", Order(), one)

                assert Completed("t", Order()) == first
                assert [FailureCode.LEASE_HELD, FailureCode.LEASE_HELD] == [result.code for result in results]

        asyncio.run(main())

    def test_a_run_whose_lease_ran_out_stops_and_writes_nothing(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:

                def sleep_too_long(state: Order) -> Order:
                    world.clock.advance(timedelta(seconds=30))
                    return state

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, sleep_too_long)
                await compiled.run("t", Order(), store)
                result = await compiled.resume("t", HumanSignal.approve("jdoe"), store)

                assert lost("Pay", STOOD_STILL, TTL) == result
                assert ["running", "interrupted", "running"] == [row[0] for row in await world.rows(store, "t")]

        asyncio.run(main())

    def test_a_node_that_never_lets_the_loop_turn_does_not_lose_the_lease(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:

                def slow(state: Order) -> Order:
                    world.clock.advance(timedelta(seconds=20))
                    return attrs.evolve(state, paid=state.paid + 1)

                graph = new(Order)
                for n in range(6):
                    graph.add_node(f"n{n}", slow)
                    if n:
                        graph.add_edge(f"n{n - 1}", f"n{n}")
                compiled = graph.compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)

                assert Completed("t", Order(6)) == await compiled.run("t", Order(), store)
                assert 7 == len(await world.rows(store, "t"))

        asyncio.run(main())

    def test_the_lease_is_renewed_in_the_background_while_a_node_waits(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                expiries = []

                async def wait(state: Order) -> Order:
                    for _ in range(4):
                        world.clock.advance(timedelta(seconds=10))
                        for _ in range(1000):
                            await asyncio.sleep(0)
                            lease = await store.live_lease("t")
                            left = world.left(lease)
                            if left == timedelta(seconds=30):
                                break
                        expiries.append(left)
                    return state

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, wait)
                await compiled.run("t", Order(), store)
                result = await compiled.resume("t", HumanSignal.approve("jdoe"), store)

                assert Completed("t", Order()) == result
                assert [timedelta(seconds=30)] * 4 == expiries

        asyncio.run(main())

    def test_a_waiting_node_is_interrupted_when_the_lease_is_lost(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                stopped = []
                started = asyncio.Event()

                async def wait(state: Order) -> Order:
                    started.set()
                    try:
                        await asyncio.Event().wait()
                    except asyncio.CancelledError:
                        stopped.append(True)
                        raise
                    return state

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, wait)
                await compiled.run("t", Order(), one)
                task = asyncio.create_task(compiled.resume("t", HumanSignal.approve("jdoe"), one))
                await started.wait()
                world.clock.advance(timedelta(seconds=31))
                rival = graph(world, CheckpointPolicy.EVERY_NODE)
                assert Cancelled("t", CancelReason.ENDED, "Check") == await rival.end("t", other)

                assert lost("Pay", STOOD_STILL, TTL) == await task
                assert [True] == stopped
                assert ["running", "interrupted", "running", "ended"] == [row[0] for row in await world.rows(one, "t")]

        asyncio.run(main())

    @pytest.mark.parametrize("hangs", [True, False])
    def test_a_store_that_does_not_answer_renewals_costs_the_lease_when_its_time_has_passed(
        self, world: Any, hangs: bool
    ) -> None:
        async def main() -> None:
            async with world.open() as store:

                async def renew(lease: Any, *, ttl: timedelta) -> Any:
                    if hangs:
                        await asyncio.Event().wait()
                    raise StoreUnavailableError("the connection broke")

                async def wait(state: Order) -> Order:
                    for _ in range(31):
                        world.clock.advance(1)
                        for _ in range(10):
                            await asyncio.sleep(0)
                    await asyncio.Event().wait()
                    return state

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, wait)
                await compiled.run("t", Order(), store)
                result = await compiled.resume("t", HumanSignal.approve("jdoe"), Replaced(store, renew_lease=renew))

                assert lost("Pay", NO_ANSWER if hangs else "the store failed with StoreUnavailableError", TTL) == result
                assert ["running", "interrupted", "running"] == [row[0] for row in await world.rows(store, "t")]

        asyncio.run(main())

    def test_a_renewal_under_way_at_the_end_does_not_look_like_a_lost_lease(
        self, world: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                begun = asyncio.Event()

                async def renew(lease: Any, *, ttl: timedelta) -> Any:
                    begun.set()
                    while await store.live_lease("t") is not None:
                        await asyncio.sleep(0)
                    return await store.renew_lease(lease, ttl=ttl)

                async def save_slowly(*args: Any, **kwargs: Any) -> int:
                    sequence: int = await store.save_under_lease(*args, **kwargs)
                    for _ in range(20):
                        await asyncio.sleep(0)
                    return sequence

                async def outlive(state: Order) -> Order:
                    world.clock.advance(11)
                    await begun.wait()
                    return state

                compiled = (
                    new(Order)
                    .add_node("A", outlive)
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                slow = Replaced(store, renew_lease=renew, save_under_lease=save_slowly)
                result = await compiled.run("t", Order(), slow)

                assert Completed("t", Order()) == result
                assert "lost" not in caplog.text
                assert "not renewed" not in caplog.text

        asyncio.run(main())

    @pytest.mark.parametrize("waited", [11, 31, 300])
    def test_a_store_that_makes_the_acquire_wait_does_not_cost_the_lease(self, world: Any, waited: int) -> None:
        async def main() -> None:
            async with world.open() as store:
                renewals = []

                async def acquire(*args: Any, **kwargs: Any) -> Any:
                    world.clock.advance(waited)  # before the store takes it, such as for a purge
                    return await store.acquire_lease(*args, **kwargs)

                async def renew(*args: Any, **kwargs: Any) -> Any:
                    renewals.append(len(await world.rows(store, "t")))
                    return await store.renew_lease(*args, **kwargs)

                compiled = (
                    new(Order)
                    .add_node("A", lambda state: state)
                    .add_node("B", lambda state: state)
                    .add_edge("A", "B")
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                result = await compiled.run("t", Order(), Replaced(store, acquire_lease=acquire, renew_lease=renew))

                assert Completed("t", Order()) == result
                assert [1] == renewals, "once, before the first node"
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_a_lease_that_has_run_out_when_its_acquire_is_answered_is_lost(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:

                async def acquire(*args: Any, **kwargs: Any) -> Any:
                    lease = await store.acquire_lease(*args, **kwargs)
                    world.clock.advance(31)
                    return lease

                ran: list[Order] = []
                compiled = graph(world, CheckpointPolicy.EVERY_NODE, ran.append)
                result = await compiled.run("t", Order(), Replaced(store, acquire_lease=acquire))

                assert lost("Check", TAKEN) == result
                assert ["running"] == [row[0] for row in await world.rows(store, "t")]
                assert [] == ran

        asyncio.run(main())

    def test_the_lease_is_counted_from_when_a_renewal_was_sent_and_not_from_its_answer(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                started, answered = asyncio.Event(), asyncio.Event()

                async def renew(lease: Any, *, ttl: timedelta) -> Any:
                    if answered.is_set():
                        await asyncio.Event().wait()  # the store hangs from now on
                    renewed = await store.renew_lease(lease, ttl=ttl)
                    world.clock.advance(15)  # the answer takes its time
                    answered.set()
                    return renewed

                async def wait(state: Order) -> Order:
                    started.set()
                    await asyncio.Event().wait()
                    return state

                async def pass_time(seconds: int) -> None:
                    world.clock.advance(seconds)
                    for _ in range(20):
                        await asyncio.sleep(0)

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, wait)
                await compiled.run("t", Order(), store)
                slow = Replaced(store, renew_lease=renew)
                task = asyncio.create_task(compiled.resume("t", HumanSignal.approve("jdoe"), slow))
                await started.wait()
                await pass_time(10)
                await answered.wait()  # after 25 seconds, for a renewal that was sent after 10
                await pass_time(14)

                assert not task.done()
                await pass_time(1)
                assert lost("Pay", NO_ANSWER, TTL) == await asyncio.wait_for(task, 60)

        asyncio.run(main())

    def test_a_renewal_that_failed_is_tried_again(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                calls = []
                renewed = asyncio.Event()

                async def renew(lease: Any, *, ttl: timedelta) -> Any:
                    calls.append(world.clock.monotonic())
                    if len(calls) < 3:
                        raise StoreUnavailableError("the connection broke")
                    lease = await store.renew_lease(lease, ttl=ttl)
                    renewed.set()
                    return lease

                async def wait(state: Order) -> Order:
                    for _ in range(17):
                        world.clock.advance(1)
                        for _ in range(20):
                            await asyncio.sleep(0)
                    await asyncio.wait_for(renewed.wait(), 60)
                    return state

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, wait)
                await compiled.run("t", Order(), store)
                begun = world.clock.monotonic()
                result = await compiled.resume("t", HumanSignal.approve("jdoe"), Replaced(store, renew_lease=renew))

                assert Completed("t", Order()) == result
                assert [10, 13, 16] == [call - begun for call in calls], "a twelfth of its life later, to the second"

        asyncio.run(main())

    @pytest.mark.parametrize("ends", ["completes", "loses"])
    def test_nothing_is_left_to_ring_when_a_run_is_over(self, world: Any, ends: str) -> None:
        async def main() -> None:
            async with world.open() as store:

                def node(state: Order) -> Order:
                    if ends == "loses":
                        world.clock.advance(31)
                    return state

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, node)
                await compiled.run("t", Order(), store)
                await settle()
                before = len(asyncio.all_tasks())
                await compiled.resume("t", HumanSignal.approve("jdoe"), store)
                await settle()

                assert before == len(asyncio.all_tasks())

        async def settle() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        asyncio.run(main())

    def test_a_row_by_somebody_without_the_lease_stops_the_run(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):

                async def intrude(state: Order) -> Order:
                    await other.save((await other.load("t")).checkpoint)
                    return state

                compiled = graph(world, CheckpointPolicy.EVERY_NODE, intrude)
                await compiled.run("t", Order(), one)
                result = await compiled.resume("t", HumanSignal.approve("jdoe"), one)

                assert lost("Pay", OVERWRITTEN) == result
                assert 4 == len(await world.rows(one, "t"))
                assert None is await one.live_lease("t")

        asyncio.run(main())

    @pytest.mark.parametrize("where", ["save_under_lease", "release_lease"])
    def test_a_run_that_is_cancelled_while_it_learns_of_such_a_row_gives_its_lease_back(
        self, world: Any, where: str
    ) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):

                class Overtaken:
                    def __getattr__(self, name: str) -> Any:
                        return getattr(one, name)

                    async def save_under_lease(self, *args: Any, **options: Any) -> Any:
                        if not task.cancelling():
                            await other.save((await other.load("t")).checkpoint)
                        await self._cancel("save_under_lease")
                        return await one.save_under_lease(*args, **options)

                    async def release_lease(self, lease: Any) -> None:
                        await self._cancel("release_lease")
                        await one.release_lease(lease)

                    async def _cancel(self, here: str) -> None:
                        if here == where and not task.cancelling():
                            task.cancel()
                            await asyncio.sleep(0)

                compiled = graph(world, CheckpointPolicy.EVERY_NODE)
                task = asyncio.create_task(compiled.run("t", Order(), Overtaken()))
                await asyncio.wait({task})

                assert task.cancelled()
                assert ["running", "running"] == [row.status.value for row in await world.log(one, "t")]
                assert None is await one.live_lease("t")

        asyncio.run(main())
