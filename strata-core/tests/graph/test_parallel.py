"""Parallel groups and maps: that they overlap, what they come to, and that nothing of them is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
import pytest
from lost_support import STOOD_STILL, lost

from strata_core.errors import GraphValidationError
from strata_core.graph import (
    CancellationToken,
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    Completed,
    Failed,
    FailureCode,
    HumanSignal,
    ProblemCode,
    RetryPolicy,
    StateGraph,
)
from strata_core.records import GraphIdentity

pytestmark = pytest.mark.once("branches and items run between two calls of the store")


new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
TTL = timedelta(seconds=30)


@attrs.frozen
class Sum:
    numbers: tuple[int, ...] = ()
    total: int = 0


@attrs.frozen
class Item:
    number: int = 0


class Meeting:
    """Lets those who come wait for each other: proves that they overlap, since alone nobody gets on."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.here = 0
        self.most = 0
        self._full = asyncio.Event()

    async def join(self) -> None:
        self.here += 1
        self.most = max(self.most, self.here)
        if self.here == self.size:
            self._full.set()
        await self._full.wait()
        self.here -= 1


def add(state: Sum, results: list[Sum]) -> Sum:
    return attrs.evolve(state, total=state.total + sum(result.total for result in results))


def collect(state: Sum, results: list[Item]) -> Sum:
    return attrs.evolve(state, numbers=tuple(result.number for result in results))


def group(branches: Any, reducer: Any = add, *, compile_with: Any = None, **options: Any) -> Any:
    graph = new(Sum).add_parallel_group("Split", branches, reducer, **options)
    for name in {options.get("fallback")} - {None}:
        graph.add_node(name, lambda state: attrs.evolve(state, total=-1))
    return graph.compile(**compile_with or {})


def mapped(child: Any, count: int = 3, reducer: Any = collect, *, compile_with: Any = None, **options: Any) -> Any:
    items = options.pop("items", lambda _: [Item(number) for number in range(count)])
    graph = new(Sum).add_map("Each", child, items, reducer, **options)
    for name in {options.get("fallback")} - {None}:
        graph.add_node(name, lambda state: attrs.evolve(state, total=-1))
    return graph.compile(**compile_with or {})


def single(handler: Any, **options: Any) -> Any:
    return new(Item).add_node("One", handler, **options).compile()


def plus(number: int) -> Any:
    return lambda state: attrs.evolve(state, total=number)


