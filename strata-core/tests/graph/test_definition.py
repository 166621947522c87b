"""Definitions: what a graph tells about itself, and that reading it finds what compiling finds."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import timedelta
from importlib import resources
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from definition_support import Definition, a_definition, broken, builder, compiled, graphs, keep
from jsonschema import Draft202012Validator

from strata_core.errors import GraphValidationError, UsageError
from strata_core.graph import CheckpointPolicy, GraphProblem, ProblemCode, RetryPolicy, StateGraph
from strata_core.graph.definitions import check_definition, load_definition, to_mermaid
from strata_core.records import GraphIdentity

pytestmark = pytest.mark.once("it compiles graphs and opens no store")

SCHEMA = Draft202012Validator(
    json.loads((resources.files("strata_core") / "_schema" / "graph.schema.json").read_text(encoding="utf-8"))
)

SEEDS = range(100_000 if os.environ.get("STRATA_SOAK") == "1" else 150)
"""The same definitions in every run, and many more in a soak."""
new: Any = StateGraph


def codes(problems: list[GraphProblem]) -> list[tuple[ProblemCode, tuple[str, ...], str | None]]:
    return [(problem.code, problem.path, problem.node) for problem in problems]


@contextmanager
def refused(code: ProblemCode, text: str) -> Iterator[None]:
    with pytest.raises(GraphValidationError) as caught:
        yield

    (problem,) = caught.value.problems
    assert code is problem.code
    assert text in problem.text


@pytest.fixture
def plain() -> Definition:
    definition: Definition = new(dict).add_node("A", keep).add_node("B", keep).add_edge("A", "B").compile().definition()
    return definition


class TestWritten:
    def test_a_definition_tells_nodes_ways_waits_and_settings(self) -> None:
        graph = (
            new(dict)
            .add_node("A", keep, retry=RetryPolicy(3, timedelta(seconds=1.5), retry_on=ConnectionError), fallback="B")
            .add_conditional_edge("A", keep, ["B", "C"])
            .add_interrupt_boundary("A", on_reject="C", timeout=timedelta(days=1), on_timeout="B")
            .add_node("B", keep, blocking=True)
            .add_timer("B", keep)
            .add_edge("B", "C")
            .add_node("C", keep)
            .add_wait_for_event("C", "paid", timeout=timedelta(seconds=1))
            .compile(
                identity=GraphIdentity("orders", "2"),
                checkpointing=CheckpointPolicy.EVERY_NODE,
                on_resume=lambda state: None,
            )
        )

        assert {
            "schema_version": "1.0.0",
            "identity": {"id": "orders", "version": "2"},
            "checkpointing": "every_node",
            "on_resume": True,
            "entry": "A",
            "nodes": [
                {
                    "name": "A",
                    "kind": "node",
                    "retry": {"max_attempts": 3, "initial_delay": 1.5, "retry_on": ["ConnectionError"]},
                    "fallback": "B",
                },
                {"name": "B", "kind": "node", "blocking": True},
                {"name": "C", "kind": "node"},
            ],
            "edges": [{"source": "B", "target": "C"}],
            "conditional_edges": [{"source": "A", "targets": ["B", "C"]}],
            "waits": [
                {"node": "A", "kind": "person", "timeout": 86400, "on_timeout": "B", "on_reject": "C"},
                {"node": "B", "kind": "timer", "delay": "computed"},
                {"node": "C", "kind": "event", "event_type": "paid", "timeout": 1},
            ],
        } == graph.definition()

    def test_a_child_stands_in_it_as_it_defines_itself(self) -> None:
        child = new(dict).add_node("X", keep).compile(identity=GraphIdentity("child", "1"))
        graph = (
            new(dict)
            .add_subgraph("Sub", child, enter=keep, leave=keep)
            .add_edge("Sub", "Group")
            .add_parallel_group("Group", {"b": child, "a": keep}, keep, blocking={"a"}, max_concurrency=2)
            .add_edge("Group", "Map")
            .add_map("Map", child, keep, keep, max_concurrency=50)
            .compile()
        )

        assert [
            {"name": "Sub", "kind": "subgraph", "child": child.definition()},
            {
                "name": "Group",
                "kind": "group",
                "branches": [{"name": "b", "child": child.definition()}, {"name": "a", "blocking": True}],
                "max_concurrency": 2,
            },
            {"name": "Map", "kind": "map", "child": child.definition(), "max_concurrency": 50},
        ] == graph.definition()["nodes"]

    def test_the_order_of_a_set_of_targets_is_the_same_in_every_process(self) -> None:
        names = [f"N{number}" for number in range(40)]
        graph = new(dict).add_node("A", keep).add_conditional_edge("A", keep, set(names))
        for name in names:
            graph.add_node(name, keep)

        assert sorted(names) == graph.compile().definition()["conditional_edges"][0]["targets"]

    def test_it_does_not_share_anything_with_the_graph(self) -> None:
        graph = new(dict).add_node("A", keep).add_conditional_edge("A", keep, ["A", "B"]).add_node("B", keep).compile()
        first = graph.definition()
        expected = deepcopy(first)
        first["nodes"].clear()
        first["conditional_edges"][0]["targets"].clear()

        assert expected == graph.definition()

    def test_no_limit_at_all_is_still_a_number_that_reads_back(self) -> None:
        policy = RetryPolicy(2, timedelta.max, max_delay=timedelta.max)

        assert [] == check_definition(new(dict).add_node("A", keep, retry=policy).compile().definition())

    def test_graphs_nest_a_hundred_deep_and_not_deeper(self) -> None:
        graph = new(dict).add_node("A", keep).compile()
        for _ in range(99):
            graph = new(dict).add_parallel_group("A", {"b": graph}, keep).compile()
        definition = graph.definition()
        deeper = new(dict).add_subgraph("A", graph, enter=keep, leave=keep).compile()

        assert definition == load_definition(json.dumps(definition))
        assert 99 == to_mermaid(definition).count('["b"]')
        with pytest.raises(UsageError, match="nested up to 100 deep"):
            deeper.definition()
        leaf = new(dict).add_node("A", keep).compile()
        outer = new(dict).add_map("A", leaf, keep, keep).compile().definition()
        outer["nodes"][0]["child"] = definition
        (problem,) = check_definition(outer)
        assert "graphs are nested more than 100 deep" in problem.text


class TestRoundTrip:
    def test_what_compiles_describes_itself_so_that_it_compiles_again(self) -> None:
        for seed in SEEDS[::6]:
            definition = a_definition(Random(seed))
            written = compiled(definition).definition()

            assert json.dumps(definition) == json.dumps(written)
            assert [] == check_definition(written)
            assert written == load_definition(json.dumps(written).encode())
            SCHEMA.validate(written)

    def test_a_broken_definition_has_the_problems_that_its_builder_has(self) -> None:
        met: set[ProblemCode] = set()
        for seed in SEEDS:
            dice = Random(seed)
            definition = broken(dice, a_definition(dice, 1))
            found = check_definition(definition)
            met |= {problem.code for problem in found}
            for path, graph in graphs(definition):
                if any(problem.path[: len(path)] == path != problem.path for problem in found):
                    continue  # a child of it does not compile, so no builder can be given it
                assert builder_problems(graph) == [
                    (problem.code, problem.node, problem.text) for problem in found if problem.path == path
                ], definition

        unseen = {code for code in ProblemCode if "DEFINITION" not in code.name} - met
        assert BUILDER_ONLY == unseen


BUILDER_ONLY = {ProblemCode.INVALID_CHILD, ProblemCode.INVALID_RETRY, ProblemCode.UNSUPPORTED_TYPE} | {
    ProblemCode.DUPLICATE_ENTRY
}
"""What a definition that has its shape cannot be, or what no builder is told that way."""


def builder_problems(definition: Definition) -> list[tuple[ProblemCode, str | None, str]]:
    try:
        builder(definition).compile()
    except GraphValidationError as error:
        return [(problem.code, problem.node, problem.text) for problem in error.problems]
    return []


WRONG: list[Any] = [None, True, 3, 2.5, "text", [], [1], {}, {"x": 1}]


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a document and each of its keys."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, item in items:
        yield value, key
        yield from parts(item)


class TestShape:
    def test_a_shape_is_refused_by_the_schema_and_here_alike(self) -> None:
        verdicts: Counter[bool] = Counter()
        for seed in SEEDS:
            dice = Random(seed)
            definition = a_definition(dice, 1)
            container, key = dice.choice(list(parts(definition)))
            how = dice.choice(["replace", "remove", "add"])
            if how == "replace":
                container[key] = dice.choice(WRONG)
            elif how == "remove":
                del container[key]
            elif isinstance(container, dict):
                container[dice.choice(["nmae", "child", "delay", "timeout", "on_reject"])] = dice.choice([3, None])
            found = {problem.code for problem in check_definition(definition)}
            is_valid = SCHEMA.is_valid(definition)
            verdicts[is_valid] += 1

            assert is_valid == (ProblemCode.INVALID_DEFINITION not in found), definition

        assert min(verdicts[True], verdicts[False]) > len(SEEDS) / 10

    def test_everything_is_told_at_once_with_the_place_and_what_may_have_been_meant(self, plain: Definition) -> None:
        plain["edges"][0]["target"] = "C"
        plain["nodes"][1]["fallbck"] = "A"
        plain["identity"] = {"id": "", "version": "1"}

        assert [
            "identity.id: must not be empty",
            "nodes[1].fallbck: is no key of a definition there (did you mean 'fallback'?)",
            "the edge from 'A' to 'C' names 'C', which is no node",
            "no path leads to node 'B'; add an edge to it, or remove it",
        ] == [problem.text for problem in check_definition(plain)]

    def test_what_would_only_follow_from_a_damaged_shape_is_not_told(self, plain: Definition) -> None:
        plain["nodes"][1]["name"] = 3
        del plain["edges"][0]["source"]

        assert ["nodes[1].name: must be a string, not a number", "edges[0].source: is missing"] == [
            problem.text for problem in check_definition(plain)
        ]

    def test_a_damaged_child_leaves_the_checks_of_the_graph_around_it(self, plain: Definition) -> None:
        outer = new(dict).add_subgraph("Sub", compiled(plain), enter=keep, leave=keep).compile().definition()
        outer["nodes"][0]["child"]["edges"] = None
        outer["entry"] = "Nowhere"

        assert [
            (ProblemCode.DANGLING_EDGE, (), None),
            (ProblemCode.INVALID_DEFINITION, ("Sub",), None),
        ] == codes(check_definition(outer))

    def test_a_retry_is_checked_as_a_policy_is(self, plain: Definition) -> None:
        plain["nodes"][0]["retry"] = {"max_attempts": 0}

        assert ["retry of node 'A': max_attempts: must be at least 1, not 0"] == [
            problem.text for problem in check_definition(plain)
        ]

    def test_two_branches_of_one_name_are_a_problem(self) -> None:
        graph = new(dict).add_parallel_group("G", {"a": keep}, keep).compile().definition()
        graph["nodes"][0]["branches"] *= 2

        assert [(ProblemCode.INVALID_BRANCH, (), "G")] == codes(check_definition(graph))

    @pytest.mark.parametrize("version", ["1.1.0", "2.0.0", "1.7.0"])
    def test_a_newer_version_is_refused_by_its_own_code_and_nothing_else_is_said(self, version: str) -> None:
        with refused(ProblemCode.DEFINITION_VERSION, f"schema_version: {version} is newer than 1.0.0; upgrade"):
            load_definition(json.dumps({"schema_version": version, "more": 1}))

    @pytest.mark.parametrize("version", ["0.9.0", "1", "1.0", "v1.0.0", "", None, 1])
    def test_what_is_no_version_is_refused(self, version: Any, plain: Definition) -> None:
        plain["schema_version"] = version

        assert [(ProblemCode.INVALID_DEFINITION, (), None)] == codes(check_definition(plain))
        assert not SCHEMA.is_valid(plain)

    def test_a_later_patch_of_the_same_version_is_read(self, plain: Definition) -> None:
        plain["schema_version"] = "1.0.7"

        assert [] == check_definition(plain)

    @pytest.mark.parametrize("value", [(), {1, 2}, object(), 3, None, float("nan")])
    def test_what_is_no_json_value_is_refused_too(self, value: Any, plain: Definition) -> None:
        for document in (value, plain | {"nodes": value}, plain | {"entry": value}):
            assert {ProblemCode.INVALID_DEFINITION} == {problem.code for problem in check_definition(document)}


class TestText:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (b"", "is no JSON: Expecting value at line 1, column 1"),
            (b'{"a": 1,\n  ]', "at line 2, column 3"),
            (b"\xff\xfe{\x00}\x00", "is not UTF-8: byte 0xff at offset 0"),
            (b'{"a": NaN}', "NaN is no number there"),
            (b"[-1e999]", "-1e999 is beyond the range of a number"),
            (b"[" + b"1" * 5000 + b"]", "4300 digits"),
            (b"[" * 100_000, "nested too deeply"),
            (b'{"a":' * 100_000, "nested too deeply"),
        ],
        ids=["empty", "malformed", "utf-16", "nan", "infinite", "digits", "nesting", "deep objects"],
    )
    def test_a_text_that_is_no_definition_says_why_and_where(self, text: bytes, problem: str) -> None:
        with refused(ProblemCode.MALFORMED_DEFINITION, problem):
            load_definition(text)

    def test_a_byte_order_mark_is_passed_over(self, plain: Definition) -> None:
        assert plain == load_definition(b"\xef\xbb\xbf" + json.dumps(plain).encode())

    def test_a_key_that_stands_twice_is_told_beside_everything_else(self, plain: Definition) -> None:
        text = json.dumps(plain).replace('"kind": "node"', '"kind": "node", "kind": "node"').replace('"B"}]', '"C"}]')
        with pytest.raises(GraphValidationError) as caught:
            load_definition(text)

        assert [
            ProblemCode.MALFORMED_DEFINITION,
            ProblemCode.DANGLING_EDGE,
            ProblemCode.UNREACHABLE_NODE,
        ] == [problem.code for problem in caught.value.problems]
        assert "the text has the key 'kind' twice in one object" in str(caught.value)

    def test_a_problem_inside_names_the_way_to_it(self) -> None:
        child = new(dict).add_node("A", keep).compile()
        outer = new(dict).add_parallel_group("G", {"b": child}, keep).compile().definition()
        outer["nodes"][0]["branches"][0]["child"]["entry"] = "B"

        with pytest.raises(GraphValidationError, match=r"STRATA_ERR_DANGLING_EDGE: in 'G' / 'b': the entry names 'B'"):
            load_definition(json.dumps(outer))

    def test_a_definition_that_is_not_valid_is_not_drawn(self, plain: Definition) -> None:
        plain["entry"] = "C"

        with refused(ProblemCode.DANGLING_EDGE, "the entry names 'C'"):
            to_mermaid(plain)


def test_a_large_definition_is_checked_in_time_that_grows_with_it() -> None:
    """Chains and typos by the thousand: what looks at everything for each of them takes minutes for these."""
    names = [f"N{number}" for number in range(1500)]
    nodes = [{"name": name, "kind": "node", "fallback": after} for name, after in pairwise(names)]
    definition = {"schema_version": "1.0.0", "checkpointing": "boundaries", "entry": "N0", "nodes": nodes} | {
        "edges": [{"source": name, "target": f"{name}x"} for name in names[:-1]],
        "conditional_edges": [],
        "waits": [],
    }

    assert {ProblemCode.DANGLING_EDGE: 1500} == Counter(problem.code for problem in check_definition(definition))


def test_a_name_that_is_too_long_does_not_stand_whole_before_each_problem_behind_it() -> None:
    """A document of a few megabytes must not be answered with gigabytes."""
    inner = {f"no such key {number}": 1 for number in range(200)}
    document = {
        "schema_version": "1.0.0",
        "checkpointing": "boundaries",
        "entry": "A",
        "nodes": [{"name": "x" * 100_000, "kind": "subgraph", "child": {"schema_version": "1.0.0", **inner}}],
        "edges": [],
        "conditional_edges": [],
        "waits": [],
    }
    with pytest.raises(GraphValidationError) as caught:
        load_definition(json.dumps(document))

    assert 200 < len(caught.value.problems)
    assert 1_000_000 > len(str(caught.value))
