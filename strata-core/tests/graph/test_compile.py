"""What does not compile, and how that is told: everything at once."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from datetime import timedelta
from fractions import Fraction
from typing import Any

import attrs
import pytest

from strata_core.errors import GraphValidationError, InvalidInputError
from strata_core.graph import Completed, ProblemCode, RetryPolicy, StateGraph
from strata_core.records import GraphIdentity

pytestmark = pytest.mark.once("it compiles graphs and opens no store")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""


def keep(state: Any) -> Any:
    return state


def problems(graph: Any) -> list[tuple[str, str | None]]:
    with pytest.raises(GraphValidationError) as caught:
        graph.compile()
    return [(problem.code, problem.node) for problem in caught.value.problems]


def test_an_empty_graph_has_no_nodes() -> None:
    assert [(ProblemCode.NO_NODES, None)] == problems(new(dict))


def test_every_problem_is_reported_at_once() -> None:
    graph = (
        new(dict)
        .add_node("A", keep, fallback="Nowhere")
        .add_node("A", keep)
        .add_node("", keep)
        .add_node("B", "not a function")
        .add_edge("A", "Missing")
        .add_interrupt_boundary("A", on_reject="Gone")
        .add_node("Island", keep)
        .set_entry("A")
    )

    found = problems(graph)

    assert {
        (ProblemCode.DUPLICATE_NODE, "A"),
        (ProblemCode.INVALID_NAME, None),
        (ProblemCode.INVALID_HANDLER, "B"),
        (ProblemCode.DANGLING_EDGE, "A"),
        (ProblemCode.UNREACHABLE_NODE, "Island"),
        (ProblemCode.UNREACHABLE_NODE, "B"),
        (ProblemCode.UNREACHABLE_NODE, ""),
    } == set(found)
    assert 3 == found.count((ProblemCode.DANGLING_EDGE, "A"))


def test_the_codes_are_stable_texts_and_stand_in_the_message() -> None:
    with pytest.raises(GraphValidationError, match=r"STRATA_ERR_DANGLING_EDGE: the edge from 'A' to 'B'"):
        new(dict).add_node("A", keep).add_edge("A", "B").compile()


@pytest.mark.parametrize("name", [None, 3, "", "a\0b", "\ud800", "x" * 513, ["unhashable"]])
def test_a_name_that_is_none_is_a_problem(name: Any) -> None:
    assert (ProblemCode.INVALID_NAME, None) in problems(new(dict).add_node(name, keep))


@pytest.mark.parametrize(
    "handler",
    [None, 3, lambda: None, lambda a, b, c: None, lambda state, *, needed: state, (lambda state: (yield))],
)
def test_what_cannot_be_called_with_a_state_is_a_problem(handler: Any) -> None:
    assert [(ProblemCode.INVALID_HANDLER, "A")] == problems(new(dict).add_node("A", handler))


def test_an_async_handler_cannot_be_blocking() -> None:
    async def handler(state: Any) -> Any:
        return state

    assert [(ProblemCode.INVALID_HANDLER, "A")] == problems(new(dict).add_node("A", handler, blocking=True))


def test_a_retry_that_is_none_is_a_problem() -> None:
    graph = new(dict).add_node("A", keep, retry=3)

    assert [(ProblemCode.INVALID_RETRY, "A")] == problems(graph)


def test_two_ways_on_are_a_problem() -> None:
    graph = (
        new(dict)
        .add_node("A", keep)
        .add_node("B", keep)
        .add_edge("A", "B")
        .add_conditional_edge("A", lambda state: "B", ["B"])
    )

    assert [(ProblemCode.CONFLICTING_EDGES, "A")] == problems(graph)


def test_two_waits_on_one_node_are_a_problem() -> None:
    graph = new(dict).add_node("A", keep).add_interrupt_boundary("A").add_interrupt_boundary("A")

    assert [(ProblemCode.DUPLICATE_WAIT, "A")] == problems(graph)


def test_a_conditional_edge_needs_targets_and_a_router() -> None:
    graph = new(dict).add_node("A", keep).add_conditional_edge("A", None, [])

    assert [
        (ProblemCode.INVALID_HANDLER, "A"),
        (ProblemCode.NO_TARGETS, "A"),
        (ProblemCode.NO_TERMINAL, "A"),
    ] == problems(graph)


def test_a_node_from_which_every_path_loops_back_is_a_problem() -> None:
    graph = (
        new(dict)
        .add_node("A", keep)
        .add_node("B", keep)
        .add_node("C", keep)
        .add_node("End", keep)
        .add_conditional_edge("A", lambda state: "B", ["B", "End"])
        .add_edge("B", "C")
        .add_edge("C", "B")
    )

    assert [(ProblemCode.NO_TERMINAL, "B"), (ProblemCode.NO_TERMINAL, "C")] == problems(graph)


def test_a_way_out_by_a_reject_route_or_a_fallback_counts() -> None:
    graph = (
        new(dict)
        .add_node("A", keep)
        .add_node("B", keep)
        .add_node("Out", keep)
        .add_edge("A", "B")
        .add_edge("B", "A")
        .add_interrupt_boundary("B", on_reject="Out")
    )

    assert "<CompiledGraph 3 nodes, boundaries>" == repr(graph.compile())


@pytest.mark.parametrize("pairs", [[("A", "A")], [("A", "B"), ("B", "A")]])
def test_fallbacks_must_not_go_in_circles(pairs: list[tuple[str, str]]) -> None:
    graph = new(dict)
    for name, fallback in pairs:
        graph.add_node(name, keep, fallback=fallback)

    assert {ProblemCode.FALLBACK_CYCLE} == {code for code, _ in problems(graph)}


def test_the_entry_is_the_first_node_unless_it_is_set() -> None:
    def named(name: str) -> Any:
        return lambda state: {"path": state["path"] + name}

    graph = new(dict).add_node("A", named("A")).add_node("B", named("B")).add_edge("B", "A")

    assert [(ProblemCode.UNREACHABLE_NODE, "B")] == problems(graph)
    result = asyncio.run(graph.set_entry("B").compile().run("t", {"path": ""}))
    assert Completed("t", {"path": "BA"}) == result


@attrs.frozen
class Line:
    price: Fraction


@attrs.frozen
class Basket:
    lines: tuple[Line, ...]
    seen: set[complex] = attrs.Factory(set)


def test_a_state_type_without_a_json_form_is_named_by_its_path() -> None:
    with pytest.raises(GraphValidationError) as caught:
        new(Basket).add_node("A", keep).compile()

    assert ["state.lines[].price", "state.seen[]"] == [
        problem.text.partition(":")[0] for problem in caught.value.problems
    ]
    assert {ProblemCode.UNSUPPORTED_TYPE} == {problem.code for problem in caught.value.problems}


@dataclasses.dataclass
class Derived:
    a: int = 0
    b: int = dataclasses.field(init=False, default=0)


@attrs.define
class DerivedToo:
    a: int = 0
    b: int = attrs.field(init=False, default=0)


@dataclasses.dataclass
class Seeded:
    a: int
    seed: dataclasses.InitVar[int] = 0


@attrs.define
class Parsed:
    a: int

    def __init__(self, text: str) -> None:
        self.a = int(text)


@attrs.define
class Demanding:
    a: int

    def __init__(self, a: int, more: str) -> None:
        self.a = a + len(more)


@attrs.define
class Looking:
    a: int = attrs.field(converter=attrs.Converter(lambda value, self: value, takes_self=True))  # type: ignore[misc]


@attrs.define
class Outer:
    inner: list[Derived]


@pytest.mark.parametrize(
    ("state_type", "text"),
    [
        (Derived, "state: the field 'b' of .*Derived has init=False"),
        (DerivedToo, "state: the field 'b' of .*DerivedToo has init=False"),
        (Seeded, "state: 'seed' of .*Seeded is an InitVar"),
        (Parsed, "state: the constructor of .*Parsed does not take just its fields"),
        (Demanding, "state: the constructor of .*Demanding does not take just its fields"),
        (Looking, "state: the converter of field 'a' of .*Looking takes more than the value"),
        (Outer, r"state\.inner\[\]: the field 'b' of .*Derived has init=False"),
    ],
)
def test_a_class_that_its_constructor_could_not_build_again_from_its_fields_is_refused(
    state_type: Any, text: str
) -> None:
    with pytest.raises(GraphValidationError) as caught:
        new(state_type).add_node("A", keep).compile()

    (problem,) = caught.value.problems
    assert ProblemCode.UNSUPPORTED_TYPE is problem.code
    assert re.match(text, problem.text)


@pytest.mark.parametrize("state_type", [int, list, str, None, "Order", list[int], Fraction])
def test_a_state_type_that_is_no_json_object_is_refused(state_type: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^state_type: "):
        new(state_type)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("identity", "orders"),
        ("identity", GraphIdentity("", "1")),
        ("identity", GraphIdentity("orders", 1)),  # type: ignore[arg-type]
        ("checkpointing", "every_node"),
        ("upcast", 3),
        ("lease_ttl", timedelta(0)),
        ("lease_ttl", 30),
        ("owner", ""),
        ("owner", "\0"),
    ],
)
def test_a_wrong_argument_of_compile_is_refused(argument: str, value: Any) -> None:
    graph = new(dict).add_node("A", keep)

    with pytest.raises(InvalidInputError) as caught:
        graph.compile(**{argument: value})

    assert caught.value.argument.startswith(argument)


def test_a_compiled_graph_does_not_change_with_its_builder_or_by_hand() -> None:
    builder = new(dict).add_node("A", keep, retry=RetryPolicy(2))
    compiled = builder.compile()
    builder.add_node("B", lambda state: {"b": 1}).add_edge("A", "B")

    assert Completed("t", {}) == asyncio.run(compiled.run("t", {}))
    assert Completed("t", {"b": 1}) == asyncio.run(builder.compile().run("t", {}))
    with pytest.raises(AttributeError, match=r"cannot be changed"):
        compiled._plan = None


def test_one_graph_runs_in_many_tasks_at_once() -> None:
    async def slow(state: dict[str, int]) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"n": state["n"] + 1}

    async def main() -> None:
        compiled = new(dict).add_node("A", slow).add_node("B", slow).add_edge("A", "B").compile()
        results = await asyncio.gather(*(compiled.run(f"t{n}", {"n": n}) for n in range(100)))

        assert [n + 2 for n in range(100)] == [result.state["n"] for result in results]

    asyncio.run(main())


def test_a_circle_of_many_fallbacks_is_told_briefly() -> None:
    """Each of its nodes is told, with the first few that follow it: not each with all."""
    graph: Any = StateGraph(dict)
    for number in range(2_000):
        graph.add_node(f"n{number}", keep, fallback=f"n{(number + 1) % 2_000}")
    with pytest.raises(GraphValidationError) as caught:
        graph.compile()
    told = [problem.text for problem in caught.value.problems if problem.code == "STRATA_ERR_FALLBACK_CYCLE"]

    assert 2_000 == len(told)
    assert told[1].endswith("lead back to it: n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> n8 -> n9 -> n10 -> ... -> n1")
