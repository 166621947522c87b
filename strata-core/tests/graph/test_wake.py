"""Waking the threads whose time has come: each once, none early, and nobody's trouble is the others'."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import attrs
import pytest

from strata_core.errors import CorruptCheckpointError, StoreUnavailableError
from strata_core.graph import (
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
    SweepReport,
)
from strata_core.memory import MemoryBackend
from strata_core.records import GraphIdentity
from strata_core.store import RowStore
from strata_core.testing import FakeClock

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
MINUTE = timedelta(minutes=1)
OURS = GraphIdentity("ours", "1")


@attrs.frozen
class Job:
    minutes: int = 1
    woken: int = 0


def wake(state: Job) -> Job:
    return attrs.evolve(state, woken=state.woken + 1)


def graph(world: Any, policy: CheckpointPolicy, *, work: Any = wake, identity: Any = OURS, **options: Any) -> Any:
    return (
        new(Job)
        .add_node("Set", lambda state: state)
        .add_timer("Set", lambda state: state.minutes * MINUTE)
        .add_node("Work", work)
        .add_edge("Set", "Work")
        .compile(checkpointing=policy, clock=world.clock, identity=identity, **options)
    )


def woken(*thread_ids: str) -> dict[str, Any]:
    return {thread_id: Completed(thread_id, Job(1, 1)) for thread_id in thread_ids}


class Replaced:
    """A store with some methods replaced."""

    def __init__(self, store: Any, **methods: Any) -> None:
        self._store = store
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._store, name)


@BOTH
def test_what_is_due_is_woken_and_nothing_else(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            for minutes in (3, 1, 2):
                await compiled.run(f"in {minutes}", Job(minutes), store)
            told = []
            for _ in range(4):
                told.append(await compiled.wake_due(store))
                world.clock.advance(MINUTE)

            assert SweepReport({}, {}, {}, True) == told[0]
            for minutes in (1, 2, 3):
                done = {f"in {minutes}": Completed(f"in {minutes}", Job(minutes, 1))}
                assert SweepReport(done, {}, {}, True) == told[minutes]

    asyncio.run(main())


@BOTH
def test_every_kind_of_wait_that_is_due_comes_to_its_own_end(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:

            def waiting(wait: Any) -> Any:
                builder = new(Job).add_node("Set", lambda state: state).add_node("Late", wake).add_node("Work", wake)
                builder.add_conditional_edge("Set", lambda state: "Work", ["Work", "Late"])
                return wait(builder).compile(checkpointing=policy, clock=world.clock, identity=OURS)

            waits: dict[str, Any] = {
                "timer": lambda b: b.add_timer("Set", MINUTE),
                "event": lambda b: b.add_wait_for_event("Set", "paid", timeout=MINUTE, on_timeout="Late"),
                "event, no route": lambda b: b.add_wait_for_event("Set", "paid", timeout=MINUTE),
                "event, for ever": lambda b: b.add_wait_for_event("Set", "paid"),
                "person": lambda b: b.add_interrupt_boundary("Set", timeout=MINUTE, on_timeout="Late"),
                "person, no route": lambda b: b.add_interrupt_boundary("Set", timeout=MINUTE),
                "person, for ever": lambda b: b.add_interrupt_boundary("Set"),
            }
            for name, wait in waits.items():
                await waiting(wait).run(name, Job(), store)
            world.clock.advance(MINUTE)
            report = await waiting(waits["timer"]).wake_due(store)

            timed_out = {
                n: Cancelled(n, CancelReason.TIMED_OUT, "Set") for n in ("event, no route", "person, no route")
            }
            assert SweepReport(woken("timer", "event", "person") | timed_out, {}, {}, True) == report
            assert {"interrupted"} == {
                (await world.rows(store, f"{who}, for ever"))[-1][0] for who in ("event", "person")
            }

    asyncio.run(main())


@BOTH
def test_a_thread_that_is_due_again_at_once_is_left_for_the_next_call(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = (
                new(Job)
                .add_node("Poll", wake)
                .add_node("End", lambda state: state)
                .add_conditional_edge("Poll", lambda state: "Poll" if state.woken < 4 else "End", ["Poll", "End"])
                .add_timer("Poll", timedelta(0))
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", Job(), store)
            for turn in (2, 3, 4):
                report = await compiled.wake_due(store)

                assert isinstance(report.results["t"], Interrupted)
                assert turn == report.results["t"].frozen_state.woken
            assert {"t": Completed("t", Job(1, 4))} == (await compiled.wake_due(store)).results

    asyncio.run(main())


@BOTH
def test_more_than_a_page_is_woken_and_no_more_than_the_limit_or_at_once_than_asked(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            under_way, most = 0, 0
            six = asyncio.Event()

            async def work(state: Job) -> Job:
                nonlocal under_way, most
                under_way += 1
                most = max(most, under_way)
                if most == 6:
                    six.set()
                await asyncio.wait_for(six.wait(), 60)
                for _ in range(3):
                    await asyncio.sleep(0)
                under_way -= 1
                return wake(state)

            compiled = graph(world, policy, work=work)
            ids = [f"t{n:03}" for n in range(130)]
            await asyncio.gather(*(compiled.run(thread_id, Job(), store) for thread_id in ids))
            world.clock.advance(MINUTE)
            first = await compiled.wake_due(store, limit=20, concurrency=6)
            second = await compiled.wake_due(store, limit=1000, concurrency=6)

            assert (20, False) == (len(first.results), first.is_complete)
            assert (110, True) == (len(second.results), second.is_complete)
            assert woken(*ids) == {**first.results, **second.results}
            assert 6 == most

    asyncio.run(main())


@BOTH
def test_the_oldest_wake_first_however_many_come_due_after_them(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            took = []
            for n in range(0, 12, 3):
                for late in range(n, n + 3):
                    await compiled.run(f"t{late:02}", Job(), store)
                    world.clock.advance(1)
                world.clock.advance(MINUTE)  # three come due while two are woken
                took.append(set((await compiled.wake_due(store, limit=2)).results))

            assert [{"t00", "t01"}, {"t02", "t03"}, {"t04", "t05"}, {"t06", "t07"}] == took

    asyncio.run(main())


@BOTH
def test_due_threads_of_other_graphs_are_left_alone_and_keep_nobody_waiting(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            ours, nobodys = graph(world, policy), graph(world, policy, identity=None)
            others = graph(world, policy, identity=GraphIdentity("others", "1"))
            await asyncio.gather(*(others.run(f"other{n}", Job(), store) for n in range(120)))
            world.clock.advance(1)
            await ours.run("ours", Job(), store)
            await nobodys.run("nobody's", Job(), store)
            world.clock.advance(MINUTE)

            assert SweepReport(woken("ours"), {}, {}, True) == await ours.wake_due(store, limit=1)
            assert SweepReport(woken("nobody's"), {}, {}, True) == await nobodys.wake_due(store, limit=1)
            assert 100 == len((await others.wake_due(store)).results)

    asyncio.run(main())


@BOTH
def test_another_version_of_the_graph_wakes_them_and_brings_them_up(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:

            def upcast(state: dict[str, Any], version: str) -> dict[str, Any]:
                return {**state, "woken": 6} if version == "1" else state

            await graph(world, policy).run("t", Job(), store)
            world.clock.advance(MINUTE)
            second = graph(world, policy, identity=GraphIdentity("ours", "2"), upcast=upcast)

            assert {"t": Completed("t", Job(1, 7))} == (await second.wake_due(store)).results

    asyncio.run(main())


@BOTH
def test_what_happens_to_one_thread_never_stops_the_others(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:

            def work(state: Job, ctx: Any) -> Job:
                if ctx.thread_id == "fails":
                    raise ValueError("no")
                return wake(state)

            async def load(thread_id: str) -> Any:
                if thread_id == "down":
                    raise StoreUnavailableError("it does not answer")
                if thread_id == "corrupt":
                    raise CorruptCheckpointError(thread_id, 0, "is damaged")
                if thread_id == "faster" and not answered:
                    answered.append(await compiled.end(thread_id, store))
                return await store.load(thread_id)

            answered: list[Any] = []
            compiled = graph(world, policy, work=work)
            ids = ["a", "corrupt", "b", "down", "c", "fails", "d", "faster", "e", "held"]
            for thread_id in ids:
                await compiled.run(thread_id, Job(), store)
                world.clock.advance(1)
            await store.acquire_lease("held", owner="operator", ttl=timedelta(hours=1))
            world.clock.advance(MINUTE)
            report = await compiled.wake_due(Replaced(store, load=load), concurrency=2)

            assert woken(*"abcde") == {key: value for key, value in report.results.items() if key != "fails"}
            assert (FailureCode.NODE_FAILED, "Work") == (report.results["fails"].code, report.results["fails"].node)
            assert {"faster": FailureCode.ENDED, "held": FailureCode.LEASE_HELD} == {
                thread_id: refused.code for thread_id, refused in report.refused.items()
            }
            assert {"corrupt": CorruptCheckpointError, "down": StoreUnavailableError} == {
                thread_id: type(error) for thread_id, error in report.errors.items()
            }
            assert report.is_complete
            mended = await compiled.wake_due(store)
            assert woken("corrupt", "down") == mended.results

    asyncio.run(main())


@pytest.mark.parametrize("policy", list(CheckpointPolicy))
def test_a_thread_that_no_listing_can_read_is_passed_over_and_told(policy: CheckpointPolicy) -> None:
    class World:
        clock = FakeClock()

    async def main() -> None:
        world = World()
        memory = MemoryBackend(world.clock)
        compiled = graph(world, policy)
        async with RowStore(memory) as store:
            for n in range(5):
                await compiled.run(f"t{n}", Job(), store)
            for n in (0, 3):
                rows = memory._rows[f"t{n}"]
                rows[-1] = attrs.evolve(rows[-1], envelope=b'{"schema_version": "1.99.0"}')
            world.clock.advance(MINUTE)
            report = await compiled.wake_due(store)

            assert woken("t1", "t2", "t4") == report.results
            assert {"t0", "t3"} == set(report.errors)
            assert report.is_complete

    asyncio.run(main())


@BOTH
def test_cancelling_a_wake_leaves_every_thread_whole(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            started: list[str] = []
            all_started = asyncio.Event()

            async def work(state: Job, ctx: Any) -> Job:
                started.append(ctx.thread_id)
                if len(started) == 3:
                    all_started.set()
                if len(started) <= 3:
                    await asyncio.Event().wait()
                return wake(state)

            compiled = graph(world, policy, work=work)
            ids = [f"t{n}" for n in range(5)]
            for thread_id in ids:
                await compiled.run(thread_id, Job(), store)
            world.clock.advance(MINUTE)
            for _ in range(5):
                await asyncio.sleep(0)  # what the runs called off is gone
            before = len(asyncio.all_tasks())
            task = asyncio.create_task(compiled.wake_due(store, concurrency=3))
            await all_started.wait()
            interrupted = list(started)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            last = {thread_id: (await world.rows(store, thread_id))[-1] for thread_id in ids}
            assert dict.fromkeys(interrupted, ("cancelled", "Work", "Work")) == {
                thread_id: row for thread_id, row in last.items() if row[0] != "interrupted"
            }
            assert [None] * 5 == [await store.live_lease(thread_id) for thread_id in ids]
            assert before == len(asyncio.all_tasks())

            due = await compiled.wake_due(store)
            rest = {thread_id: await compiled.resume(thread_id, None, store) for thread_id in interrupted}
            assert woken(*ids) == {**due.results, **rest}

    asyncio.run(main())


@BOTH
def test_a_wake_that_is_cancelled_while_the_store_writes_leaves_each_thread_woken_or_waiting(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            first = "save_if_latest" if policy is CheckpointPolicy.BOUNDARIES else "acquire_lease"
            written, hung = asyncio.Event(), asyncio.Event()

            async def hang(*args: Any, **kwargs: Any) -> Any:
                answer = await getattr(store, first)(*args, **kwargs)
                if not hung.is_set():
                    hung.set()
                    written.set()
                    await asyncio.Event().wait()  # the answer does not come
                return answer

            compiled = graph(world, policy)
            await compiled.run("t", Job(), store)
            world.clock.advance(MINUTE)
            task = asyncio.create_task(compiled.wake_due(Replaced(store, **{first: hang})))
            await written.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert ("cancelled", "Work", "Work") == (await world.rows(store, "t"))[-1]
            assert None is await store.live_lease("t")
            assert Completed("t", Job(1, 1)) == await compiled.resume("t", None, store)

    asyncio.run(main())


@BOTH
def test_of_several_processes_each_thread_is_woken_by_exactly_one(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            ran: Counter[str] = Counter()

            async def work(state: Job, ctx: Any) -> Job:
                ran[ctx.thread_id] += 1
                await asyncio.sleep(0)
                return wake(state)

            compiled = graph(world, policy, work=work)
            ids = [f"t{n}" for n in range(60)]
            await asyncio.gather(*(compiled.run(thread_id, Job(), one) for thread_id in ids))
            world.clock.advance(MINUTE)
            reports = await asyncio.gather(*(compiled.wake_due(store) for store in (one, other, one, other)))

            assert dict.fromkeys(ids, 1) == ran
            assert sorted(ids) == sorted(thread_id for report in reports for thread_id in report.results)
            lost = {FailureCode.ALREADY_RESUMED, FailureCode.RUNNING, FailureCode.COMPLETED, FailureCode.LEASE_HELD}
            assert lost >= {refused.code for report in reports for refused in report.refused.values()}
            assert {} == (await compiled.wake_due(one)).results

    asyncio.run(main())


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
@pytest.mark.parametrize("wake_first", [True, False])
@pytest.mark.parametrize("route", ["Late", None])
def test_of_a_wake_and_an_answer_that_saw_the_same_row_exactly_one_wins(
    world: Any, policy: CheckpointPolicy, wake_first: bool, route: str | None
) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            compiled = (
                new(Job)
                .add_node("Ask", lambda state: state)
                .add_node("Do", wake)
                .add_node("Late", wake)
                .add_conditional_edge("Ask", lambda state: "Do", ["Do", "Late"])
                .add_interrupt_boundary("Ask", timeout=MINUTE, on_timeout=route)
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", Job(), one)
            world.clock.advance(MINUTE)
            meeting = Meeting(2)
            answer = compiled.resume("t", HumanSignal.approve("jdoe"), meeting.on(one))
            due = compiled.wake_due(meeting.on(other))
            if wake_first:
                report, answered = await asyncio.gather(due, answer)
            else:
                answered, report = await asyncio.gather(answer, due)
            log = await world.log(one, "t")

            if isinstance(answered, Failed):
                assert ["t"] == list(report.results)
                code = FailureCode.ALREADY_RESUMED if route else FailureCode.ENDED
                assert code is answered.code
                assert None is log[-1].decision
                assert (route is None) is (log[-1].state == "ended")
            else:
                assert FailureCode.ALREADY_RESUMED is report.refused["t"].code
                assert "jdoe" == log[-1].decision.reviewer
            assert 1 == sum(c.state in ("resumed", "completed", "ended") for c in log)

    asyncio.run(main())


@BOTH
def test_who_must_answer_is_told_when_a_wake_comes_to_the_next_wait(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            told: list[Any] = []
            compiled = (
                new(Job)
                .add_node("Set", lambda state: state)
                .add_timer("Set", MINUTE)
                .add_node("Ask", wake)
                .add_edge("Set", "Ask")
                .add_interrupt_boundary("Ask", timeout=MINUTE)
                .compile(checkpointing=policy, clock=world.clock, on_interrupted=told.append)
            )
            await compiled.run("t", Job(), store)
            world.clock.advance(MINUTE)
            report = await compiled.wake_due(store)

            assert told[1:] == [report.results["t"]]
            assert [("Set",), ("Ask",)] == [interrupted.waiting_at for interrupted in told]
            assert world.clock.now() + MINUTE == told[1].wait.due_at

    asyncio.run(main())


@BOTH
def test_a_thread_without_an_end_of_its_wait_is_never_due(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = (
                new(Job)
                .add_node("Set", lambda state: state)
                .add_wait_for_event("Set", "paid")
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", Job(), store)
            world.clock.advance(timedelta(days=36_525))
            refused = await compiled.resume("t", LevelSignals.due(), store)

            assert FailureCode.NEVER_DUE is refused.code
            assert "thread 't' waits for the event 'paid', for as long as it takes" == refused.message
            assert SweepReport({}, {}, {}, True) == await compiled.wake_due(store)
            assert Completed("t", Job()) == await compiled.signal("t", EventSignal("paid"), store)

    asyncio.run(main())
