"""How nodes are called, tried again, replaced, and kept from changing what is committed."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import threading
from datetime import timedelta
from typing import Any

import attrs
import pytest

from strata_core.errors import InvalidInputError
from strata_core.graph import CheckpointPolicy, Completed, Failed, FailureCode, HumanSignal, RetryPolicy, StateGraph

pytestmark = pytest.mark.once("how nodes are called and tried again, between two calls of the store")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))


@attrs.frozen
class Count:
    n: int = 0


@attrs.define
class Loose:
    items: list[int] = attrs.Factory(list)
    inner: dict[str, Any] = attrs.Factory(dict)


@dataclasses.dataclass
class LooseData:
    items: list[int] = dataclasses.field(default_factory=list)
    inner: dict[str, Any] = dataclasses.field(default_factory=dict)


def one(handler: Any, **options: Any) -> Any:
    return new(Count).add_node("A", handler, **options).compile()


def more(state: Count) -> Count:
    return Count(state.n + 1)


async def more_async(state: Count) -> Count:
    await asyncio.sleep(0)
    return Count(state.n + 1)


class AsyncCallable:
    async def __call__(self, state: Count) -> Count:
        return Count(state.n + 1)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Unhashable(str):
    __hash__ = None  # type: ignore[assignment]


class TestHandlers:
    @pytest.mark.parametrize(
        "handler",
        [
            more,
            more_async,
            lambda state: more_async(state),  # noqa: PLW0108  # a def that returns an awaitable  # a def that returns an awaitable  # a def that returns an awaitable
            functools.partial(lambda by, state: Count(state.n + by), 1),
            functools.partial(more_async),
            AsyncCallable(),
            lambda state, ctx: Count(state.n + ctx.attempt),
            lambda state, ctx=None: Count(state.n + 1 if ctx is None else 99),
            lambda *args: Count(args[0].n + len(args)),
        ],
    )
    def test_every_kind_of_function_can_be_a_handler(self, handler: Any) -> None:
        assert Completed("t", Count(1)) == asyncio.run(one(handler).run("t", Count()))

    def test_a_blocking_handler_runs_in_a_thread(self) -> None:
        threads = []

        def handler(state: Count) -> Count:
            threads.append(threading.current_thread())
            return more(state)

        asyncio.run(one(handler).run("t", Count()))
        asyncio.run(one(handler, blocking=True).run("t", Count()))

        assert threads[0] is threading.main_thread()
        assert threads[1] is not threading.main_thread()

    def test_a_blocking_handler_that_raises_stop_iteration_has_failed(self) -> None:
        def handler(state: Count) -> Count:
            raise StopIteration

        result = asyncio.run(one(handler, blocking=True).run("t", Count()))

        assert FailureCode.NODE_FAILED is result.code

    @pytest.mark.parametrize("value", [None, {"n": 1}, "Count", Count])
    def test_what_is_no_state_is_refused(self, value: Any) -> None:
        result = asyncio.run(one(lambda state: value).run("t", Count()))

        assert FailureCode.INVALID_STATE is result.code
        assert "a node returns the next state" in result.detail

    def test_an_error_that_cannot_be_printed_is_still_a_failure(self) -> None:
        class BadError(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        def handler(state: Count) -> Count:
            raise BadError

        result = asyncio.run(one(handler).run("t", Count()))

        assert "BadError: <its text cannot be read>" == result.detail
        assert isinstance(result.error, BadError)

    @BOTH
    def test_a_failure_is_saved_whatever_its_text_contains(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            def handler(state: Count) -> Count:
                raise ValueError("\0\ud800" + "é" * 5000)

            async with world.open() as store:
                await new(Count).add_node("A", handler).compile(checkpointing=policy).run("t", Count(), store)
                text = (await world.log(store, "t"))[-1].metadata["strata.error"]

                assert text.startswith("ValueError: \\x00\\ud800éé")
                assert 1024 >= len(text.encode()) > 1018

        asyncio.run(main())


class TestRetries:
    def test_delays_grow_up_to_their_limit(self) -> None:
        policy = RetryPolicy(9, initial_delay=timedelta(seconds=1), multiplier=3, max_delay=timedelta(seconds=10))

        assert [1.0, 3.0, 9.0, 10.0] == [policy.delay(n) for n in (1, 2, 3, 4)]
        assert 10.0 == policy.delay(100_000)

    def test_jitter_only_shortens(self) -> None:
        policy = RetryPolicy(2, initial_delay=timedelta(seconds=8), jitter=0.25)
        delays = [policy.delay(1) for _ in range(200)]

        assert 6.0 <= min(delays) < max(delays) <= 8.0

    @pytest.mark.parametrize(
        "wrong",
        [
            {"max_attempts": 0},
            {"max_attempts": True},
            {"initial_delay": 1},
            {"initial_delay": timedelta(-1)},
            {"multiplier": 0.5},
            {"jitter": 1.5},
            {"retry_on": "OSError"},
            {"retry_on": (OSError, 3)},
            {"retry_on": KeyboardInterrupt},
        ],
    )
    def test_a_wrong_policy_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidInputError):
            RetryPolicy(**wrong)

    def test_attempts_wait_on_the_clock_and_are_counted(self, world: Any) -> None:
        async def main() -> None:
            attempts = []

            def handler(state: Count, ctx: Any) -> Count:
                attempts.append((ctx.attempt, world.clock.monotonic()))
                if ctx.attempt < 3:
                    raise OSError("down")
                return more(state)

            retry = RetryPolicy(max_attempts=3, initial_delay=timedelta(seconds=1))
            compiled = new(Count).add_node("A", handler, retry=retry).compile(clock=world.clock)
            task = asyncio.create_task(compiled.run("t", Count()))
            for _ in range(3):
                await asyncio.sleep(0)
                world.clock.advance(1)
                await asyncio.sleep(0)

            assert Completed("t", Count(1)) == await task
            assert [(1, 0.0), (2, 1.0), (3, 3.0)] == attempts

        asyncio.run(main())

    @pytest.mark.parametrize(
        ("retry_on", "calls"), [(OSError, 3), ((OSError, KeyError), 3), (ValueError, 1), (lambda error: False, 1)]
    )
    def test_only_errors_worth_it_are_tried_again(self, retry_on: Any, calls: int) -> None:
        seen = []

        def handler(state: Count) -> Count:
            seen.append(1)
            raise OSError("down")

        result = asyncio.run(one(handler, retry=RetryPolicy(3, retry_on=retry_on)).run("t", Count()))

        assert calls == len(seen)
        assert FailureCode.NODE_FAILED is result.code

    @BOTH
    def test_a_fallback_takes_over_and_goes_on_its_own_way(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            def fails(state: Count) -> Count:
                raise OSError("down")

            compiled = (
                new(Count)
                .add_node("First", more)
                .add_node("Pay", fails, retry=RetryPolicy(2), fallback="Invoice")
                .add_node("Ship", lambda state: Count(-1))
                .add_node("Invoice", lambda state: Count(state.n + 10))
                .add_node("Wait", more)
                .add_edge("First", "Pay")
                .add_edge("Pay", "Ship")
                .add_edge("Invoice", "Wait")
                .compile(checkpointing=policy, clock=world.clock)
            )
            async with world.open() as store:
                assert Completed("t", Count(12)) == await compiled.run("t", Count(), store)
                expected = [
                    ("running", None, "First"),
                    ("running", "First", "Pay"),
                    ("running", "Invoice", "Wait"),
                    ("completed", "Wait", None),
                ]
                rows = await world.rows(store, "t")
                assert (expected if policy is CheckpointPolicy.EVERY_NODE else []) == rows

        asyncio.run(main())


class TestCommitRule:
    """A node that changes things in place and fails has changed nothing."""

    @BOTH
    @pytest.mark.parametrize("stored", [True, False])
    @pytest.mark.parametrize("kind", [dict, Loose, LooseData])
    def test_neither_for_its_retry_nor_its_fallback_nor_the_checkpoint(
        self, world: Any, policy: CheckpointPolicy, kind: Any, stored: bool
    ) -> None:
        seen = []

        def get(state: Any, name: str) -> Any:
            return state[name] if kind is dict else getattr(state, name)

        def spoil(state: Any) -> Any:
            seen.append((list(get(state, "items")), dict(get(state, "inner"))))
            get(state, "items").append(9)
            get(state, "inner")["deep"] = {"x": 1}
            raise OSError("down")

        def build(last: Any) -> Any:
            return (
                new(kind)
                .add_node("A", lambda state: state)
                .add_node("B", spoil, retry=RetryPolicy(2), fallback="F")
                .add_node("F", last)
                .add_edge("A", "B")
                .compile(checkpointing=policy, clock=world.clock)
            )

        async def main() -> None:
            async with world.open() as store:
                given = kind(items=[1], inner={"deep": {}})
                used = store if stored else None
                result = await build(lambda state: state).run("t", given, used)
                failed = await build(spoil).run("u", given, used)

                assert kind(items=[1], inner={"deep": {}}) == given
                assert Completed("t", given) == result
                assert isinstance(failed, Failed)
                assert [([1], {"deep": {}})] * 5 == seen
                if stored:
                    last = (await world.log(store, "u"))[-1]
                    assert {"items": [1], "inner": {"deep": {}}} == last.frozen_state

        asyncio.run(main())

    def test_a_router_cannot_change_the_state(self) -> None:
        def route(state: dict[str, Any]) -> str:
            state["n"] = 99
            return "B"

        compiled = (
            new(dict)
            .add_node("A", lambda state: state)
            .add_node("B", lambda state: state)
            .add_conditional_edge("A", route, ["B"])
            .compile()
        )

        assert Completed("t", {"n": 1}) == asyncio.run(compiled.run("t", {"n": 1}))

    def test_an_immutable_state_is_never_copied(self) -> None:
        state = Count(3)
        seen = []

        def look(given: Count) -> Count:
            seen.append(given)
            return given

        asyncio.run(one(look).run("t", state))

        assert state is seen[0]


class TestRouting:
    @BOTH
    @pytest.mark.parametrize("is_async", [True, False])
    def test_a_router_decides(self, world: Any, policy: CheckpointPolicy, is_async: bool) -> None:
        async def later(state: Count, ctx: Any) -> str:
            await asyncio.sleep(0)
            return "Big" if state.n > 5 else "Small"

        compiled = (
            new(Count)
            .add_node("A", more)
            .add_node("Big", lambda state: Count(100))
            .add_node("Small", lambda state: Count(-100))
            .add_conditional_edge(
                "A", later if is_async else lambda state: "Big" if state.n > 5 else "Small", ["Big", "Small"]
            )
            .compile(checkpointing=policy, clock=world.clock)
        )

        assert Completed("t", Count(100)) == asyncio.run(compiled.run("t", Count(5)))
        assert Completed("t", Count(-100)) == asyncio.run(compiled.run("t", Count(4)))

    @BOTH
    @pytest.mark.parametrize(
        "router",
        [
            lambda state: "Elsewhere",
            lambda state: None,
            lambda state: 1 / 0,
            lambda state: 10**5000,
            lambda state: Unprintable(),
            lambda state: Unhashable("B"),
        ],
        ids=["unknown", "nothing", "raises", "long", "unprintable", "unhashable"],
    )
    def test_a_router_that_names_no_target_fails_the_step(
        self, world: Any, policy: CheckpointPolicy, router: Any
    ) -> None:
        async def main() -> None:
            async with world.open() as store:

                def build(router: Any) -> Any:
                    return (
                        new(Count)
                        .add_node("A", more)
                        .add_node("B", more)
                        .add_conditional_edge("A", router, ["B"])
                        .compile(checkpointing=policy, clock=world.clock)
                    )

                result = await build(router).run("t", Count(), store)

                assert (FailureCode.ROUTING_FAILED, "A") == (result.code, result.node)
                last = (await world.log(store, "t"))[-1]
                assert ("failed", "A", {"n": 0}) == (last.state, last.next_node, last.frozen_state)
                resumed = await build(lambda state: "B").resume("t", None, store)
                assert Completed("t", Count(2)) == resumed

        asyncio.run(main())

    def test_a_loop_runs_until_its_router_leaves_it(self) -> None:
        compiled = (
            new(Count)
            .add_node("A", more)
            .add_node("End", lambda state: state)
            .add_conditional_edge("A", lambda state: "A" if state.n < 500 else "End", ["A", "End"])
            .compile()
        )

        assert Completed("t", Count(500)) == asyncio.run(compiled.run("t", Count()))


class TestContext:
    @BOTH
    def test_the_key_of_a_visit_survives_attempts_failure_and_resume_and_differs_between_visits(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            keys: list[list[str]] = [[]]
            broken = [True]

            def pay(state: Count, ctx: Any) -> Count:
                keys[-1].append(ctx.idempotency_key)
                if state.n == 1 and broken[0]:
                    raise OSError("down")
                keys.append([])
                return more(state)

            compiled = (
                new(Count)
                .add_node("Pay", pay, retry=RetryPolicy(2))
                .add_node("End", lambda state: state)
                .add_conditional_edge("Pay", lambda state: "Pay" if state.n < 3 else "End", ["Pay", "End"])
                .compile(checkpointing=policy, clock=world.clock)
            )
            async with world.open() as store:
                await compiled.run("t", Count(), store)
                await compiled.resume("t", None, store)
                broken[0] = False
                assert Completed("t", Count(3)) == await compiled.resume("t", None, store)
                await compiled.run("other", Count(2), store)

                visits = [set(visit) for visit in keys if visit]
                assert [1, 5, 1, 1] == [len(visit) for visit in keys if visit]
                assert [1, 1, 1, 1] == [len(visit) for visit in visits]
                assert 4 == len(set.union(*visits))

        asyncio.run(main())

    def test_the_rows_that_cut_a_visit_short_and_take_it_up_again_carry_it_and_a_commit_ends_it(
        self, world: Any
    ) -> None:
        async def main() -> None:
            broken = [True]

            def pay(state: Count, ctx: Any) -> Count:
                if broken[0]:
                    raise OSError("down")
                return more(state)

            compiled = (
                new(Count)
                .add_node("Pay", pay)
                .add_node("End", more)
                .add_edge("Pay", "End")
                .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
            )
            async with world.open() as store:
                await compiled.run("t", Count(), store)
                first = (await store.load("t", at=0)).revision.write_id
                broken[0] = False
                await compiled.resume("t", None, store)

                visits = [checkpoint.metadata.get("strata.visit") for checkpoint in await world.log(store, "t")]
                visit = f"{first.hex()}.0"
                assert [None, visit, visit, None, None] == visits

        asyncio.run(main())

    def test_graphs_that_show_no_context_store_no_visit(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                await one(lambda state: 1 / 0).run("t", Count(), store)

                assert ["strata.error"] == list((await world.log(store, "t"))[-1].metadata)

        asyncio.run(main())

    @BOTH
    def test_every_node_after_a_boundary_sees_the_decision_also_when_a_failure_is_resumed(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        async def main() -> None:
            seen = []
            broken = [True]

            def look(state: Count, ctx: Any) -> Count:
                seen.append((ctx.node, ctx.decision and ctx.decision.reviewer, dict(ctx.metadata)))
                if ctx.decision is not None:
                    ctx.decision.overrides["n"] = 77
                if ctx.node == "C" and broken.pop():
                    broken.append(False)
                    raise OSError("down")
                return state

            compiled = (
                new(Count)
                .add_node("A", look)
                .add_interrupt_boundary("A", on_reject="A")
                .add_node("B", look)
                .add_node("C", look)
                .add_edge("A", "B")
                .add_edge("B", "C")
                .compile(checkpointing=policy, clock=world.clock)
            )
            async with world.open() as store:
                await compiled.run("t", Count(), store, metadata={"tenant": "acme"})
                await compiled.resume("t", HumanSignal.approve("jdoe").with_override("n", 5), store)
                failed = (await world.log(store, "t"))[-1]
                assert ("failed", {"n": 5}) == (failed.state, failed.decision.overrides)
                correction = HumanSignal.reject("somebody else").with_override("n", 6)
                result = await compiled.resume("t", correction, store)

                assert Completed("t", Count(6)) == result
                tenant = {"tenant": "acme"}
                assert [
                    ("A", None, tenant),
                    ("B", "jdoe", tenant),
                    ("C", "jdoe", tenant),
                    ("C", "jdoe", tenant),
                ] == seen
                last = (await world.log(store, "t"))[-1]
                assert ("jdoe", {"n": 5}) == (last.decision.reviewer, last.decision.overrides)

        asyncio.run(main())
