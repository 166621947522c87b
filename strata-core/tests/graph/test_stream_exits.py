"""Streams that are left before their end: the run is over then, and its thread in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import attrs
import pytest

from strata_core.errors import InvalidInputError, UsageError
from strata_core.graph import CheckpointPolicy, Completed, NodeStarted, StateGraph

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""


@attrs.frozen
class Job:
    done: tuple[str, ...] = ()


@pytest.fixture(autouse=True)
def quiet_loop(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No task is destroyed while it is pending, and no error is never retrieved: asyncio logs what it cannot raise."""
    yield
    gc.collect(1)

    assert [] == [record.getMessage() for record in caplog.records if record.name == "asyncio"]


class Counted:
    """A graph with a node of every kind, and how often each has run."""

    def __init__(self, world: Any, **options: Any) -> None:
        self.ran: Counter[str] = Counter()
        inner = new(Job).add_node("X", self.node("X")).add_node("Y", self.node("Y")).add_edge("X", "Y").compile()
        self.graph = (
            new(Job)
            .add_node("A", self.node("A"))
            .add_subgraph("Sub", inner, enter=lambda state: state, leave=lambda _, state: state)
            .add_parallel_group("G", {"b": self.node("b"), "c": self.node("c")}, lambda before, found: found[0])
            .add_node("Z", self.node("Z"))
            .add_edge("A", "Sub")
            .add_edge("Sub", "G")
            .add_edge("G", "Z")
            .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock, **options)
        )

    def node(self, name: str) -> Any:
        async def handler(state: Job, ctx: Any) -> Job:
            self.ran[name] += 1
            await ctx.emit(name)
            await asyncio.sleep(0)
            return attrs.evolve(state, done=(*state.done, name))

        return handler


LAST = ("A", "X", "Y", "b", "Z")


async def leave_after(count: int, world: Any, store: Any, thread_id: str) -> bool:
    """Leave a stream after so many events, check what is left, and finish the thread; tell whether it had ended."""
    counted = Counted(world)
    read = []
    async with counted.graph.stream(thread_id, Job(), store) as events:
        async for event in events:
            read.append(event)
            if count == len(read):
                break

    assert None is await store.live_lease(thread_id)
    log = await world.log(store, thread_id)
    committed = [tuple(checkpoint.frozen_state["done"]) for checkpoint in log]
    assert committed == sorted(committed, key=len), "a step was taken back"
    states = [checkpoint.state for checkpoint in log]
    assert set(states[:-1]) <= {"running"}
    if states[-1] == "completed":
        assert LAST == committed[-1]
        return len(read) < count
    assert "cancelled" == states[-1]
    before = counted.ran.copy()
    result = await counted.graph.resume(thread_id, None, store)
    assert Completed(thread_id, Job(LAST)) == result
    # What had begun, and not committed, runs again; nothing else does.
    last = log[-1]
    inside = last if last.nested is None else last.nested
    again = {name for name, times in counted.ran.items() if times > 1}
    assert again <= ({"b", "c"} if last.next_node == "G" else {inside.next_node})
    assert all(before[name] for name in again)
    return False


@pytest.mark.once("every event; the next test does some of them on every store")
def test_a_stream_can_be_left_after_any_event_and_its_thread_goes_on_from_there(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            count = 1
            while not await leave_after(count, world, store, f"t{count}"):
                count += 1

            assert 30 == count, "the events of the whole run, and one more"
            assert {asyncio.current_task()} == asyncio.all_tasks()

    asyncio.run(main())


@pytest.mark.parametrize("count", [1, 10, 20])
def test_a_stream_that_is_left_leaves_its_thread_cancelled_and_free(world: Any, count: int) -> None:
    async def main() -> None:
        async with world.open() as store:
            assert not await leave_after(count, world, store, "t")

    asyncio.run(main())


def waiting(world: Any, node: Any = None) -> tuple[Any, asyncio.Event]:
    """Return a graph whose second node never comes to its end, and what is set when that has begun."""
    begun = asyncio.Event()

    async def forever(state: Job) -> Job:
        begun.set()
        await asyncio.Event().wait()
        return state

    graph = (
        new(Job)
        .add_node("A", lambda state: state)
        .add_node("B", node or forever)
        .add_node("C", lambda state: state)
        .add_edge("A", "B")
        .add_edge("B", "C")
    )
    return graph.compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock), begun