class Harm:
    """Handlers that fail, hang and note what becomes of them."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.ended: list[str] = []
        self.hanging = asyncio.Event()

    def fails(self, after: Callable[[], Any] | None = None) -> Any:
        async def handler(state: Any) -> Any:
            self.begun.append("fails")
            if after is not None:
                await after()
            raise ConnectionError("the line is dead")

        return handler

    def hangs(self, name: str = "hangs") -> Any:
        async def handler(state: Any) -> Any:
            self.begun.append(name)
            self.hanging.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                await asyncio.sleep(0)  # it takes its time to clean up
                self.ended.append(name)
                raise

        return handler


class TestGroups:
    @BOTH
    def test_a_group_is_one_node_and_its_reducer_makes_one_state(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(Sum)
                    .add_node("Before", plus(10))
                    .add_parallel_group("Split", {"a": plus(1), "b": plus(2)}, add)
                    .add_node("After", lambda state: state)
                    .add_edge("Before", "Split")
                    .add_edge("Split", "After")
                    .compile(checkpointing=policy, clock=world.clock)
                )

                assert Completed("t", Sum((), 13)) == await graph.run("t", Sum(), store)
                rows = await world.rows(store, "t")
                assert (4 if policy is CheckpointPolicy.EVERY_NODE else 0) == len(rows)
                if rows:
                    assert ("running", "Split", "After") == rows[2]

        asyncio.run(main())

    def test_its_branches_overlap(self) -> None:
        async def main() -> None:
            meeting = Meeting(3)

            async def meet(state: Sum) -> Sum:
                await meeting.join()
                return state

            assert isinstance(await group(dict.fromkeys("abc", meet)).run("t", Sum()), Completed)
            assert 3 == meeting.most

        asyncio.run(main())

    def test_blocking_branches_overlap_in_threads(self) -> None:
        barrier = threading.Barrier(2, timeout=30)

        def meet(state: Sum) -> Sum:
            barrier.wait()
            return state

        result = asyncio.run(group({"a": meet, "b": meet}, blocking=["a", "b"]).run("t", Sum()))

        assert Completed("t", Sum()) == result

    def test_results_come_in_the_order_of_declaration_whichever_was_first(self) -> None:
        async def main() -> None:
            first = asyncio.Event()

            async def late(state: Sum) -> Sum:
                await first.wait()
                return attrs.evolve(state, total=1)

            async def early(state: Sum) -> Sum:
                first.set()
                return attrs.evolve(state, total=2)

            def keep(state: Sum, results: list[Sum]) -> Sum:
                return Sum(tuple(result.total for result in results))

            assert Completed("t", Sum((1, 2))) == await group({"late": late, "early": early}, keep).run("t", Sum())

        asyncio.run(main())

    def test_no_more_than_the_limit_run_at_once_and_they_begin_in_order(self) -> None:
        begun = []

        async def main() -> None:
            meeting = Meeting(2)

            def branch(number: int) -> Any:
                async def handler(state: Sum) -> Sum:
                    begun.append(number)
                    await meeting.join()
                    return state

                return handler

            graph = group({str(number): branch(number) for number in range(8)}, max_concurrency=2)
            assert isinstance(await graph.run("t", Sum()), Completed)
            assert 2 == meeting.most
            assert list(range(8)) == begun

        asyncio.run(main())

    def test_every_kind_of_handler_can_be_a_branch(self) -> None:
        async def later(state: Sum) -> Sum:
            await asyncio.sleep(0)
            return Sum((), 2)

        graph = group(
            {
                "def": plus(1),
                "async": later,
                "awaitable": lambda state: later(state),  # noqa: PLW0108  # a def that returns an awaitable
                "context": lambda state, ctx: Sum((), ctx.attempt),
                "thread": plus(4),
                "graph": new(Sum).add_node("One", plus(8)).compile(),
            },
            blocking={"thread"},
        )

        assert Completed("t", Sum((), 18)) == asyncio.run(graph.run("t", Sum()))

    def test_the_reducer_may_be_async(self) -> None:
        async def reduce(state: Sum, results: list[Sum]) -> Sum:
            await asyncio.sleep(0)
            return add(state, results)

        assert Completed("t", Sum((), 3)) == asyncio.run(group({"a": plus(1), "b": plus(2)}, reduce).run("t", Sum()))

    def test_context_variables_of_one_branch_do_not_reach_another(self) -> None:
        variable = contextvars.ContextVar("variable", default=0)
        found = []

        def branch(state: Sum) -> Sum:
            found.append(variable.get())
            variable.set(1)
            return state

        async def main() -> None:
            variable.set(7)
            await group(dict.fromkeys("abc", branch), max_concurrency=1).run("t", Sum())

            assert [7, 7, 7] == found
            assert 7 == variable.get()

        asyncio.run(main())

    @pytest.mark.parametrize("fails_first", [False, True])
    def test_what_a_branch_changes_in_place_shows_to_nobody(self, fails_first: bool) -> None:
        seen = []
        failures = [fails_first]

        async def grow(state: dict[str, Any]) -> dict[str, Any]:
            seen.append(len(state["items"]))
            state["items"].append("x")
            await asyncio.sleep(0)
            if failures.pop() if failures else False:
                raise ConnectionError
            return state

        def reduce(before: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
            before["items"].append("reduced")
            return {"items": before["items"], "lengths": [len(result["items"]) for result in results]}

        graph = (
            new(dict)
            .add_parallel_group("Split", {"a": grow, "b": grow}, reduce, retry=RetryPolicy(max_attempts=2))
            .compile()
        )
        given = {"items": ["first"]}
        result = asyncio.run(graph.run("t", given))

        assert {"items": ["first", "reduced"], "lengths": [2, 2]} == result.state
        assert {1} == set(seen)
        assert {"items": ["first"]} == given

    def test_branches_see_the_decision_of_their_level_and_graphs_in_them_do_not(self, world: Any) -> None:
        seen: dict[str, Any] = {}

        def look(name: str) -> Any:
            def handler(state: Sum, ctx: Any) -> Sum:
                seen[name] = (ctx.decision and ctx.decision.reviewer, ctx.node, dict(ctx.metadata))
                return state

            return handler

        async def main() -> None:
            async with world.open() as store:
                inside = new(Sum).add_node("Inside", look("graph")).compile()
                graph = (
                    new(Sum)
                    .add_node("Ask", plus(0))
                    .add_interrupt_boundary("Ask")
                    .add_parallel_group("Split", {"handler": look("handler"), "graph": inside}, add)
                    .add_edge("Ask", "Split")
                    .compile(clock=world.clock)
                )
                await graph.run("t", Sum(), store, metadata={"tenant": "acme"})
                await graph.resume("t", HumanSignal.approve("kim"), store)

                tenant = {"tenant": "acme"}
                assert {"handler": ("kim", "handler", tenant), "graph": (None, "Inside", tenant)} == seen

        asyncio.run(main())


class TestMaps:
    @BOTH
    def test_a_map_runs_its_child_for_every_item(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                child = (
                    new(Item)
                    .add_node("Square", lambda item: Item(item.number**2))
                    .add_node("Add", lambda item: Item(item.number + 1))
                    .add_edge("Square", "Add")
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, identity=GraphIdentity("child", "1"))
                )
                options = {"checkpointing": policy, "clock": world.clock}
                result = await mapped(child, 4, compile_with=options).run("t", Sum(), store)

                assert Completed("t", Sum((1, 2, 5, 10))) == result
                assert (2 if policy is CheckpointPolicy.EVERY_NODE else 0) == len(await world.log(store, "t"))

        asyncio.run(main())

    def test_nothing_to_do_is_fine(self) -> None:
        assert Completed("t", Sum()) == asyncio.run(mapped(single(lambda item: item), 0).run("t", Sum()))

    def test_the_items_may_come_late_and_from_anything_that_can_be_gone_through(self) -> None:
        async def items(state: Sum) -> Any:
            await asyncio.sleep(0)
            return (Item(number) for number in range(state.total))

        graph = mapped(single(lambda item: item), items=items)

        assert Completed("t", Sum((0, 1, 2), 3)) == asyncio.run(graph.run("t", Sum((), 3)))

    def test_a_thousand_items_at_fifty_hold_fifty_children_and_no_more(self) -> None:
        held = most = 0
        sizes = []

        async def main() -> None:
            meeting = Meeting(50)

            async def first(item: Item) -> Item:
                nonlocal held, most
                held += 1
                most = max(most, held)
                sizes.append(len(asyncio.all_tasks()))
                await meeting.join()
                return Item(item.number * 2)

            async def last(item: Item) -> Item:
                nonlocal held
                await asyncio.sleep(0)
                held -= 1
                return item

            child = new(Item).add_node("A", first).add_node("B", last).add_edge("A", "B").compile()
            result = await mapped(child, 1000, max_concurrency=50).run("t", Sum())

            assert Completed("t", Sum(tuple(range(0, 2000, 2)))) == result
            assert (50, 50, 0) == (most, meeting.most, held)
            assert max(sizes) <= 52  # and the one that has just ended, and the run

        asyncio.run(main())

    def test_the_memory_of_a_map_is_that_of_the_children_it_holds(self) -> None:
        async def main() -> None:
            async def work(item: dict[str, Any]) -> dict[str, Any]:
                ballast = bytearray(100_000)
                for _ in range(3):
                    await asyncio.sleep(0)
                return {"number": len(ballast)}

            child = new(dict).add_node("Work", work).compile()
            graph = (
                new(dict)
                .add_map("Each", child, lambda _: [{}] * 400, lambda _, r: {"n": len(r)}, max_concurrency=10)
                .compile()
            )
            await graph.run("t", {})
            tracemalloc.start()
            try:
                result = await graph.run("t", {})
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

            assert Completed("t", {"n": 400}) == result
            assert 10 * 100_000 <= peak < 20 * 100_000  # and not 400 times

        asyncio.run(main())

    def test_items_that_share_what_can_be_changed_do_not_see_each_other(self) -> None:
        def grow(state: dict[str, Any]) -> dict[str, Any]:
            state["items"].append("x")
            return state

        def lengths(_: Any, results: list[dict[str, Any]]) -> dict[str, Any]:
            return {"lengths": [len(result["items"]) for result in results]}

        child = new(dict).add_node("Grow", grow).add_node("Again", grow).add_edge("Grow", "Again").compile()
        graph = new(dict).add_map("Each", child, lambda state: [state, state], lengths).compile()

        assert Completed("t", {"lengths": [2, 2]}) == asyncio.run(graph.run("t", {"items": []}))

    def test_children_may_hold_subgraphs_groups_and_maps(self) -> None:
        def double(item: Item, results: list[Item]) -> Item:
            return Item(sum(result.number for result in results))

        inner = (
            new(Item).add_parallel_group("Twice", {"a": lambda item: item, "b": lambda item: item}, double).compile()
        )
        middle = new(Item).add_map("Again", inner, lambda item: [item, item], double).compile()
        child = new(Item).add_subgraph("Deep", middle, enter=lambda item: item, leave=lambda _, inner: inner).compile()

        assert Completed("t", Sum((0, 4, 8))) == asyncio.run(mapped(child).run("t", Sum()))

    def test_retries_and_fallbacks_inside_are_the_items_own(self) -> None:
        attempts: list[tuple[int, int]] = []

        def work(item: Item, ctx: Any) -> Item:
            attempts.append((item.number, ctx.attempt))
            if item.number == 1:
                raise ConnectionError
            return item

        child = (
            new(Item)
            .add_node("Work", work, retry=RetryPolicy(max_attempts=2), fallback="Other")
            .add_node("Other", lambda _: Item(-1))
            .compile()
        )

        assert Completed("t", Sum((0, -1, 2))) == asyncio.run(mapped(child).run("t", Sum()))
        assert [(0, 1), (1, 1), (1, 2), (2, 1)] == sorted(attempts)

    @pytest.mark.parametrize(
        ("items", "code", "detail"),
        [
            (lambda _: 1 / 0, FailureCode.NODE_FAILED, "ZeroDivisionError: division by zero"),
            (lambda _: None, FailureCode.NODE_FAILED, "TypeError: 'NoneType' object is not iterable"),
            (lambda _: [Item(), 3], FailureCode.INVALID_STATE, "NodeReturnError: item 1 is int, not Item"),
        ],
    )
    def test_items_that_are_none_fail_the_node(self, items: Any, code: FailureCode, detail: str) -> None:
        failed = asyncio.run(mapped(single(lambda item: item), items=items).run("t", Sum()))

        assert (code, "items failed, inside 'Each'", "Each", detail) == (
            failed.code, failed.message, failed.node, failed.detail
        )  # fmt: skip


class TestFailures:
    @BOTH
    @pytest.mark.parametrize("kind", ["group", "map"])
    def test_the_first_failure_fails_the_node_once_all_others_have_ended(
        self, world: Any, policy: CheckpointPolicy, kind: str
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                harm = Harm()
                fails, hangs = harm.fails(harm.hanging.wait), harm.hangs()
                options = {"checkpointing": policy, "clock": world.clock}
                if kind == "group":
                    graph = group({"a": hangs, "b": hangs, "fails": fails}, compile_with=options)
                    message = "branch 'fails' failed, inside 'Split'"
                else:
                    work = lambda item: hangs(item) if item.number != 2 else fails(item)  # noqa: E731
                    graph = mapped(single(work), compile_with=options)
                    message = "node 'One' failed, inside item 2, inside 'Each'"
                failed = await graph.run("t", Sum(), store)
                *_, row = await world.rows(store, "t")

                assert (FailureCode.NODE_FAILED, message) == (failed.code, failed.message)
                assert "ConnectionError: the line is dead" == failed.detail
                assert isinstance(failed.error, ConnectionError)
                assert 2 == len(harm.cancelled) == len(harm.ended)
                assert ("failed", failed.node, failed.node) == row
                await asyncio.sleep(0)  # the alarm of a lease goes with the next turn
                assert 1 == len(asyncio.all_tasks())

        asyncio.run(main())

    def test_what_waited_for_its_turn_never_begins(self) -> None:
        async def main() -> None:
            harm = Harm()
            branches = {"fails": harm.fails(), "hangs": harm.hangs(), "never": harm.hangs("never")}
            await group(branches, max_concurrency=2).run("t", Sum())

            assert ["fails"] == harm.begun

        asyncio.run(main())

    def test_a_blocking_branch_is_told_and_waited_for_when_another_fails(self) -> None:
        ended = []
        begun = threading.Event()

        def slow(state: Sum, ctx: Any) -> Sum:
            begun.set()
            told = threading.Event()
            ctx.cancellation.subscribe(told.set)
            assert told.wait(30)
            ended.append(ctx.cancellation.is_cancelled)
            return state

        async def fails(state: Sum) -> Sum:
            await asyncio.get_running_loop().run_in_executor(None, begun.wait)
            raise ConnectionError

        failed = asyncio.run(group({"slow": slow, "fails": fails}, blocking=["slow"]).run("t", Sum()))

        assert (FailureCode.NODE_FAILED, [True]) == (failed.code, ended)

    @pytest.mark.parametrize(
        ("branch", "code"),
        [
            (lambda _: None, FailureCode.INVALID_STATE),
            (lambda _: asyncio.get_running_loop().create_future().result(), FailureCode.NODE_FAILED),
        ],
    )
    def test_a_branch_that_gives_no_state_has_failed(self, branch: Any, code: FailureCode) -> None:
        failed = asyncio.run(group({"a": plus(1), "b": branch}).run("t", Sum()))

        assert (code, "branch 'b' failed, inside 'Split'") == (failed.code, failed.message)

    def test_a_branch_that_cancels_itself_has_failed(self) -> None:
        async def cancels(state: Sum) -> Sum:
            raise asyncio.CancelledError

        failed = asyncio.run(group({"a": cancels}).run("t", Sum()))

        assert "NodeCancelledError: something that it awaited was cancelled" == failed.detail

    @pytest.mark.parametrize("kind", ["group", "map"])
    @pytest.mark.parametrize(
        ("reducer", "code"),
        [(lambda *_: 1 / 0, FailureCode.NODE_FAILED), (lambda *_: None, FailureCode.INVALID_STATE)],
    )
    def test_a_reducer_that_fails_fails_the_node(self, kind: str, reducer: Any, code: FailureCode) -> None:
        graph = group({"a": plus(1)}, reducer) if kind == "group" else mapped(single(lambda item: item), 3, reducer)
        failed = asyncio.run(graph.run("t", Sum()))

        assert isinstance(failed, Failed)
        assert (code, f"the reducer failed, inside '{failed.node}'") == (failed.code, failed.message)

    @BOTH
    @pytest.mark.parametrize("kind", ["group", "map"])
    def test_a_retry_runs_everything_again_with_the_same_keys(
        self, world: Any, policy: CheckpointPolicy, kind: str
    ) -> None:
        keys: list[tuple[int, str, str]] = []

        def note(name: str, ctx: Any) -> None:
            keys.append((ctx.attempt if kind == "group" else len(keys) // 3 + 1, name, ctx.idempotency_key))
            if keys[-1][:2] == (1, "2"):
                raise ConnectionError

        def branch(name: str) -> Any:
            def handler(state: Sum, ctx: Any) -> Sum:
                note(name, ctx)
                return state

            return handler

        def work(item: Item, ctx: Any) -> Item:
            note(str(item.number), ctx)
            return item

        async def main() -> None:
            async with world.open() as store:
                options: Any = {
                    "retry": RetryPolicy(max_attempts=2, retry_on=ConnectionError),
                    "compile_with": {"checkpointing": policy, "clock": world.clock},
                }
                if kind == "group":
                    graph = group({name: branch(name) for name in "012"}, **options)
                else:
                    graph = mapped(single(work), **options)

                assert isinstance(await graph.run("t", Sum(), store), Completed)
                first = {name: key for attempt, name, key in keys if attempt == 1}
                second = {name: key for attempt, name, key in keys if attempt == 2}
                assert first == second
                assert 3 == len(set(first.values()))

        asyncio.run(main())

    @pytest.mark.parametrize("kind", ["group", "map"])
    def test_a_fallback_takes_over_when_the_attempts_are_used_up(self, kind: str) -> None:
        harm = Harm()
        options: Any = {"retry": RetryPolicy(max_attempts=3), "fallback": "Instead"}
        graph = group({"a": harm.fails()}, **options) if kind == "group" else mapped(single(harm.fails()), 1, **options)

        assert Completed("t", Sum((), -1)) == asyncio.run(graph.run("t", Sum()))
        assert 3 == len(harm.begun)


class TestStopping:
    @BOTH
    @pytest.mark.parametrize("kind", ["group", "map"])
    @pytest.mark.parametrize("by", ["token", "deadline", "caller"])
    def test_a_stop_cancels_and_awaits_all_and_a_resume_runs_them_again(
        self, world: Any, policy: CheckpointPolicy, kind: str, by: str
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                harm = Harm()
                hanging = True

                async def work(state: Any, ctx: Any) -> Any:
                    keys.setdefault(getattr(state, "number", ctx.node), set()).add(ctx.idempotency_key)
                    return await harm.hangs()(state) if hanging else state

                keys: dict[Any, set[str]] = {}
                options: Any = {"compile_with": {"checkpointing": policy, "clock": world.clock}}
                graph = (
                    group(dict.fromkeys("abc", work), **options) if kind == "group" else mapped(single(work), **options)
                )
                token = CancellationToken()
                task = asyncio.create_task(
                    graph.run("t", Sum(), store, cancellation=token, deadline=timedelta(seconds=5))
                )
                await harm.hanging.wait()
                if by == "token":
                    token.cancel("enough")
                elif by == "deadline":
                    world.clock.advance(5)
                else:
                    task.cancel()
                reasons = {"token": CancelReason.CANCELLED, "deadline": CancelReason.DEADLINE}
                if by == "caller":
                    with pytest.raises(asyncio.CancelledError):
                        await task
                else:
                    stopped = await task
                    assert isinstance(stopped, Cancelled)
                    assert reasons[by] is stopped.reason
                assert 3 == len(harm.cancelled) == len(harm.ended)
                *_, (status, *_) = await world.rows(store, "t")
                assert "cancelled" == status

                hanging = False
                assert isinstance(await graph.resume("t", None, store), Completed)
                assert [1, 1, 1] == [len(told) for told in keys.values()]
                assert 3 == len(set.union(*keys.values()))

        asyncio.run(main())

    def test_a_lost_lease_cancels_all_and_writes_nothing(self, world: Any) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                harm = Harm()
                options = {"checkpointing": CheckpointPolicy.EVERY_NODE, "clock": world.clock, "lease_ttl": TTL}
                graph = group({"a": harm.hangs("a"), "b": harm.hangs("b")}, compile_with=options)

                class Deaf:
                    """A store that renews no lease."""

                    def __getattr__(self, name: str) -> Any:
                        return getattr(one, name)

                    async def renew_lease(self, *_: Any, **__: Any) -> Any:
                        await asyncio.Event().wait()

                task = asyncio.create_task(graph.run("t", Sum(), Deaf()))
                await harm.hanging.wait()
                while not task.done():
                    world.clock.advance(TTL)
                    await asyncio.sleep(0.01)

                assert lost("Split", STOOD_STILL, TTL) == task.result()
                assert {"a", "b"} == set(harm.ended)
                assert [("running", None, "Split")] == await world.rows(other, "t")

        asyncio.run(main())

    def test_blocking_branches_are_waited_for_when_a_token_stops_the_run(self) -> None:
        ended = []

        async def main() -> None:
            token = CancellationToken()
            begun, go = threading.Event(), threading.Event()

            def slow(state: Sum) -> Sum:
                begun.set()
                assert go.wait(30)
                ended.append(True)
                return state

            task = asyncio.create_task(group({"slow": slow}, blocking=["slow"]).run("t", Sum(), cancellation=token))
            await asyncio.get_running_loop().run_in_executor(None, begun.wait)
            token.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
            assert not task.done()
            go.set()

            assert Cancelled("t", CancelReason.CANCELLED, "Split") == await task
            assert [True] == ended

        asyncio.run(main())

    def test_a_token_stops_def_children_before_the_next_one(self) -> None:
        token = CancellationToken()
        begun = []

        def work(item: Item) -> Item:
            begun.append(item.number)
            if item.number == 2:
                token.cancel()
            return item

        stopped = asyncio.run(mapped(single(work), 9, max_concurrency=1).run("t", Sum(), cancellation=token))

        assert CancelReason.CANCELLED is stopped.reason
        assert [0, 1, 2] == begun

    def test_a_token_stops_a_group_before_its_next_branch(self) -> None:
        token = CancellationToken()
        begun = []

        def branch(state: Sum, ctx: Any) -> Sum:
            begun.append(ctx.node)
            token.cancel()
            return state

        stopped = asyncio.run(group(dict.fromkeys("abc", branch)).run("t", Sum(), cancellation=token))

        assert Cancelled("t", CancelReason.CANCELLED, "Split") == stopped
        assert ["a"] == begun

    def test_both_a_failure_and_a_stop_at_once_is_a_stop(self) -> None:
        async def main() -> None:
            token = CancellationToken()

            async def fails(state: Sum) -> Sum:
                token.cancel()
                raise ConnectionError

            async def slow_to_end(state: Sum) -> Sum:
                try:
                    await asyncio.Event().wait()
                finally:
                    for _ in range(5):
                        await asyncio.sleep(0)
                raise AssertionError

            graph = group({"slow": slow_to_end, "fails": fails})
            stopped = await graph.run("t", Sum(), cancellation=token)

            assert Cancelled("t", CancelReason.CANCELLED, "Split") == stopped

        asyncio.run(main())

    def test_a_caller_that_cancels_while_the_others_come_to_their_end_is_not_forgotten(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                ending, go = asyncio.Event(), asyncio.Event()

                async def fails(state: Sum) -> Sum:
                    raise ConnectionError

                async def slow_to_end(state: Sum) -> Sum:
                    try:
                        await asyncio.Event().wait()
                    finally:
                        ending.set()
                        await go.wait()
                    raise AssertionError

                graph = group({"slow": slow_to_end, "fails": fails}, compile_with={"clock": world.clock})
                task = asyncio.create_task(graph.run("t", Sum(), store))
                await ending.wait()
                task.cancel()
                await asyncio.sleep(0)
                go.set()
                with pytest.raises(asyncio.CancelledError):
                    await task

                assert [("cancelled", "Split", "Split")] == await world.rows(store, "t")

        asyncio.run(main())


class TestRecovery:
    @pytest.mark.parametrize("kind", ["group", "map"])
    def test_everything_runs_again_with_its_keys(self, world: Any, kind: str) -> None:
        async def main() -> None:
            async with world.pair() as (one, other):
                reached = asyncio.Event()
                hanging = True
                keys: dict[Any, list[str]] = {}

                async def work(state: Any, ctx: Any) -> Any:
                    keys.setdefault(getattr(state, "number", ctx.node), []).append(ctx.idempotency_key)
                    if hanging and len(keys) == 3:
                        reached.set()
                        await asyncio.Event().wait()
                    return state

                child = new(Item).add_node("A", lambda item: item).add_node("B", work).add_edge("A", "B").compile()
                options: Any = {
                    "compile_with": {
                        "checkpointing": CheckpointPolicy.EVERY_NODE,
                        "clock": world.clock,
                        "lease_ttl": TTL,
                    }
                }
                graph = group(dict.fromkeys("abc", work), **options) if kind == "group" else mapped(child, **options)
                await world.die(lambda store: graph.run("t", Sum(), store), one, reached)
                hanging = False
                await world.lapse(other, "t", TTL)

                assert isinstance(await graph.recover("t", other), Completed)
                assert [(2, 1)] * 3 == [(len(told), len(set(told))) for told in keys.values()]
                assert 3 == len({told[0] for told in keys.values()})

        asyncio.run(main())

    def test_a_loop_inside_a_child_gives_each_visit_a_key_of_its_own(self) -> None:
        keys: list[str] = []

        def again(item: Item, ctx: Any) -> Item:
            keys.append(ctx.idempotency_key)
            return Item(item.number + 1)

        child = (
            new(Item)
            .add_node("Again", again)
            .add_node("End", lambda item: item)
            .add_conditional_edge("Again", lambda item: "Again" if item.number < 3 else "End", ["Again", "End"])
            .compile()
        )
        asyncio.run(mapped(child, items=lambda _: [Item(), Item()]).run("t", Sum()))

        assert 6 == len(keys) == len(set(keys))


class TestCompiling:
    def problems(self, graph: Any) -> list[tuple[ProblemCode, str | None]]:
        with pytest.raises(GraphValidationError) as caught:
            graph.compile()
        return [(problem.code, problem.node) for problem in caught.value.problems]

    @pytest.mark.parametrize("branches", [None, {}, [lambda state: state], "ab"])
    def test_branches_that_are_none_are_a_problem(self, branches: Any) -> None:
        assert [(ProblemCode.INVALID_BRANCH, "G")] == self.problems(new(Sum).add_parallel_group("G", branches, add))

    @pytest.mark.parametrize("branch", [None, 3, lambda: None, lambda a, b, c: None, new(Sum)])
    def test_a_branch_that_cannot_be_called_is_a_problem(self, branch: Any) -> None:
        graph = new(Sum).add_parallel_group("G", {"a": branch}, add)

        assert [(ProblemCode.INVALID_HANDLER, "G")] == self.problems(graph)

    @pytest.mark.parametrize("name", ["", 3, "a\0b"])
    def test_a_branch_needs_a_name(self, name: Any) -> None:
        graph = new(Sum).add_parallel_group("G", {name: plus(1)}, add)

        assert [(ProblemCode.INVALID_NAME, "G")] == self.problems(graph)

    def test_a_graph_of_another_state_is_no_branch(self) -> None:
        graph = new(Sum).add_parallel_group("G", {"a": single(lambda item: item)}, add)

        assert [(ProblemCode.INVALID_CHILD, "G")] == self.problems(graph)

    @pytest.mark.parametrize(
        ("blocking", "code"),
        [
            ("a", ProblemCode.INVALID_BRANCH),
            (3, ProblemCode.INVALID_BRANCH),
            (["missing"], ProblemCode.INVALID_BRANCH),
            (["later"], ProblemCode.INVALID_HANDLER),
        ],
    )
    def test_blocking_names_def_branches(self, blocking: Any, code: ProblemCode) -> None:
        async def later(state: Sum) -> Sum:
            return state

        graph = new(Sum).add_parallel_group("G", {"a": plus(1), "later": later}, add, blocking=blocking)

        assert [(code, "G")] == self.problems(graph)

    @pytest.mark.parametrize("limit", [0, -1, True, 1.5, "2"])
    def test_a_limit_is_a_number_of_at_least_one(self, limit: Any) -> None:
        graph = new(Sum).add_parallel_group("G", {"a": plus(1)}, add, max_concurrency=limit)
        graph.add_map("M", single(lambda item: item), lambda _: [], collect, max_concurrency=limit)
        graph.add_edge("G", "M")

        assert [(ProblemCode.INVALID_CONCURRENCY, "G"), (ProblemCode.INVALID_CONCURRENCY, "M")] == self.problems(graph)

    @pytest.mark.parametrize("reducer", [None, lambda state: state, lambda a, b, c: a])
    def test_a_reducer_takes_the_state_before_and_the_results(self, reducer: Any) -> None:
        graph = new(Sum).add_parallel_group("G", {"a": plus(1)}, reducer)
        graph.add_map("M", single(lambda item: item), lambda _: [], reducer)
        graph.add_edge("G", "M")

        assert [(ProblemCode.INVALID_HANDLER, "G"), (ProblemCode.INVALID_HANDLER, "M")] == self.problems(graph)

    @pytest.mark.parametrize("items", [None, [Item()], lambda: [Item()]])
    def test_items_are_a_function_of_the_state(self, items: Any) -> None:
        graph = new(Sum).add_map("M", single(lambda item: item), items, collect)

        assert [(ProblemCode.INVALID_HANDLER, "M")] == self.problems(graph)

    @pytest.mark.parametrize("child", [None, new(Item)])
    def test_the_child_of_a_map_is_a_compiled_graph(self, child: Any) -> None:
        graph = new(Sum).add_map("M", child, lambda _: [], collect)

        assert [(ProblemCode.INVALID_CHILD, "M")] == self.problems(graph)

    @pytest.mark.parametrize("wait", ["person", "event", "timer"])
    @pytest.mark.parametrize("depth", [0, 1, 2])
    def test_a_wait_in_a_branch_or_a_child_is_a_problem_at_any_depth(self, wait: str, depth: int) -> None:
        child = new(Item).add_node("Ask", lambda item: item)
        if wait == "person":
            child.add_interrupt_boundary("Ask")
        elif wait == "event":
            child.add_wait_for_event("Ask", "paid")
        else:
            child.add_timer("Ask", timedelta(1))
        compiled = child.compile()
        for _ in range(depth):
            same: Any = {"enter": lambda item: item, "leave": lambda _, inner: inner}
            compiled = new(Item).add_subgraph("Deep", compiled, **same).compile()
        graph = (
            new(Item)
            .add_parallel_group("G", {"a": compiled}, lambda before, _: before)
            .add_map("M", compiled, lambda _: [], lambda before, _: before)
            .add_edge("G", "M")
        )
        with pytest.raises(GraphValidationError) as caught:
            graph.compile()
        path = " / ".join(["'Deep'"] * depth + ["'Ask'"])

        assert [(ProblemCode.PARALLEL_WAIT, "G"), (ProblemCode.PARALLEL_WAIT, "M")] == [
            (problem.code, problem.node) for problem in caught.value.problems
        ]
        assert all(f"would wait after {path};" in problem.text for problem in caught.value.problems)

    def test_a_wait_after_a_group_or_a_map_is_fine(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = (
                    new(Sum)
                    .add_parallel_group("G", {"a": plus(1)}, add)
                    .add_interrupt_boundary("G")
                    .compile(clock=world.clock)
                )
                stopped = await graph.run("t", Sum(), store)

                assert ("G",) == stopped.waiting_at
                assert Completed("t", Sum((), 1)) == await graph.resume("t", HumanSignal.approve("kim"), store)

        asyncio.run(main())
