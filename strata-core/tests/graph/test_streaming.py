"""What a streamed run tells, in which order, and how far it goes ahead of whoever reads it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from types import FrameType
from typing import Any

import attrs
import pytest
from lost_support import STOOD_STILL, lost

from strata_core.errors import InvalidInputError, StoreUnavailableError, UsageError
from strata_core.graph import (
    CancellationToken,
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    CheckpointSaved,
    Completed,
    Emitted,
    EventSignal,
    FailureCode,
    HumanSignal,
    LevelSignals,
    NodeFailed,
    NodeFinished,
    NodeRetrying,
    NodeStarted,
    RetryPolicy,
    RunFinished,
    StateGraph,
)

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

EVERY = CheckpointPolicy.EVERY_NODE


@attrs.frozen
class Job:
    done: tuple[str, ...] = ()


def does(name: str) -> Callable[[Job], Job]:
    return lambda state: attrs.evolve(state, done=(*state.done, name))


def chain(*names: str, **handlers: Any) -> Any:
    """Return a graph of nodes in a row."""
    graph = new(Job)
    for name in names:
        graph.add_node(name, handlers.get(name) or does(name))
    for source, target in pairwise(names):
        graph.add_edge(source, target)
    return graph


def short(event: Any) -> Any:
    """Return an event as it is read best: its kind, where, and what."""
    match event:
        case NodeStarted(_, path, node, attempt):
            return "started", "/".join((*path, node)), attempt
        case NodeFinished(_, path, node, state):
            return "finished", "/".join((*path, node)), "".join(state.done)
        case NodeRetrying(_, path, node, attempt, error, delay):
            return "retrying", "/".join((*path, node)), attempt, str(error), delay.total_seconds()
        case NodeFailed(_, path, node, attempt, error, fallback):
            return "failed", "/".join((*path, node)), attempt, str(error), fallback
        case Emitted(_, path, node, value):
            return "emitted", "/".join((*path, node)), value
        case CheckpointSaved(_, sequence, state):
            return "saved", sequence, state.value
        case RunFinished(result):
            return type(result).__name__


async def read(stream: Any) -> list[Any]:
    """Read a stream to its end."""
    return [short(event) async for event in stream]


class LostError(Exception):
    """What a node fails with."""


def fails(text: str = "lost", times: int = 1_000) -> Callable[[Job], Job]:
    """Return a handler that fails so many times."""
    left = [times]

    def handler(state: Job) -> Job:
        left[0] -= 1
        if left[0] >= 0:
            raise LostError(text)
        return attrs.evolve(state, done=(*state.done, "ok"))

    return handler


class TestOrder:
    """What comes after what."""

    def test_a_straight_run_tells_of_every_node_and_of_every_row_that_the_log_has(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = chain("A", "B").compile(checkpointing=EVERY)
                stream = graph.stream("t", Job(), store, metadata={"customer": "Acme"})
                events = await read(stream)

                assert [
                    ("saved", 0, "running"),
                    ("started", "A", 1),
                    ("saved", 1, "running"),
                    ("finished", "A", "A"),
                    ("started", "B", 1),
                    ("saved", 2, "completed"),
                    ("finished", "B", "AB"),
                    "Completed",
                ] == events
                assert Completed("t", Job(("A", "B"))) == stream.result
                saved = [event[2] for event in events if event[0] == "saved"]
                assert saved == [row[0] for row in await world.rows(store, "t")]
                assert {"customer": "Acme"} == (await world.log(store, "t"))[-1].metadata

        asyncio.run(main())

    def test_a_stop_and_its_answer_are_told_and_so_are_their_rows(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    chain("A", "B", "C")
                    .add_interrupt_boundary("A", on_reject="C")
                    .add_wait_for_event("B", "paid")
                    .compile()
                )

                assert [
                    ("started", "A", 1),
                    ("saved", 0, "interrupted"),
                    ("finished", "A", "A"),
                    "Interrupted",
                ] == await read(graph.stream("t", Job(), store))
                assert [
                    ("saved", 1, "resumed"),
                    ("started", "B", 1),
                    ("saved", 2, "interrupted"),
                    ("finished", "B", "AB"),
                    "Interrupted",
                ] == await read(graph.stream_resume("t", HumanSignal.approve("jdoe"), store))
                event = LevelSignals.event(EventSignal("paid"))
                assert [
                    ("saved", 3, "resumed"),
                    ("started", "C", 1),
                    ("finished", "C", "ABC"),
                    "Completed",
                ] == await read(graph.stream_resume("t", event, store))

        asyncio.run(main())

    @pytest.mark.once("what no store sees")
    def test_a_run_without_a_store_tells_of_its_nodes(self) -> None:
        events = asyncio.run(read(chain("A", "B").compile().stream("t", Job())))

        assert [
            ("started", "A", 1), ("finished", "A", "A"), ("started", "B", 1), ("finished", "B", "AB"), "Completed",
        ] == events  # fmt: skip

    @pytest.mark.once("what no store sees")
    def test_a_retry_is_told_with_its_delay_and_begins_after_it(self, world: Any) -> None:
        async def main() -> None:
            policy = RetryPolicy(max_attempts=3, initial_delay=timedelta(seconds=2))
            graph = new(Job).add_node("A", fails(times=2), retry=policy).compile(clock=world.clock)
            events = []
            async for event in graph.stream("t", Job()):
                events.append((world.clock.monotonic(), short(event)))
                if isinstance(event, NodeRetrying):
                    asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, world.clock.advance, 4)

            assert [
                (0, ("started", "A", 1)),
                (0, ("retrying", "A", 1, "lost", 2)),
                (4, ("started", "A", 2)),
                (4, ("retrying", "A", 2, "lost", 4)),
                (8, ("started", "A", 3)),
                (8, ("finished", "A", "ok")),
                (8, "Completed"),
            ] == events

        asyncio.run(main())

    @pytest.mark.once("what no store sees")
    def test_a_failure_names_the_fallback_that_takes_over(self) -> None:
        graph = (
            new(Job)
            .add_node("A", fails(), retry=RetryPolicy(max_attempts=2), fallback="B")
            .add_node("B", fails("lost too"))
            .compile()
        )
        stream = graph.stream("t", Job())

        assert [
            ("started", "A", 1),
            ("retrying", "A", 1, "lost", 0),
            ("started", "A", 2),
            ("failed", "A", 2, "lost", "B"),
            ("started", "B", 1),
            ("failed", "B", 1, "lost too", None),
            "Failed",
        ] == asyncio.run(read(stream))
        assert FailureCode.NODE_FAILED is stream.result.code

    @pytest.mark.once("what no store sees")
    def test_what_follows_a_node_can_fail_it_and_is_told_as_its_failure(self) -> None:
        def lost(_: Job) -> Any:
            raise LostError("no way")

        routed = new(Job).add_node("A", does("A")).add_node("B", does("B"))
        routed.add_conditional_edge("A", lost, ["B"])
        timed = chain("A", "B").add_timer("A", lost)

        expected = [("started", "A", 1), ("failed", "A", 1, "no way", None), "Failed"]
        assert expected == asyncio.run(read(routed.compile().stream("t", Job())))
        assert expected == asyncio.run(read(timed.compile().stream("t", Job())))

    @pytest.mark.once("what no store sees")
    def test_a_route_is_told_by_the_node_that_follows(self) -> None:
        graph = chain("A").add_node("B", does("B")).add_node("C", does("C"))
        graph.add_conditional_edge("A", lambda _: "C", ["B", "C"])
        events = asyncio.run(read(graph.compile().stream("t", Job())))

        assert ["A", "C"] == [event[1] for event in events if event[0] == "started"]

    @pytest.mark.once("a failed row is a row")
    def test_a_state_that_cannot_be_saved_fails_its_node(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = chain("A", "B", A=lambda _: Job((1,))).compile(checkpointing=EVERY)  # type: ignore[arg-type]
                events = await read(graph.stream("t", Job(), store))

                assert [("saved", 0, "running"), ("started", "A", 1)] == events[:2]
                assert ("failed", "A", 1) == events[2][:3]
                assert [("saved", 1, "failed"), "Failed"] == events[3:]

        asyncio.run(main())

    @pytest.mark.once("a refusal is what `resume` returns")
    def test_a_refusal_is_a_result_and_nothing_else(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                stream = chain("A").compile().stream_resume("t", None, store)

                assert ["Failed"] == await read(stream)
                assert FailureCode.NOT_FOUND is stream.result.code

        asyncio.run(main())

    @pytest.mark.once("the graph's clock judges what is due")
    def test_a_wait_that_has_timed_out_is_told_with_its_last_row(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = chain("A", "B").add_interrupt_boundary("A", timeout=timedelta(hours=1))
                graph = graph.compile(clock=world.clock)
                await graph.run("t", Job(), store)
                world.clock.advance(timedelta(hours=1))
                stream = graph.stream_resume("t", LevelSignals.due(), store)

                assert [("saved", 1, "ended"), "Cancelled"] == await read(stream)
                assert Cancelled("t", CancelReason.TIMED_OUT, "A") == stream.result

        asyncio.run(main())


class TestLevels:
    """Nodes inside of nodes."""

    @pytest.mark.once("the rows of subgraphs are tested elsewhere")
    def test_the_nodes_of_a_subgraph_have_its_path_also_when_it_is_resumed(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                child = chain("X", "Y").add_interrupt_boundary("X").compile()
                graph = (
                    new(Job)
                    .add_node("A", does("A"))
                    .add_subgraph("Sub", child, enter=lambda s: s, leave=lambda _, inner: inner)
                    .add_edge("A", "Sub")
                    .compile(checkpointing=EVERY)
                )

                assert [
                    ("saved", 0, "running"),
                    ("started", "A", 1),
                    ("saved", 1, "running"),
                    ("finished", "A", "A"),
                    ("started", "Sub", 1),
                    ("started", "Sub/X", 1),
                    ("saved", 2, "interrupted"),
                    ("finished", "Sub/X", "AX"),
                    "Interrupted",
                ] == await read(graph.stream("t", Job(), store))
                assert [
                    ("saved", 3, "running"),
                    ("started", "Sub", 1),
                    ("started", "Sub/Y", 1),
                    ("finished", "Sub/Y", "AXY"),
                    ("saved", 4, "completed"),
                    ("finished", "Sub", "AXY"),
                    "Completed",
                ] == await read(graph.stream_resume("t", HumanSignal.approve("jdoe"), store))

        asyncio.run(main())

    @pytest.mark.once("what no store sees")
    def test_a_failure_inside_is_told_on_every_level(self) -> None:
        child = new(Job).add_node("X", fails()).compile()
        graph = new(Job).add_subgraph("Sub", child, enter=lambda s: s, leave=lambda _, inner: inner).compile()

        assert [
            ("started", "Sub", 1),
            ("started", "Sub/X", 1),
            ("failed", "Sub/X", 1, "lost", None),
            ("failed", "Sub", 1, "lost", None),
            "Failed",
        ] == asyncio.run(read(graph.stream("t", Job())))

    @pytest.mark.once("what no store sees")
    def test_branches_and_items_are_nodes_inside_of_theirs_and_begin_together(self) -> None:
        item = chain("I").compile()
        graph = (
            new(Job)
            .add_parallel_group("G", {"a": does("a"), "b": item}, lambda before, found: before)
            .add_map("M", item, lambda _: [Job(("0",)), Job(("1",))], lambda before, found: before)
            .add_edge("G", "M")
            .compile()
        )

        events = asyncio.run(read(graph.stream("t", Job())))
        assert [("started", "G", 1), ("started", "G/a", 1), ("started", "G/b", 1)] == events[:3]
        end = events.index(("finished", "G", ""))
        assert [
            ("finished", "G/a", "a"),
            ("finished", "G/b", "I"),
            ("finished", "G/b/I", "I"),
            ("started", "G/b/I", 1),
        ] == sorted(events[3:end])
        assert [("started", "M", 1), ("started", "M/0", 1), ("started", "M/1", 1)] == events[end + 1 : end + 4]
        assert [
            ("finished", "M/0", "0I"),
            ("finished", "M/0/I", "0I"),
            ("finished", "M/1", "1I"),
            ("finished", "M/1/I", "1I"),
            ("started", "M/0/I", 1),
            ("started", "M/1/I", 1),
        ] == sorted(events[end + 4 : -2])
        assert [("finished", "M", ""), "Completed"] == events[-2:]

    @pytest.mark.once("what no store sees")
    def test_a_branch_that_fails_is_told_and_its_siblings_that_are_stopped_are_not(self) -> None:
        async def forever(state: Job) -> Job:
            await asyncio.Event().wait()
            return state

        policy = RetryPolicy(max_attempts=2)
        group = {"bad": fails(), "slow": forever}
        graph = new(Job).add_parallel_group("G", group, lambda before, _: before, retry=policy).compile()

        assert [
            ("started", "G", 1),
            ("started", "G/bad", 1),
            ("started", "G/slow", 1),
            ("failed", "G/bad", 1, "lost", None),
            ("retrying", "G", 1, "lost", 0),
            ("started", "G", 2),
            ("started", "G/bad", 2),
            ("started", "G/slow", 2),
            ("failed", "G/bad", 2, "lost", None),
            ("failed", "G", 2, "lost", None),
            "Failed",
        ] == asyncio.run(read(graph.stream("t", Job())))


class TestPace:
    """The run and its reader."""

    pytestmark = pytest.mark.once("what the loop does; no store changes it")

    @pytest.mark.parametrize(("buffer", "ahead"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (100, 5)])
    def test_a_node_begins_while_fewer_events_wait_than_the_buffer_takes(self, buffer: int, ahead: int) -> None:
        """Each tells two; nothing runs while the reader looks at an event, when there is no buffer."""

        async def main() -> None:
            ran = []

            def note(name: str) -> Any:
                def handler(state: Job) -> Job:
                    ran.append(name)
                    return state

                return handler

            names = "ABCDE"
            graph = chain(*names, **{name: note(name) for name in names}).compile()
            async with graph.stream("t", Job(), buffer=buffer) as events:
                assert [] == ran
                first = await anext(events)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert ("started", "A", 1) == short(first)
                assert ahead == len(ran)
                assert 10 == len(await read(events))
                assert list(names) == ran

        asyncio.run(main())

    def test_branches_that_wait_for_each_other_are_through_however_small_the_buffer(self) -> None:
        async def main() -> None:
            barrier = asyncio.Barrier(20)

            async def meet(state: Job, ctx: Any) -> Job:
                await ctx.emit("here")
                await barrier.wait()
                await ctx.emit("met")
                return state

            graph = new(Job).add_parallel_group("G", {f"b{n}": meet for n in range(20)}, lambda s, _: s).compile()
            events = await read(graph.stream("t", Job()))

            assert 20 == sum(event[-1] == "met" for event in events)
            assert "Completed" == events[-1]

        asyncio.run(main())

    def test_a_slow_reader_does_not_cost_the_lease(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = chain("A", "B", "C").compile(checkpointing=EVERY, clock=world.clock)
                async for event in graph.stream("t", Job(), store):
                    if isinstance(event, NodeStarted):
                        for _ in range(5):
                            world.clock.advance(timedelta(seconds=10))
                            for _ in range(100):
                                await asyncio.sleep(0)
                            lease = await store.live_lease("t")
                            assert timedelta(seconds=30) == world.left(lease)

                assert RunFinished(Completed("t", Job(("A", "B", "C")))) == event

        asyncio.run(main())

    @pytest.mark.parametrize("turns", [0, 100])
    @pytest.mark.parametrize("node", ["B", "G/b"])
    def test_a_deadline_stops_a_run_that_waits_for_its_reader(self, world: Any, node: str, turns: int) -> None:
        """Also one that the loop had no turn to notice, because the reader kept it busy."""

        async def main() -> None:
            async with world.open() as store:
                graph: Any = chain("A", "B")
                if node != "B":
                    graph = chain("A").add_parallel_group("G", {"b": does("b")}, lambda s, _: s).add_edge("A", "G")
                graph = graph.compile(checkpointing=EVERY, clock=world.clock)
                events = []
                stream = graph.stream("t", Job(), store, deadline=timedelta(seconds=5))
                async for event in stream:
                    events.append(short(event))
                    if events[-1] == ("started", node, 1):
                        world.clock.advance(5)
                        for _ in range(turns):
                            await asyncio.sleep(0)
                        assert ("cancelled" if turns else "running") == (await world.rows(store, "t"))[-1][0]

                assert [("started", node, 1), ("saved", 2, "cancelled"), "Cancelled"] == events[-3:]
                assert Cancelled("t", CancelReason.DEADLINE, node[0]) == stream.result

        asyncio.run(main())

    def test_a_lost_lease_stops_a_run_that_waits_for_its_reader(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                stream = chain("A", "B").compile(checkpointing=EVERY, clock=world.clock).stream("t", Job(), store)
                events = []
                async for event in stream:
                    events.append(short(event))
                    if events[-1] == ("started", "B", 1):
                        world.clock.advance(31)

                assert [("started", "B", 1), "Cancelled"] == events[-2:]
                assert lost("B", STOOD_STILL, timedelta(seconds=30)) == stream.result
                assert ("running", "A", "B") == (await world.rows(store, "t"))[-1]

        asyncio.run(main())

    @pytest.mark.parametrize("limit", ["deadline", "cancellation"])
    def test_what_limits_a_run_limits_a_streamed_one(self, world: Any, limit: str) -> None:
        async def main() -> None:
            async with world.open() as store:
                token = CancellationToken()
                token.cancel()
                limits: Any = {"deadline": {"deadline": timedelta(0)}, "cancellation": {"cancellation": token}}[limit]
                graph = chain("A", "B").add_interrupt_boundary("A").compile(clock=world.clock)

                assert [("saved", 0, "cancelled"), "Cancelled"] == await read(graph.stream("t", Job(), store, **limits))
                await graph.resume("t", None, store)
                answer = HumanSignal.approve("jdoe")
                expected = [("saved", 3, "resumed"), ("saved", 4, "cancelled"), "Cancelled"]
                assert expected == await read(graph.stream_resume("t", answer, store, **limits))

        asyncio.run(main())

    def test_a_stop_between_two_nodes_of_an_item_is_no_failure_of_it(self, world: Any) -> None:
        async def main() -> None:
            def late(state: Job) -> Job:
                world.clock.advance(5)
                return state

            item = chain("X", "Y", X=late).compile()
            graph = new(Job).add_map("M", item, lambda _: [Job()], lambda s, _: s).compile(clock=world.clock)
            events = await read(graph.stream("t", Job(), deadline=timedelta(seconds=5), buffer=100))

            assert ["started", "started", "started", "finished"] == [event[0] for event in events[:-1]]
            assert "Cancelled" == events[-1]

        asyncio.run(main())

    def test_two_streams_do_not_mix(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = chain("A", "B").compile(checkpointing=EVERY)
                streams = [graph.stream(name, Job(), store) for name in ("one", "two")]
                read_by: dict[str, list[Any]] = {"one": [], "two": []}
                for _ in range(7):
                    for stream in streams:
                        event = await anext(stream)
                        read_by[event.thread_id].append(short(event))

                assert read_by["one"] == read_by["two"]
                assert 7 == len(read_by["one"])
                assert ["Completed"] == await read(streams[0]) == await read(streams[1])

        asyncio.run(main())

    def test_two_readers_of_one_stream_are_one_too_many(self) -> None:
        async def main() -> None:
            async def forever(state: Job) -> Job:
                await asyncio.Event().wait()
                return state

            async with chain("A", A=forever).compile().stream("t", Job()) as events:
                await anext(events)
                waiting = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0)
                with pytest.raises(UsageError, match="one consumer"):
                    await anext(events)
                await events.aclose()
                with pytest.raises(StopAsyncIteration):
                    await waiting

        asyncio.run(main())

    def test_a_reader_in_another_event_loop_is_refused_and_the_run_goes_on(self) -> None:
        """Neither loop could wake the other: without a word it would wait for ever, and not even be cancelled."""

        async def main() -> None:
            events = chain("A", "B").compile().stream("t", Job())
            first = await anext(events)

            async def elsewhere() -> None:
                with pytest.raises(UsageError, match="in which its stream began"):
                    await anext(events)
                with pytest.raises(UsageError, match="in which its stream began"):
                    await events.aclose()

            await asyncio.to_thread(asyncio.run, elsewhere())

            assert "A" == first.node
            assert ["A", "B", "B"] == [event.node async for event in events if hasattr(event, "node")]
            assert Completed("t", Job(("A", "B"))) == events.result

        asyncio.run(main())

    def test_what_is_over_can_be_read_and_left_in_another_event_loop(self) -> None:
        async def main() -> Any:
            events = chain("A").compile().stream("t", Job(), buffer=9)
            await anext(events)
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0)
            return events

        async def rest(events: Any) -> list[str]:
            found = [type(event).__name__ async for event in events]
            await events.aclose()
            return found

        assert ["NodeFinished", "RunFinished"] == asyncio.run(rest(asyncio.run(main())))


class TestStates:
    """What a reader may do with an event."""

    @pytest.mark.once("no store sees an event")
    def test_a_reader_that_changes_the_states_it_reads_changes_nothing(self) -> None:
        @attrs.define
        class Open:
            done: list[str] = attrs.Factory(list)

        def add(name: str) -> Any:
            def handler(state: Open) -> Open:
                state.done.append(name)
                return state

            return handler

        child = new(Open).add_node("X", add("X")).compile()
        graph = (
            new(Open)
            .add_node("A", add("A"))
            .add_parallel_group("G", {"b": add("B"), "c": child}, lambda _, found: found[1])
            .add_node("Z", add("Z"))
            .add_edge("A", "G")
            .add_edge("G", "Z")
            .compile()
        )

        async def main() -> Any:
            stream = graph.stream("t", Open(), buffer=2)
            async for event in stream:
                if isinstance(event, NodeFinished):
                    event.state.done[:] = ["spoilt"]
            return stream.result

        assert Completed("t", Open(["A", "X", "Z"])) == asyncio.run(main())

    @pytest.mark.once("no store sees an event")
    def test_an_immutable_state_is_not_copied(self) -> None:
        state = Job(("A",))

        async def main() -> Any:
            return [event async for event in chain("A", A=lambda _: state).compile().stream("t", Job())]

        assert state is asyncio.run(main())[1].state

    @pytest.mark.once("no store sees an event")
    @pytest.mark.parametrize("names", ["A", "AB"])
    def test_a_state_that_cannot_be_copied_is_an_error_of_the_stream(self, names: str) -> None:
        class Stubborn:
            def __deepcopy__(self, memo: Any) -> Any:
                raise LostError("no copy of me")

        async def main() -> None:
            graph = chain(*names, A=lambda _: Job((Stubborn(),))).compile()  # type: ignore[arg-type]
            stream = graph.stream("t", Job())
            await anext(stream)
            with pytest.raises(InvalidInputError, match="node 'A' returned cannot be copied: LostError: no copy of me"):
                await anext(stream)
            assert [] == await read(stream)

        asyncio.run(main())


class TestEmit:
    """What nodes tell themselves."""

    pytestmark = pytest.mark.once("what nodes tell; no store sees it")

    def test_pieces_come_between_the_start_and_the_end_of_their_node(self) -> None:
        async def speak(state: Job, ctx: Any) -> Job:
            for piece in ("Dear", "Acme"):
                await ctx.emit(piece)
            ctx.emit("Corp")
            return state

        def inline(state: Job, ctx: Any) -> Job:
            ctx.emit(ctx.node)
            return state

        def route(_: Job, ctx: Any) -> str:
            ctx.emit("route")
            return "G"

        graph = new(Job).add_node("A", speak).add_parallel_group("G", {"b": inline}, lambda state, _: state)
        graph.add_conditional_edge("A", route, ["G"])

        assert [
            ("started", "A", 1),
            ("emitted", "A", "Dear"),
            ("emitted", "A", "Acme"),
            ("emitted", "A", "Corp"),
            ("emitted", "A", "route"),
            ("finished", "A", ""),
            ("started", "G", 1),
            ("started", "G/b", 1),
            ("emitted", "G/b", "b"),
            ("finished", "G/b", ""),
            ("finished", "G", ""),
            "Completed",
        ] == asyncio.run(read(graph.compile().stream("t", Job())))

    @pytest.mark.parametrize(("buffer", "most"), [(0, 1), (3, 4)])
    def test_a_node_that_awaits_is_not_ahead_of_the_reader(self, buffer: int, most: int) -> None:
        async def main() -> None:
            told = read = 0

            async def speak(state: Job, ctx: Any) -> Job:
                nonlocal told
                for _ in range(10):
                    told += 1
                    await ctx.emit(told)
                return state

            async for event in chain("A", A=speak).compile().stream("t", Job(), buffer=buffer):
                for _ in range(10):
                    await asyncio.sleep(0)
                if isinstance(event, Emitted):
                    read += 1
                    assert event.value == read
                    assert min(read - 1 + most, 10) == told

            assert 10 == read

        asyncio.run(main())

    def test_a_blocking_node_tells_from_its_thread_in_order_and_without_waiting(self) -> None:
        def speak(state: Job, ctx: Any) -> Job:
            for number in range(100):
                ctx.emit(number)
            ctx.emit(threading.current_thread() is threading.main_thread())
            return state

        graph = new(Job).add_node("A", speak, blocking=True).compile()
        events = asyncio.run(read(graph.stream("t", Job())))

        assert [*range(100), False] == [event[2] for event in events if event[0] == "emitted"]
        assert [("finished", "A", ""), "Completed"] == events[-2:]

    def test_a_blocking_node_with_a_loop_of_its_own_waits_for_nobody_there(self) -> None:
        """Nobody could wake it."""

        def speak(state: Job, ctx: Any) -> Job:
            async def go() -> None:
                for number in range(3):
                    await ctx.emit(number)

            asyncio.run(go())
            return state

        async def main() -> list[Any]:
            return [event async for event in new(Job).add_node("A", speak, blocking=True).compile().stream("t", Job())]

        found = asyncio.run(main())

        assert [0, 1, 2] == [event.value for event in found if isinstance(event, Emitted)]

    def test_what_is_told_while_nobody_streams_is_dropped_and_costs_no_turn_of_the_loop(self) -> None:
        async def main() -> None:
            turns: list[str] = []

            async def speak(state: Job, ctx: Any) -> Job:
                asyncio.get_running_loop().call_soon(turns.append, "a turn")
                await ctx.emit("nobody hears this")
                assert [] == turns
                return state

            assert Completed("t", Job()) == await chain("A", A=speak).compile().run("t", Job())

        asyncio.run(main())

    def test_what_is_told_after_the_end_is_dropped(self) -> None:
        async def main() -> None:
            def keep(state: Job, ctx: Any) -> Job:
                kept.append(ctx)
                return state

            stream = chain("A", A=keep).compile().stream("t", Job())
            assert "Completed" == (await read(stream))[-1]
            await kept[0].emit("too late")
            await asyncio.to_thread(kept[0].emit, "too late")

            assert [] == await read(stream)

        kept: list[Any] = []
        asyncio.run(main())
        late = threading.Thread(target=kept[0].emit, args=("far too late",))
        late.start()
        late.join()

    def test_nobody_waits_for_a_reader_after_the_end(self) -> None:
        """What a node has left running, and told, goes on when the run is over, read or not."""

        async def main() -> None:
            kept: list[Any] = []

            async def leave(state: Job, ctx: Any) -> Job:
                async def linger() -> None:
                    for _ in range(5):
                        await ctx.emit("still here")

                kept.append(asyncio.create_task(linger()))
                kept.append(ctx)
                await asyncio.sleep(0)
                return state

            stream = chain("A", A=leave).compile().stream("t", Job(), buffer=1)
            await anext(stream)
            await anext(stream)
            for _ in range(20):
                await asyncio.sleep(0)

            assert Completed("t", Job()) == stream.result
            assert kept[0].done()
            await kept[1].emit("too late")

        asyncio.run(main())

    def test_what_a_thread_tells_is_read_while_it_runs(self) -> None:
        async def main() -> None:
            heard = threading.Event()
            answers = []

            def ask(state: Job, ctx: Any) -> Job:
                ctx.emit("hello?")
                answers.append(heard.wait(10))
                return state

            graph = new(Job).add_node("A", ask, blocking=True).compile()
            async for event in graph.stream("t", Job()):
                if isinstance(event, Emitted):
                    heard.set()

            assert [True] == answers

        asyncio.run(main())


class TestErrors:
    """What the iteration raises."""

    pytestmark = pytest.mark.once("misuse, and a store that is down, which is a wrapper around any")

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            ({"thread_id": ""}, "thread_id"),
            ({"state": None}, "state"),
            ({"store": "orders.db"}, "must be a CheckpointStore, not str"),
            ({"buffer": -1}, "buffer"),
            ({"buffer": True}, "buffer"),
            ({"deadline": 5}, "deadline"),
        ],
    )
    def test_misuse_is_raised_at_the_first_step_and_once(self, arguments: dict[str, Any], named: str) -> None:
        async def main() -> None:
            graph = chain("A").compile()
            stream = graph.stream(**{"thread_id": "t", "state": Job(), **arguments})
            with pytest.raises(InvalidInputError, match=named):
                await anext(stream)
            assert [] == await read(stream)
            with pytest.raises(UsageError, match="has not come to its end"):
                stream.result  # noqa: B018

        asyncio.run(main())

    def test_a_store_that_goes_down_is_raised_after_what_was_told(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:

                class Down:
                    def __getattr__(self, name: str) -> Any:
                        return getattr(store, name)

                    async def save_under_lease(self, *_: Any, **__: Any) -> int:
                        raise StoreUnavailableError("down", maybe_written=False)

                stream = chain("A", "B").compile(checkpointing=EVERY).stream("t", Job(), Down())
                assert ("saved", 0, "running") == short(await anext(stream))
                assert ("started", "A", 1) == short(await anext(stream))
                with pytest.raises(StoreUnavailableError):
                    await anext(stream)
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_a_stream_that_is_not_read_runs_nothing(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = chain("A").compile(checkpointing=EVERY)
                graph.stream("t", Job(), store)
                async with graph.stream("t", Job(), store) as events:
                    pass
                await graph.stream("t", Job(), store).aclose()
                assert [] == await read(events)
                await asyncio.sleep(0)

                assert [] == await world.log(store, "t")

        asyncio.run(main())

    def test_a_run_that_somebody_else_cancels_is_a_cancelled_one_for_its_reader(self) -> None:
        async def main() -> None:
            async def give_up(state: Job) -> Job:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)
                return state

            stream = chain("A", A=give_up).compile().stream("t", Job())
            await anext(stream)
            with pytest.raises(asyncio.CancelledError):
                await anext(stream)
            assert [] == await read(stream)

        asyncio.run(main())

    def test_nodes_see_the_context_variables_of_whoever_begins_to_read(self) -> None:
        request: contextvars.ContextVar[str] = contextvars.ContextVar("request")

        async def main() -> None:
            seen = []

            def look(state: Job) -> Job:
                seen.append(request.get())
                request.set("changed by a node")
                return state

            stream = chain("A", "B", A=look, B=look).compile().stream("t", Job())
            request.set("one")
            await anext(stream)
            request.set("two")
            await read(stream)

            assert "one" == seen[0]
            assert "two" == request.get()

        asyncio.run(main())


@pytest.mark.once("counts calls")
def test_a_run_that_nobody_streams_calls_nothing_of_it(world: Any) -> None:
    """No event is made, and no function of the stream's modules is called."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code.co_filename.rpartition("/")[2])

    async def main() -> Any:
        async with world.open() as store:
            item = chain("I").compile()
            graph = (
                new(Job)
                .add_node("A", lambda state, ctx: state, retry=RetryPolicy(max_attempts=2))
                .add_parallel_group("G", {"b": lambda state, ctx: state, "c": item}, lambda s, _: s)
                .add_map("M", item, lambda _: [Job()], lambda s, _: s)
                .add_subgraph("Sub", item, enter=lambda s: s, leave=lambda s, _: s)
                .add_node("B", fails(times=1), retry=RetryPolicy(max_attempts=2))
                .add_edge("A", "G")
                .add_edge("G", "M")
                .add_edge("M", "Sub")
                .add_edge("Sub", "B")
                .compile(checkpointing=EVERY)
            )
            gc.collect()  # streams that other tests have dropped
            sys.setprofile(note)
            try:
                result = await graph.run("t", Job(), store)
            finally:
                sys.setprofile(None)
            assert isinstance(result, Completed)
            quiet, streamed = called.copy(), graph.stream("u", Job(), store)
            sys.setprofile(note)
            try:
                await read(streamed)
            finally:
                sys.setprofile(None)
            return quiet

    quiet = asyncio.run(main())
    ours = {"_emitter.py", "_channel.py", "_stream.py", "_stream_calls.py", "_telling_store.py"}

    assert ours - {"_stream_calls.py"} <= called, "the test counts nothing"
    assert set() == ours & quiet
    assert not any("attrs generated methods strata_core.graph._events" in name for name in quiet)