async def is_left(world: Any, store: Any) -> bool:
    """Tell whether a run was cancelled at its second node, and nothing of it is left."""
    rows = await world.rows(store, "t")
    lease = await store.live_lease("t")
    await asyncio.sleep(0)  # an alarm on a test's clock is a task, and takes a turn to be called off
    left = [("running", None, "A"), ("running", "A", "B"), ("cancelled", "B", "B")]
    return left == rows and lease is None and {asyncio.current_task()} == asyncio.all_tasks()


async def comes(what: Callable[[], Awaitable[bool]]) -> None:
    """Wait, for a bounded number of turns, until something is so."""
    for _ in range(2000):
        if await what():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came")


async def until_second(events: Any) -> None:
    async for event in events:
        if isinstance(event, NodeStarted) and event.node == "B":
            return


async def returns_inside(stream: Any, begun: asyncio.Event) -> None:
    async with stream as events:
        await until_second(events)


async def raises_inside(stream: Any, begun: asyncio.Event) -> None:
    async def read() -> None:
        async with stream as events:
            await until_second(events)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await read()


async def closes(stream: Any, begun: asyncio.Event) -> None:
    await until_second(stream)
    await stream.aclose()
    await stream.aclose()


async def closes_while_somebody_waits(stream: Any, begun: asyncio.Event) -> None:
    reader = asyncio.ensure_future(anext(stream))
    while not begun.is_set():
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait({reader}, timeout=0)
        if reader.done():
            reader = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await reader


async def is_cancelled_waiting(stream: Any, begun: asyncio.Event) -> None:
    async def read() -> None:
        async for _ in stream:
            pass

    reader = asyncio.create_task(read())
    await begun.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader


async def is_cancelled_at_work(stream: Any, begun: asyncio.Event) -> None:
    working = asyncio.Event()

    async def read() -> None:
        async with stream as events:
            await until_second(events)
            working.set()
            await asyncio.Event().wait()

    reader = asyncio.create_task(read())
    await working.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader


async def is_cancelled_again_and_again(stream: Any, begun: asyncio.Event) -> None:
    async def read() -> None:
        async for _ in stream:
            pass

    reader = asyncio.create_task(read())
    await begun.wait()
    while not reader.done():
        reader.cancel()
        await asyncio.sleep(0)
    assert reader.cancelled()


WAYS = [
    returns_inside, raises_inside, closes, closes_while_somebody_waits, is_cancelled_waiting, is_cancelled_at_work,
    is_cancelled_again_and_again,
]  # fmt: skip


@pytest.mark.once("what the loop does; the rows are those of a cancelled caller")
@pytest.mark.parametrize("leave", WAYS, ids=lambda way: way.__name__)
def test_whoever_is_out_of_a_stream_finds_its_run_over(
    world: Any, leave: Callable[[Any, asyncio.Event], Coroutine[Any, Any, None]]
) -> None:
    async def main() -> None:
        async with world.open() as store:
            graph, begun = waiting(world)
            stream = graph.stream("t", Job(), store)
            await leave(stream, begun)

            assert await is_left(world, store)
            with pytest.raises(UsageError, match="has not come to its end"):
                stream.result  # noqa: B018
            assert [] == [event async for event in stream]

    asyncio.run(main())


