"""Timers: how long a thread waits, and who tells."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata_core.graph import (
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    Completed,
    FailureCode,
    LevelSignals,
    RetryPolicy,
    StateGraph,
)
from strata_core.memory import MemoryBackend
from strata_core.records import Wait, WaitKind
from strata_core.store import RowStore
from strata_core.testing import FakeClock

pytestmark = pytest.mark.once("how due times are worked out; test_wake.py shows that stores keep them")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
DAY = timedelta(days=1)
DUE = LevelSignals.due()
START = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.define
class Parcel:
    days: int = 0
    stops: list[str] = attrs.Factory(list)


def pack(state: Parcel) -> Parcel:
    return Parcel(state.days + 1, [*state.stops, "packed"])


def send(state: Parcel) -> Parcel:
    return Parcel(state.days, [*state.stops, "sent"])


def graph(world: Any, policy: CheckpointPolicy, delay: Any, **options: Any) -> Any:
    return (
        new(Parcel)
        .add_node("Pack", pack, **options)
        .add_timer("Pack", delay)
        .add_node("Send", send)
        .add_edge("Pack", "Send")
        .compile(checkpointing=policy, clock=world.clock)
    )


async def in_two_days(state: Parcel) -> timedelta:
    await asyncio.sleep(0)
    return 2 * DAY


class TellsTheDays:
    def __call__(self, state: Parcel, ctx: Any) -> timedelta:
        assert ("t", "Pack", 1, None) == (ctx.thread_id, ctx.node, ctx.attempt, ctx.decision)
        return state.days * DAY + DAY


@BOTH
@pytest.mark.parametrize(
    "delay",
    [
        pytest.param(2 * DAY, id="a timedelta"),
        pytest.param(lambda state: (state.days + 1) * DAY, id="a function of the state that the node has returned"),
        pytest.param(lambda state: START + 2 * DAY, id="a function that tells a time"),
        pytest.param(
            lambda state: datetime(2026, 1, 3, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
            id="a function that tells a time elsewhere",
        ),
        pytest.param(in_two_days, id="an async function"),
        pytest.param(TellsTheDays(), id="an object that looks at the context"),
    ],
)
def test_a_timer_says_until_when_and_goes_on_then(world: Any, policy: CheckpointPolicy, delay: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy, delay)
            stopped = await compiled.run("t", Parcel(), store)

            assert Wait(WaitKind.TIMER, due_at=START + 2 * DAY) == stopped.wait
            assert UTC is stopped.wait.due_at.tzinfo
            assert stopped.wait == (await world.log(store, "t"))[-1].wait
            world.clock.advance(2 * DAY - timedelta(microseconds=1))
            assert FailureCode.NOT_DUE is (await compiled.resume("t", DUE, store)).code
            world.clock.advance(timedelta(microseconds=1))
            assert Completed("t", Parcel(1, ["packed", "sent"])) == await compiled.resume("t", DUE, store)

    asyncio.run(main())


@BOTH
@pytest.mark.parametrize(
    "delay", [timedelta(0), lambda state: timedelta(0), lambda state: START - 9 * DAY, lambda state: START]
)
def test_a_time_that_has_come_already_is_due_at_once(world: Any, policy: CheckpointPolicy, delay: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy, delay)
            stopped = await compiled.run("t", Parcel(), store)

            assert world.clock.now() >= stopped.wait.due_at
            assert {"t": Completed("t", Parcel(1, ["packed", "sent"]))} == (await compiled.wake_due(store)).results

    asyncio.run(main())


class NoPostError(Exception):
    pass


def raises(state: Parcel) -> timedelta:
    raise NoPostError("no post today")


async def is_cancelled_by_what_it_awaits(state: Parcel) -> timedelta:
    raise asyncio.CancelledError


@BOTH
@pytest.mark.parametrize(
    ("delay", "message", "detail"),
    [
        (raises, "failed", "NoPostError: no post today"),
        (is_cancelled_by_what_it_awaits, "failed", "CancelledError"),
        (lambda state: None, "must be a timedelta or an aware datetime, not NoneType", None),
        (lambda state: 60, "must be a timedelta or an aware datetime, not int", None),
        (lambda state: "2026-01-02", "must be a timedelta or an aware datetime, not str", None),
        (lambda state: START.date(), "must be a timedelta or an aware datetime, not date", None),
        (
            lambda state: START.replace(tzinfo=None),
            "must be an aware datetime, for example datetime.now(timezone.utc)",
            None,
        ),
        (
            lambda state: -DAY,
            "must not be negative, as datetime.timedelta(days=-1) is; for a past time give a datetime",
            None,
        ),
        (lambda state: timedelta.max, "is no time of the years 1 to 9999", "OverflowError: date value out of range"),
        (
            lambda state: datetime.max.replace(tzinfo=timezone(-DAY / 2)),
            "is no time of the years 1 to 9999",
            "OverflowError: date value out of range",
        ),
    ],
)
def test_a_delay_that_is_none_fails_the_node_which_can_be_resumed(
    world: Any, policy: CheckpointPolicy, delay: Any, message: str, detail: str | None
) -> None:
    async def main() -> None:
        async with world.open() as store:
            failed = await graph(world, policy, delay).run("t", Parcel(), store)
            message_whole = f"the delay of the timer at node 'Pack' {message}"

            assert (FailureCode.TIMER_FAILED, "Pack", message_whole) == (failed.code, failed.node, failed.message)
            assert (detail or f"TimerError: {message_whole}") == failed.detail
            last = (await world.log(store, "t"))[-1]
            assert ("failed", "Pack", "Pack", None) == (last.state, last.suspended_node, last.next_node, last.wait)
            assert {"days": 0, "stops": []} == last.frozen_state, "the node has not committed"
            assert failed.detail == last.metadata["strata.error"]
            mended = graph(world, policy, DAY)
            assert START + DAY == (await mended.resume("t", None, store)).wait.due_at
            assert {"days": 1, "stops": ["packed"]} == (await world.log(store, "t"))[-1].frozen_state

    asyncio.run(main())


@BOTH
def test_a_delay_that_fails_is_no_attempt_of_its_node(world: Any, policy: CheckpointPolicy) -> None:
    """As with a router: the node itself has done its work, and running it again would mend nothing."""

    async def main() -> None:
        async with world.open() as store:
            asked = []

            def fail(state: Parcel) -> timedelta:
                asked.append(state)
                raise NoPostError

            options = {"retry": RetryPolicy(3), "fallback": "Send"}
            failed = await graph(world, policy, fail, **options).run("t", Parcel(), store)

            assert FailureCode.TIMER_FAILED is failed.code
            assert [Parcel(1, ["packed"])] == asked

    asyncio.run(main())


@BOTH
def test_a_delay_that_changes_the_state_in_place_changes_nothing(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:

            def spoil(state: Parcel) -> timedelta:
                state.stops.append("spoilt")
                return DAY

            stopped = await graph(world, policy, spoil).run("t", Parcel(), store)

            assert Parcel(1, ["packed"]) == stopped.frozen_state
            assert ["packed"] == (await store.load("t")).checkpoint.frozen_state["stops"]

    asyncio.run(main())


@BOTH
def test_a_run_that_has_to_stop_while_the_delay_is_asked_has_not_committed(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:

            async def slow(state: Parcel) -> timedelta:
                world.clock.advance(5)
                await asyncio.Event().wait()
                return DAY

            compiled = graph(world, policy, slow)
            stopped = await compiled.run("t", Parcel(), store, deadline=timedelta(seconds=5))

            assert Cancelled("t", CancelReason.DEADLINE, "Pack") == stopped
            last = (await world.log(store, "t"))[-1]
            assert ("cancelled", "Pack", 0) == (last.state, last.next_node, last.frozen_state["days"])

    asyncio.run(main())


@BOTH
def test_cancelling_the_task_while_the_delay_is_asked_writes_the_cancelled_checkpoint(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            asked = asyncio.Event()

            async def hang(state: Parcel) -> timedelta:
                asked.set()
                await asyncio.Event().wait()
                return DAY

            task = asyncio.create_task(graph(world, policy, hang).run("t", Parcel(), store))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert ("cancelled", "Pack", "Pack") == (await world.rows(store, "t"))[-1]

    asyncio.run(main())


@BOTH
def test_a_timer_on_an_end_of_the_graph_completes_when_it_is_woken(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = (
                new(Parcel)
                .add_node("Pack", pack)
                .add_timer("Pack", DAY)
                .compile(checkpointing=policy, clock=world.clock)
            )
            stopped = await compiled.run("t", Parcel(), store)
            world.clock.advance(DAY)
            before = len(await world.log(store, "t"))

            assert None is stopped.next_node
            assert Completed("t", Parcel(1, ["packed"])) == await compiled.resume("t", DUE, store)
            added = (await world.rows(store, "t"))[before:]
            assert [["resumed"], ["completed"]][policy is CheckpointPolicy.EVERY_NODE] == [row[0] for row in added]
            assert None is await store.live_lease("t")

    asyncio.run(main())


@BOTH
def test_the_next_node_is_worked_out_before_the_thread_waits(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            asked = []

            def route(state: Parcel) -> str:
                asked.append(world.clock.now())
                return "Send"

            compiled = (
                new(Parcel)
                .add_node("Pack", pack)
                .add_timer("Pack", DAY)
                .add_node("Send", send)
                .add_conditional_edge("Pack", route, ["Send"])
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", Parcel(), store)
            world.clock.advance(DAY)
            await compiled.resume("t", DUE, store)

            assert [START] == asked

    asyncio.run(main())


@BOTH
def test_the_node_after_a_timer_keeps_its_key_when_it_is_tried_again(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            keys = []

            def flaky(state: Parcel, ctx: Any) -> Parcel:
                keys.append(ctx.idempotency_key)
                if len(keys) == 1:
                    raise NoPostError
                return state

            compiled = (
                new(Parcel)
                .add_node("Pack", pack)
                .add_timer("Pack", DAY)
                .add_node("Send", flaky)
                .add_edge("Pack", "Send")
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", Parcel(), store)
            world.clock.advance(DAY)
            await compiled.resume("t", DUE, store)
            await compiled.resume("t", None, store)

            assert 2 == len(keys)
            assert 1 == len(set(keys))

    asyncio.run(main())


@BOTH
def test_a_delay_is_told_the_key_of_the_visit_to_its_node(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            keys = []

            def fail(state: Parcel, ctx: Any) -> timedelta:
                keys.append(ctx.idempotency_key)
                raise NoPostError

            compiled = graph(world, policy, fail)
            await compiled.run("t", Parcel(), store)
            await compiled.resume("t", None, store)
            await compiled.run("t", Parcel(), store)

            first, again, another = keys
            assert first == again != another

    asyncio.run(main())


_NAIVE = START.replace(tzinfo=None)
_OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@settings(max_examples=60, deadline=None)
@given(
    told=st.timedeltas(timedelta(0), timedelta(days=100_000))
    | st.datetimes(_NAIVE.replace(year=1900), _NAIVE.replace(year=2300), timezones=_OFFSETS),
    offset=st.integers(0, 10**9),
    policy=st.sampled_from(list(CheckpointPolicy)),
)
def test_whatever_is_told_a_thread_is_due_exactly_then(told: Any, offset: int, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        clock = FakeClock(START + timedelta(microseconds=offset))
        due = clock.now() + told if isinstance(told, timedelta) else told
        compiled = (
            new(Parcel)
            .add_node("Pack", pack)
            .add_timer("Pack", lambda state: told)
            .compile(checkpointing=policy, clock=clock)
        )
        async with RowStore(MemoryBackend(clock)) as store:
            stopped = await compiled.run("t", Parcel(), store)
            entry = await store.load("t")

            assert entry is not None
            assert due == stopped.wait.due_at == entry.checkpoint.due_at
            if due > clock.now():
                clock.advance(due - clock.now() - timedelta(microseconds=1))
                assert {} == (await compiled.wake_due(store)).results
                clock.advance(timedelta(microseconds=1))
            assert ["t"] == list((await compiled.wake_due(store)).results)

    asyncio.run(main())


@BOTH
@pytest.mark.parametrize("wait", ["timer", "person", "event"])
def test_a_wait_that_would_last_beyond_the_year_9999_fails_its_thread_and_is_not_begun(
    policy: CheckpointPolicy, wait: str
) -> None:
    async def main() -> None:
        clock = FakeClock(datetime(9999, 12, 31, tzinfo=UTC))
        builder = new(Parcel).add_node("Pack", pack)
        if wait == "timer":
            builder.add_timer("Pack", 2 * DAY)
        elif wait == "person":
            builder.add_interrupt_boundary("Pack", timeout=2 * DAY)
        else:
            builder.add_wait_for_event("Pack", "paid", timeout=2 * DAY)
        async with RowStore(MemoryBackend(clock)) as store:
            result = await builder.compile(checkpointing=policy, clock=clock).run("t", Parcel(), store)
            latest = await store.load("t")

        assert (FailureCode.TIMER_FAILED, "Pack") == (result.code, result.node)
        assert "the wait at node 'Pack' would last beyond the year 9999" == result.message
        assert latest is not None
        assert "failed" == latest.checkpoint.status

    asyncio.run(main())
