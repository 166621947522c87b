"""A message that names the trouble names the way out too."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import attrs
import pytest

from strata_core import open_store
from strata_core.errors import GraphValidationError, InvalidInputError, UsageError
from strata_core.graph import CheckpointPolicy, FailureCode, HumanSignal, Interrupted, StateGraph, strict_converter
from strata_core.memory import MemoryBackend
from strata_core.records import CheckpointStatus, GraphIdentity
from strata_core.store import RowStore

pytestmark = pytest.mark.once("the wording of messages")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
APPROVE = HumanSignal.approve("jdoe")
RECOVER_IT = "if its process died, graph.recover() finishes it"
END_IT = "if its process died, end it with graph.end() and run it anew under another ID"


@attrs.frozen
class Order:
    amount: float = 1.0


@attrs.frozen
class NewOrder:
    total: float = 1.0


def keep(state: Any) -> Any:
    return state


def waiting(world: Any, policy: CheckpointPolicy, state_type: Any = Order, second: str = "B", **options: Any) -> Any:
    return (
        new(state_type)
        .add_node("A", keep)
        .add_interrupt_boundary("A")
        .add_node(second, keep)
        .add_edge("A", second)
        .compile(checkpointing=policy, clock=world.clock, **options)
    )


def refusal(world: Any, seeded: Any, signal: Any = APPROVE) -> Any:
    """Return what a resume of a thread whose waiting row was changed comes to."""

    async def main() -> Any:
        async with world.open() as store:
            graph = waiting(world, CheckpointPolicy.BOUNDARIES)
            await graph.run("t", Order(), store)
            await store.save(seeded((await store.load("t")).checkpoint))
            return await graph.resume("t", signal, store)

    return asyncio.run(main())


class TestResume:
    def test_a_thread_that_runs_may_be_dead_and_is_recovered(self, world: Any) -> None:
        result = refusal(world, lambda found: attrs.evolve(found, status=CheckpointStatus.RUNNING))

        assert FailureCode.RUNNING is result.code
        assert f"thread 't' is running; {RECOVER_IT}" == result.message

    def test_one_that_was_resumed_may_be_dead_and_is_ended(self, world: Any) -> None:
        result = refusal(world, lambda found: attrs.evolve(found, resumed_at=world.clock.now()))

        assert FailureCode.ALREADY_RESUMED is result.code
        assert f"thread 't' was resumed already; {END_IT}" == result.message

    def test_a_thread_that_was_answered_tells_whether_it_has_completed(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = waiting(world, CheckpointPolicy.EVERY_NODE)
                await graph.run("t", Order(), store)
                await graph.resume("t", APPROVE, store)
                completed = await graph.resume("t", APPROVE, store)
                decided = (await store.load("t")).checkpoint
                await store.save(attrs.evolve(decided, status=CheckpointStatus.RUNNING, next_node="B"))
                running = await graph.resume("t", APPROVE, store)

                assert "thread 't' was answered already and has completed" == completed.message
                assert f"thread 't' was answered already and is running; {RECOVER_IT}" == running.message

        asyncio.run(main())

    def test_a_thread_of_which_the_policy_keeps_nothing_says_so(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = new(Order).add_node("A", keep).compile()
                await graph.run("t", Order(), store)
                text = "thread 't' has no checkpoint; a run that completes keeps none under CheckpointPolicy.BOUNDARIES"

                assert text == (await graph.resume("t", None, store)).message
                assert text == (await graph.end("t", store)).message
                every = waiting(world, CheckpointPolicy.EVERY_NODE)
                assert "thread 't' has no checkpoint" == (await every.resume("t", None, store)).message

        asyncio.run(main())

    @BOTH
    def test_a_node_that_is_gone_is_kept_or_the_thread_is_ended(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                await waiting(world, policy).run("t", Order(), store)
                result = await waiting(world, policy, second="Renamed").resume("t", APPROVE, store)

                assert FailureCode.UNKNOWN_NODE is result.code
                assert "keep a node of that name for the threads that wait, or end the thread" in result.message

        asyncio.run(main())

    @pytest.mark.parametrize(
        ("before", "after", "hint"),
        [
            ({}, {}, "give compile an identity and upcast=..."),
            ({}, {"upcast": lambda content, version: content}, "must both have an identity"),
            ("1", {"upcast": lambda content, version: content}, "the thread is of this version, '1'"),
            ("0", {"upcast": lambda content, version: content}, "upcast from version '0' must return a state of"),
        ],
    )
    def test_a_state_that_does_not_fit_leads_to_upcast(self, world: Any, before: Any, after: Any, hint: str) -> None:
        async def main() -> None:
            async with world.open() as store:
                policy = CheckpointPolicy.BOUNDARIES
                then: Any = {"identity": GraphIdentity("order", before)} if before else {}
                now: Any = {"identity": GraphIdentity("order", "1"), **after} if before else after
                await waiting(world, policy, **then).run("t", Order(), store)
                result = await waiting(world, policy, NewOrder, **now).resume("t", APPROVE, store)

                assert "failed to rehydrate state for thread 't'" == result.message
                assert result.detail.startswith("state.amount: is no field of NewOrder; ")
                assert hint in result.detail

        asyncio.run(main())

    def test_an_override_with_a_typing_error_names_the_field(self, world: Any) -> None:
        result = refusal(world, keep, APPROVE.with_override("amuont", 2.0))

        assert "state.amuont: is no field of Order (did you mean 'amount'?)" == result.detail

    def test_an_override_that_is_like_no_field_gets_no_guess(self, world: Any) -> None:
        result = refusal(world, keep, APPROVE.with_override("zzz", 2.0))

        assert "state.zzz: is no field of Order" == result.detail


class TestCompile:
    def test_an_edge_with_a_typing_error_names_the_node(self) -> None:
        graph = new(dict).add_node("Prepare", keep).add_node("Execute", keep).add_edge("Prepare", "Exceute")

        with pytest.raises(
            GraphValidationError, match=r"names 'Exceute', which is no node \(did you mean 'Execute'\?\)"
        ):
            graph.compile()

    def test_targets_that_are_one_text_are_refused(self) -> None:
        graph = (
            new(dict).add_node("A", keep).add_node("Bee", keep).add_conditional_edge("A", lambda state: "Bee", "Bee")
        )

        with pytest.raises(
            GraphValidationError, match=r"from 'A' are a list, such as \['A', 'B'\], not a str"
        ) as caught:
            graph.compile()
        assert 1 == len(caught.value.problems)

    @pytest.mark.parametrize("wrong", ["every_node", None, True])
    def test_a_policy_that_is_none_names_the_members(self, wrong: object) -> None:
        graph = new(dict).add_node("A", keep)

        with pytest.raises(
            InvalidInputError, match=r"must be CheckpointPolicy\.BOUNDARIES or CheckpointPolicy\.EVERY_NODE, not"
        ):
            graph.compile(checkpointing=wrong)

    def test_a_type_without_a_json_form_leads_to_the_strict_converter(self) -> None:
        @attrs.frozen
        class Price:
            value: complex

        with pytest.raises(GraphValidationError, match=r"complex has no JSON form .* strict_converter\(\) with hooks"):
            new(Price).add_node("A", keep).compile()

        converter = strict_converter()
        converter.register_unstructure_hook(complex, lambda value: [value.real, value.imag])
        converter.register_structure_hook(complex, lambda value, _: complex(*value))
        assert repr(new(Price, converter=converter).add_node("A", keep).compile()).startswith("<CompiledGraph")


class TestStores:
    def test_a_path_in_place_of_a_store_leads_to_open_store(self, world: Any) -> None:
        graph = waiting(world, CheckpointPolicy.BOUNDARIES)

        with pytest.raises(InvalidInputError, match=r"^store: .*, not str; open it with 'async with open_store"):
            asyncio.run(graph.run("t", Order(), "orders.db"))
        with pytest.raises(InvalidInputError, match=r"^store: .*, not str; pass open_store\(\.\.\.\) itself"):
            graph.run_sync("t", Order(), "orders.db")

    def test_a_store_that_is_entered_already_leads_to_the_right_argument(self, world: Any) -> None:
        graph = waiting(world, CheckpointPolicy.BOUNDARIES)
        said: list[str] = []

        def call(store: Any) -> None:
            with pytest.raises(UsageError) as caught:
                graph.run_sync("t", Order(), store)
            said.append(str(caught.value))

        async def main() -> None:
            async with RowStore(MemoryBackend()) as store:
                thread = threading.Thread(target=call, args=(store,))
                thread.start()
                await asyncio.to_thread(thread.join)

        asyncio.run(main())

        assert ["the store is open already; pass open_store(...) itself to run_sync, not entered before"] == said
        assert isinstance(graph.run_sync("t", Order(), open_store("memory://")), Interrupted)

    def test_open_store_is_neither_a_plain_context_manager_nor_awaitable(self) -> None:
        async def main() -> None:
            opened: Any = open_store("memory://")
            with (
                pytest.raises(
                    UsageError, match=r"opened by 'async with open_store\(\.\.\.\) as store:', not by 'with'"
                ),
                opened,
            ):
                pass
            with pytest.raises(UsageError, match=r"opened by 'async with .*, not by 'await'"):
                await opened
            async with opened as store:
                assert None is await store.load("t")

        asyncio.run(main())
