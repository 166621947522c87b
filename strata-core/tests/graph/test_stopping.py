"""Stopping a run from outside: token, deadline, and the caller's own task."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
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
    FailureCode,
    HumanSignal,
    Interrupted,
    RetryPolicy,
    StateGraph,
)

pytestmark = pytest.mark.once("tokens, deadlines, cancelled tasks; a slow store is a wrapper around any")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))


@attrs.frozen
class Job:
    done: tuple[str, ...] = ()


def does(name: str) -> Callable[[Job], Job]:
    return lambda state: attrs.evolve(state, done=(*state.done, name))


def graph(world: Any, policy: CheckpointPolicy, second: Any, **options: Any) -> Any:
    return (
        new(Job)
        .add_node("A", does("A"))
        .add_node("B", second, **options)
        .add_node("C", does("C"))
        .add_edge("A", "B")
        .add_edge("B", "C")
        .compile(checkpointing=policy, clock=world.clock)
    )


async def forever(state: Job) -> Job:
    await asyncio.Event().wait()
    return state


@BOTH
def test_a_token_interrupts_an_async_node_at_once_and_the_thread_goes_on_there(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def main() -> None:
        async with world.open() as store:
            token = CancellationToken()

            async def waits(state: Job) -> Job:
                asyncio.get_running_loop().call_soon(token.cancel, "shutting down")
                return await forever(state)

            result = await graph(world, policy, waits).run("t", Job(), store, cancellation=token)

            assert Cancelled("t", CancelReason.CANCELLED, "B", "shutting down") == result
            last = (await world.log(store, "t"))[-1]
            assert ("cancelled", "B", "B") == (last.state, last.suspended_node, last.next_node)
            assert {"done": ["A"]} == last.frozen_state
            assert {"strata.cancel_reason": "cancelled", "strata.cancel_detail": "shutting down"} == last.metadata
            assert None is await store.live_lease("t")

            before = await world.rows(store, "t")
            resumed = await graph(world, policy, does("B")).resume("t", None, store)
            assert Completed("t", Job(("A", "B", "C"))) == resumed
            every = [("running", "A", "B"), ("running", "B", "C"), ("completed", "C", None)]
            added = every if policy is CheckpointPolicy.EVERY_NODE else [("resumed", "B", "B")]
            assert [*before, *added] == await world.rows(store, "t")

    asyncio.run(main())


@BOTH
def test_a_deadline_interrupts_an_async_node(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:

            async def waits(state: Job) -> Job:
                asyncio.get_running_loop().call_soon(world.clock.advance, 5)
                return await forever(state)

            result = await graph(world, policy, waits).run("t", Job(), store, deadline=timedelta(seconds=5))

            assert Cancelled("t", CancelReason.DEADLINE, "B") == result
            assert {"strata.cancel_reason": "deadline"} == (await world.log(store, "t"))[-1].metadata

    asyncio.run(main())


@BOTH
def test_a_deadline_that_has_passed_stops_before_the_first_node(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            result = await graph(world, policy, does("B")).run("t", Job(), store, deadline=world.clock.now())

            assert Cancelled("t", CancelReason.DEADLINE, "A") == result

    asyncio.run(main())


def test_a_deadline_is_noticed_between_nodes_that_never_let_the_loop_turn(world: Any) -> None:
    def slow(state: Job) -> Job:
        world.clock.advance(10)
        return does("B")(state)

    compiled = graph(world, CheckpointPolicy.BOUNDARIES, slow)
    result = asyncio.run(compiled.run("t", Job(), deadline=timedelta(seconds=5)))

    assert Cancelled("t", CancelReason.DEADLINE, "C") == result


def test_a_retry_delay_is_interrupted(world: Any) -> None:
    async def main() -> None:
        token = CancellationToken()
        calls = []

        def fails(state: Job) -> Job:
            calls.append(1)
            asyncio.get_running_loop().call_soon(token.cancel)
            raise OSError("down")

        retry = RetryPolicy(max_attempts=5, initial_delay=timedelta(hours=1))
        result = await graph(world, CheckpointPolicy.BOUNDARIES, fails, retry=retry).run("t", Job(), cancellation=token)

        assert Cancelled("t", CancelReason.CANCELLED, "B") == result
        assert [1] == calls

    asyncio.run(main())


def test_a_token_cancelled_by_a_def_node_lets_that_node_commit(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            token = CancellationToken()

            def last(state: Job) -> Job:
                token.cancel()
                return does("B")(state)

            result = await graph(world, CheckpointPolicy.EVERY_NODE, last).run("t", Job(), store, cancellation=token)

            assert Cancelled("t", CancelReason.CANCELLED, "C") == result
            assert {"done": ["A", "B"]} == (await world.log(store, "t"))[-1].frozen_state

    asyncio.run(main())


def test_a_token_cancelled_from_inside_an_async_node_does_not_disturb_what_follows(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            token = CancellationToken()

            async def last(state: Job) -> Job:
                token.cancel()
                return does("B")(state)

            result = await graph(world, CheckpointPolicy.EVERY_NODE, last).run("t", Job(), store, cancellation=token)
            await asyncio.sleep(0)

            assert Cancelled("t", CancelReason.CANCELLED, "C") == result
            assert 0 == asyncio.current_task().cancelling()  # type: ignore[union-attr]

    asyncio.run(main())


def test_a_token_can_be_cancelled_from_another_thread(world: Any) -> None:
    async def main() -> None:
        token = CancellationToken()

        async def waits(state: Job) -> Job:
            threading.Thread(target=token.cancel).start()
            return await forever(state)

        result = await graph(world, CheckpointPolicy.BOUNDARIES, waits).run("t", Job(), cancellation=token)

        assert Cancelled("t", CancelReason.CANCELLED, "B") == result

    asyncio.run(main())


def test_a_node_that_survives_its_interruption_commits(world: Any) -> None:
    async def main() -> None:
        token = CancellationToken()

        async def stubborn(state: Job) -> Job:
            asyncio.get_running_loop().call_soon(token.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                await forever(state)
            return does("B")(state)

        async with world.open() as store:
            result = await graph(world, CheckpointPolicy.EVERY_NODE, stubborn).run(
                "t", Job(), store, cancellation=token
            )

            assert Cancelled("t", CancelReason.CANCELLED, "C") == result
            assert {"done": ["A", "B"]} == (await world.log(store, "t"))[-1].frozen_state
            assert 0 == asyncio.current_task().cancelling()  # type: ignore[union-attr]

    asyncio.run(main())


def test_a_blocking_node_sees_that_the_run_must_stop_and_is_waited_for(world: Any) -> None:
    async def main() -> None:
        token = CancellationToken()
        loop = asyncio.get_running_loop()
        noticed = threading.Event()

        def blocking(state: Job, ctx: Any) -> Job:
            ctx.cancellation.subscribe(noticed.set)
            loop.call_soon_threadsafe(token.cancel)
            assert noticed.wait(30)
            return does("B")(state)

        result = await graph(world, CheckpointPolicy.BOUNDARIES, blocking, blocking=True).run(
            "t", Job(), cancellation=token
        )

        assert Cancelled("t", CancelReason.CANCELLED, "C") == result

    asyncio.run(main())


def test_a_router_that_waits_is_interrupted_although_the_stop_came_before_it(world: Any) -> None:
    async def main() -> None:
        token = CancellationToken()
        loop = asyncio.get_running_loop()
        noticed = threading.Event()

        def blocking(state: Job, ctx: Any) -> Job:
            ctx.cancellation.subscribe(noticed.set)
            loop.call_soon_threadsafe(token.cancel)
            assert noticed.wait(30)
            return does("A")(state)

        async def route(state: Job) -> str:
            await forever(state)
            return "B"

        compiled = (
            new(Job)
            .add_node("A", blocking, blocking=True)
            .add_node("B", does("B"))
            .add_conditional_edge("A", route, ["B"])
            .compile(clock=world.clock)
        )

        assert Cancelled("t", CancelReason.CANCELLED, "A") == await compiled.run("t", Job(), cancellation=token)

    asyncio.run(main())


@BOTH
def test_cancelling_the_task_writes_the_checkpoint_and_raises(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            started = asyncio.Event()

            async def waits(state: Job) -> Job:
                started.set()
                return await forever(state)

            task = asyncio.create_task(graph(world, policy, waits).run("t", Job(), store))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert ("cancelled", "B", "B") == (await world.rows(store, "t"))[-1]
            assert None is await store.live_lease("t")
            resumed = await graph(world, policy, does("B")).resume("t", None, store)
            assert Completed("t", Job(("A", "B", "C"))) == resumed

    asyncio.run(main())


class SlowStore:
    """Lets a test cancel a call in the middle of the n-th write, before or after it is done."""

    def __init__(self, store: Any, at: int, *, before: bool) -> None:
        self._store = store
        self._at = at
        self._before = before
        self.calls = 0
        self.reached = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in ("save", "save_if_latest", "save_under_lease", "acquire_lease"):
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls != self._at:
                return await method(*args, **kwargs)
            if self._before:
                self.reached.set()
                await asyncio.sleep(3600)
            result = await method(*args, **kwargs)
            self.reached.set()
            await asyncio.sleep(3600)
            return result

        return call


@BOTH
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_cancellation_in_the_middle_of_any_write_leaves_the_log_whole(
    world: Any, policy: CheckpointPolicy, at: int, before: bool
) -> None:
    """Whatever had become of the write, it is done once, and the thread can go on to its end."""

    async def main() -> None:
        async with world.open() as store:
            compiled = (
                new(Job)
                .add_node("A", does("A"))
                .add_node("B", does("B"))
                .add_interrupt_boundary("B")
                .add_node("C", does("C"))
                .add_edge("A", "B")
                .add_edge("B", "C")
                .compile(checkpointing=policy, clock=world.clock)
            )
            slow = SlowStore(store, at, before=before)
            task = asyncio.create_task(compiled.run("t", Job(), slow))
            reached = asyncio.create_task(slow.reached.wait())
            await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
            reached.cancel()
            if not task.done():
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

            assert None is await store.live_lease("t")
            commits = [len(checkpoint.frozen_state["done"]) for checkpoint in await world.log(store, "t")]
            assert sorted(commits) == commits, "no row steps back behind a commit"
            result = await compiled.resume("t", None, store)
            if getattr(result, "code", None) is FailureCode.SIGNAL_REQUIRED or isinstance(result, Interrupted):
                result = await compiled.resume("t", HumanSignal.approve("jdoe"), store)
            assert Completed("t", Job(("A", "B", "C"))) == result

    asyncio.run(main())


@BOTH
def test_an_answer_whose_write_is_cancelled_is_kept(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = (
                new(Job)
                .add_node("A", does("A"))
                .add_interrupt_boundary("A")
                .add_node("B", does("B"))
                .add_edge("A", "B")
                .compile(checkpointing=policy, clock=world.clock)
            )
            await compiled.run("t", Job(), store)
            slow = SlowStore(store, 1, before=False)
            task = asyncio.create_task(compiled.resume("t", HumanSignal.approve("jdoe"), slow))
            await slow.reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            last = (await world.log(store, "t"))[-1]
            assert ("cancelled", "B", "jdoe") == (last.state, last.next_node, last.decision.reviewer)
            assert Completed("t", Job(("A", "B"))) == await compiled.resume("t", None, store)

    asyncio.run(main())


class TestCancellationsThatNobodyAskedFor:
    """A node or router that raises CancelledError while nobody cancelled the run has failed."""

    @staticmethod
    async def awaits(state: Job) -> Any:
        inner = asyncio.create_task(asyncio.sleep(3600))
        inner.cancel()
        await inner

    @staticmethod
    def raises(state: Job) -> Any:
        raise asyncio.CancelledError

    @pytest.mark.parametrize("options", [{}, {"retry": RetryPolicy(2)}])
    @pytest.mark.parametrize("name", ["awaits", "raises"])
    def test_a_node(self, world: Any, name: str, options: Any) -> None:
        compiled = graph(world, CheckpointPolicy.BOUNDARIES, getattr(self, name), **options)
        result = asyncio.run(compiled.run("t", Job()))

        assert (FailureCode.NODE_FAILED, "B") == (result.code, result.node)
        assert "NodeCancelledError: something that it awaited was cancelled" == result.detail

    def test_a_blocking_node(self, world: Any) -> None:
        result = asyncio.run(graph(world, CheckpointPolicy.BOUNDARIES, self.raises, blocking=True).run("t", Job()))

        assert (FailureCode.NODE_FAILED, "B") == (result.code, result.node)

    @pytest.mark.parametrize("name", ["awaits", "raises"])
    def test_a_router(self, world: Any, name: str) -> None:
        compiled = (
            new(Job)
            .add_node("A", does("A"))
            .add_node("B", does("B"))
            .add_conditional_edge("A", getattr(self, name), ["B"])
            .compile(clock=world.clock)
        )
        result = asyncio.run(compiled.run("t", Job()))

        assert (FailureCode.ROUTING_FAILED, "A") == (result.code, result.node)

    @pytest.mark.parametrize("name", ["awaits", "raises"])
    @pytest.mark.parametrize("where", ["node", "router"])
    def test_in_a_task_that_has_survived_a_cancellation(self, world: Any, name: str, where: str) -> None:
        """What a shutdown handler runs is no less a run, though its task was cancelled before."""
        bad = getattr(self, name)
        if where == "node":
            compiled = graph(world, CheckpointPolicy.BOUNDARIES, bad)
        else:
            compiled = (
                new(Job)
                .add_node("B", does("B"))
                .add_node("C", does("C"))
                .add_conditional_edge("B", bad, ["C"])
                .compile(clock=world.clock)
            )

        async def handler() -> Any:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return await compiled.run("t", Job())

        async def main() -> Any:
            task = asyncio.create_task(handler())
            await asyncio.sleep(0)
            task.cancel()
            return await task

        result = asyncio.run(main())

        wanted = FailureCode.NODE_FAILED if where == "node" else FailureCode.ROUTING_FAILED
        assert (wanted, "B") == (result.code, result.node)


@BOTH
def test_a_cancellation_that_was_asked_for_before_the_run_began_is_no_failure_of_a_node(
    world: Any, policy: CheckpointPolicy
) -> None:
    async def cancelled_already(store: Any) -> Any:
        task: Any = asyncio.current_task()
        task.cancel()
        return await graph(world, policy, forever).run("t", Job(), store)

    async def main() -> None:
        async with world.open() as store:
            for target in (None, store):
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.create_task(cancelled_already(target))

            assert "failed" not in [row[0] for row in await world.rows(store, "t")]
            assert None is await store.live_lease("t")

    asyncio.run(main())


def test_cancelling_a_task_again_that_has_survived_a_cancellation_cancels_its_run(world: Any) -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def waits(state: Job) -> Job:
            started.set()
            return await forever(state)

        async def handler() -> Any:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return await graph(world, CheckpointPolicy.BOUNDARIES, waits).run("t", Job())

        task = asyncio.create_task(handler())
        await asyncio.sleep(0)
        task.cancel()
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@pytest.mark.parametrize("deadline", ["tomorrow", 5, 1.5])
def test_a_deadline_of_another_type_is_refused_before_anything_runs(world: Any, deadline: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^deadline: "):
        asyncio.run(graph(world, CheckpointPolicy.BOUNDARIES, does("B")).run("t", Job(), deadline=deadline))


def test_a_naive_deadline_is_refused(world: Any) -> None:
    naive = world.clock.now().replace(tzinfo=None)

    with pytest.raises(InvalidInputError, match=r"aware"):
        asyncio.run(graph(world, CheckpointPolicy.BOUNDARIES, does("B")).run("t", Job(), deadline=naive))


@pytest.mark.parametrize("by", ["token", "deadline"])
def test_a_listener_that_fails_keeps_nobody_from_stopping(
    world: Any, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("secret")

    async def main() -> None:
        token = CancellationToken()
        heard: list[str] = []
        begun = asyncio.Event()

        async def node(state: Job, ctx: Any) -> Job:
            for listened in (ctx.cancellation, token):
                listened.subscribe(fail)
                listened.subscribe(lambda: heard.append("told"))
            begun.set()
            return await forever(state)

        compiled = graph(world, CheckpointPolicy.BOUNDARIES, node)
        async with world.open() as store:
            run = compiled.run("t", Job(), store, cancellation=token, deadline=timedelta(seconds=5))
            task = asyncio.create_task(run)
            await begun.wait()
            if by == "token":
                token.cancel()
                token.subscribe(fail)
            else:
                world.clock.advance(5)

            assert Cancelled("t", CancelReason.CANCELLED if by == "token" else CancelReason.DEADLINE, "B") == await task
            assert ["told"] * (2 if by == "token" else 1) == heard

    with caplog.at_level(logging.ERROR, "strata_core.graph"):
        asyncio.run(main())

    assert "a listener to a cancellation failed: ValueError" in caplog.messages
    assert "secret" not in caplog.text