@pytest.mark.once("what the loop does; the rows are those of a cancelled caller")
class TestDropped:
    """Streams that nobody closes."""

    def test_a_break_ends_the_run_in_the_background(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph, _ = waiting(world)
                async for event in graph.stream("t", Job(), store):
                    if isinstance(event, NodeStarted) and event.node == "B":
                        break

                await comes(lambda: is_left(world, store))

        asyncio.run(main())

    def test_an_error_in_the_loop_does_although_its_traceback_is_kept(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph, _ = waiting(world)

                async def read() -> None:
                    async for event in graph.stream("t", Job(), store):
                        if isinstance(event, NodeStarted) and event.node == "B":
                            raise ZeroDivisionError

                with pytest.raises(ZeroDivisionError) as kept:
                    await read()
                await comes(lambda: is_left(world, store))

                assert kept.value.__traceback__ is not None

        asyncio.run(main())

    def test_a_run_that_nothing_refers_to_any_more_still_comes_to_its_end(self) -> None:
        async def main() -> None:
            ended = []

            async def forever(state: Job) -> Job:
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    ended.append("in order")
                return state

            cycle: list[Any] = [new(Job).add_node("A", forever).compile().stream("t", Job(), buffer=100)]
            cycle.append(cycle)
            await anext(cycle[0])
            await asyncio.sleep(0)
            del cycle
            gc.collect()
            for _ in range(5):
                await asyncio.sleep(0)

            assert ["in order"] == ended

        asyncio.run(main())

    def test_a_run_that_waits_for_a_reader_whom_everybody_forgot_is_destroyed_by_nobody(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nothing but the stream refers to it then, and both are one piece of garbage: asyncio would complain."""

        async def main() -> None:
            cycle: list[Any] = [new(Job).add_node("A", lambda state: state).compile().stream("t", Job())]
            cycle.append(cycle)
            await anext(cycle[0])
            await asyncio.sleep(0)
            del cycle
            gc.collect()

            assert [] == [record.getMessage() for record in caplog.records]

        asyncio.run(main())

    @pytest.mark.parametrize("elsewhere", [False, True])
    def test_the_last_reference_may_go_in_a_cycle_and_in_another_thread(self, world: Any, elsewhere: bool) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph, begun = waiting(world)
                cycle: list[Any] = [graph.stream("t", Job(), store, buffer=100)]
                cycle.append(cycle)
                await anext(cycle[0])
                await begun.wait()
                del cycle
                if elsewhere:
                    collector = threading.Thread(target=gc.collect)
                    collector.start()
                    collector.join()
                else:
                    gc.collect()
                await comes(lambda: is_left(world, store))

        asyncio.run(main(), debug=True)  # a loop that looks who calls it

    def test_the_loop_may_end_right_after(self) -> None:
        async def main() -> None:
            graph = new(Job).add_node("A", lambda state: state).add_node("B", lambda state: state).add_edge("A", "B")
            async for _ in graph.compile().stream("t", Job()):
                break

        asyncio.run(main())

    def test_a_stream_may_outlive_its_loop(self) -> None:
        async def main() -> Any:
            graph = new(Job).add_node("A", lambda state: state).add_node("B", lambda state: state).add_edge("A", "B")
            stream = graph.compile().stream("t", Job())
            await anext(stream)
            return stream

        stream = asyncio.run(main())
        del stream
        gc.collect()

    def test_a_loop_that_was_closed_too_early_is_told_of_by_asyncio_and_nothing_else(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        loop = asyncio.new_event_loop()
        graph = new(Job).add_node("A", lambda state: state).compile()
        stream = graph.stream("t", Job())
        loop.run_until_complete(stream.__anext__())
        loop.close()
        del stream
        gc.collect()

        assert ["Task was destroyed but it is pending!"] == [r.getMessage().partition("\n")[0] for r in caplog.records]
        caplog.clear()


@pytest.mark.once("what the loop does; the rows are those of a cancelled caller")
def test_a_stream_that_fails_by_itself_has_left_its_thread_in_order_by_then(world: Any) -> None:
    """A state that cannot be copied for its event ends the run: whoever sees the error finds that done."""

    class Stubborn:
        def __deepcopy__(self, memo: Any) -> Any:
            raise ZeroDivisionError

    async def main() -> None:
        returned = asyncio.Event()

        def inside(_: Job) -> Job:
            returned.set()
            return Job((Stubborn(),))  # type: ignore[arg-type]  # on purpose

        async with world.open() as store:
            inner = new(Job).add_node("I", inside).compile()
            graph = (
                new(Job)
                .add_node("A", lambda state: state)
                .add_map("B", inner, lambda state: [state], lambda before, found: before)
                .add_edge("A", "B")
                .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
            )
            stream = graph.stream("t", Job(), store, buffer=100)
            await anext(stream)
            await returned.wait()  # whoever reads is at work, and asks when the run has just been ended
            with pytest.raises(InvalidInputError, match="cannot be copied"):
                await anext(stream)

            assert await is_left(world, store)

    asyncio.run(main())


@pytest.mark.once("what nodes do when they are cancelled")
class TestStubborn:
    """Nodes that do not end when they should."""

    def test_no_node_follows_one_that_has_swallowed_its_cancellation(self, world: Any) -> None:
        async def main() -> None:
            begun = asyncio.Event()

            async def swallow(state: Job, ctx: Any) -> Job:
                begun.set()
                for piece in ("many", "pieces", "unread"):
                    ctx.emit(piece)
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
                return state

            async with world.open() as store:
                graph, _ = waiting(world, swallow)
                async with graph.stream("t", Job(), store, buffer=5) as events:
                    await anext(events)
                    await begun.wait()

                rows = [("running", None, "A"), ("running", "A", "B"), ("running", "B", "C"), ("cancelled", "C", "C")]
                assert rows == await world.rows(store, "t")
                assert None is await store.live_lease("t")

        asyncio.run(main())

    @pytest.mark.parametrize("way", ["wait", "close"])
    def test_whoever_is_cancelled_again_cancels_again(self, way: str) -> None:
        """A node that has swallowed one cancellation gets the next; whoever asked for both is cancelled."""

        async def main() -> None:
            begun, swallowed = asyncio.Event(), asyncio.Event()

            async def cling(state: Job) -> Job:
                begun.set()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
                swallowed.set()
                await asyncio.Event().wait()
                return state

            stream = new(Job).add_node("A", cling).compile().stream("t", Job(), buffer=100)
            await anext(stream)
            await begun.wait()
            reader = asyncio.ensure_future(anext(stream) if way == "wait" else stream.aclose())
            await asyncio.sleep(0)
            if way == "wait":
                reader.cancel()
            await swallowed.wait()
            assert not reader.done()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            assert {asyncio.current_task()} == asyncio.all_tasks()

        asyncio.run(main())

    def test_a_thread_that_goes_on_is_not_heard_any_more(self, world: Any) -> None:
        async def main() -> None:
            begun, may_end = asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()
            told = threading.Event()

            def block(state: Job, ctx: Any) -> Job:
                loop.call_soon_threadsafe(begun.set)
                assert may_end.wait(10)
                ctx.emit("too late")
                told.set()
                return state

            async with world.open() as store:
                graph = (
                    new(Job)
                    .add_node("A", lambda state: state)
                    .add_node("B", block, blocking=True)
                    .add_edge("A", "B")
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                async with graph.stream("t", Job(), store, buffer=100) as events:
                    await anext(events)
                    await begun.wait()

                assert await is_left(world, store)
                may_end.set()
                assert await asyncio.to_thread(told.wait, 10)
                assert [] == [event async for event in events]

        asyncio.run(main())


@pytest.mark.once("what no store sees")
def test_what_has_come_to_its_end_stays_so_however_its_stream_is_left() -> None:
    async def main() -> None:
        async with new(Job).add_node("A", lambda state: state).compile().stream("t", Job(), buffer=100) as events:
            await anext(events)
            for _ in range(5):
                await asyncio.sleep(0)

        assert Completed("t", Job()) == events.result

    asyncio.run(main())


@pytest.mark.once("a wrapper around any store")
def test_a_run_that_fails_while_its_stream_is_left_is_logged(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with world.open() as store:
            begun = asyncio.Event()

            class Breaks:
                def __getattr__(self, name: str) -> Any:
                    return getattr(store, name)

                async def save_under_lease(self, *_: Any, **__: Any) -> int:
                    begun.set()
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.Event().wait()
                    raise ConnectionResetError

            graph, _ = waiting(world)
            async with graph.stream("t", Job(), Breaks(), buffer=100) as events:
                await anext(events)
                await begun.wait()

            assert None is await store.live_lease("t")

    with caplog.at_level(logging.WARNING, "strata_core.graph"):
        asyncio.run(main())

    assert ["a run whose stream was left failed: ConnectionResetError"] == [r.getMessage() for r in caplog.records]
