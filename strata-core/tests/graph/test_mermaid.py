"""Drawings: what stands in them, and that no name gets out of its label.

The drawings beside this file are what Mermaid's own parser has taken.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from definition_support import NAMES, Definition, a_definition, compiled, keep
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strata_core.graph import CompiledGraph, RetryPolicy, StateGraph
from strata_core.graph.definitions import duration_text, to_mermaid

pytestmark = pytest.mark.once("it draws graphs and opens no store")

DRAWINGS = Path(__file__).parent / "drawings"
new: Any = StateGraph


def hostile(name: str) -> Definition:
    """Return the definition of a graph that has this name in every place that is drawn."""
    inner = new(dict).add_node(name, keep).compile()
    return (  # type: ignore[no-any-return]
        new(dict)
        .add_node(name, keep, retry=RetryPolicy(2))
        .add_conditional_edge(name, keep, [f"{name}.", f"{name}.."])
        .add_wait_for_event(name, name)
        .add_subgraph(f"{name}.", inner, enter=keep, leave=keep)
        .add_parallel_group(f"{name}..", {name: keep, f"{name}.": inner}, keep)
        .compile()
        .definition()
    )


def orders() -> CompiledGraph[Any]:
    graph: CompiledGraph[Any] = (
        new(dict)
        .add_node("Price", keep, retry=RetryPolicy(3), fallback="List price")
        .add_conditional_edge("Price", keep, ["Review", "Charge"])
        .add_node("List price", keep, blocking=True)
        .add_edge("List price", "Review")
        .add_node("Review", keep)
        .add_interrupt_boundary("Review", on_reject="Cancel", timeout=timedelta(days=14), on_timeout="Cancel")
        .add_edge("Review", "Charge")
        .add_node("Charge", keep)
        .add_wait_for_event("Charge", "payment.settled", timeout=timedelta(hours=36))
        .add_edge("Charge", "Ship")
        .add_node("Ship", keep)
        .add_timer("Ship", timedelta(days=30))
        .add_edge("Ship", "Close")
        .add_node("Close", keep)
        .add_node("Cancel", keep)
        .compile()
    )
    return graph


def nested() -> CompiledGraph[Any]:
    leaf = new(dict).add_node("end", keep).add_interrupt_boundary("end").compile()
    plain = new(dict).add_node("Look up", keep).add_timer("Look up", keep).compile()
    middle = (
        new(dict).add_subgraph("Ask", leaf, enter=keep, leave=keep).add_conditional_edge("Ask", keep, ["Ask", "Done"])
    )
    check = new(dict).add_node("Check", keep).compile()
    graph: CompiledGraph[Any] = (
        new(dict)
        .add_subgraph("Work", middle.add_node("Done", keep).compile(), enter=keep, leave=keep, fallback="Both")
        .add_edge("Work", "Both")
        .add_parallel_group("Both", {"a": keep, "b": check}, keep, blocking=["a"], max_concurrency=1)
        .add_edge("Both", "Each")
        .add_map("Each", check, keep, keep)
        .add_edge("Each", "Last")
        .add_subgraph("Last", plain, enter=keep, leave=keep)
        .compile()
    )
    return graph


def names() -> CompiledGraph[Any]:
    hostile_names = [
        "end",
        "subgraph x",
        'say "hi"',
        "a\nb",
        "<script>alert(1)</script>",
        "`**bold**`",
        "%%{init: {}}%%",
        "#quot; &amp; #35;",
        r"C:\new",
        "]) --> n1; click n1 call x()",
        "style a:b#c;",
        "$$x^2$$",
        "fa:fa-ban",
        "naïve ✓ 日本語",
        "\u202eevil",
        "ﬂ°°lt¶ß",
        "---",
        "direction LR",
    ]
    graph = new(dict)
    for name, following in pairwise(hostile_names):
        graph.add_node(name, keep).add_edge(name, following)
    drawn: CompiledGraph[Any] = graph.add_node(hostile_names[-1], keep).compile()
    return drawn


@pytest.mark.parametrize("graph", [orders, nested, names], ids=lambda make: make.__name__)
def test_a_graph_is_drawn_as_it_always_was(graph: Callable[[], CompiledGraph[Any]]) -> None:
    expected = (DRAWINGS / f"{graph.__name__}.mmd").read_text(encoding="utf-8")

    assert expected == graph().to_mermaid()


LABEL = r'"(?:\w|[ \-.,]|[#]\d+;|<br/>)*"'
LINE = re.compile(
    rf"""
    flowchart\ TD
    | \ +(?P<id>n\d+)(?:\(\("(?:start|end)"\)\) | \(\(\("thread\ ended"\)\)\)
        | \[{LABEL}\] | \{{\{{{LABEL}\}}\}} | \[/{LABEL}\\\] | \[\\{LABEL}/\])
    | \ +subgraph\ (?P<frame>n\d+)\[{LABEL}\]
    | \ +(?P<close>end)
    | \ +(?P<source>n\d+)\ (?:-->|-\.->)(?:\|{LABEL}\|)?\ (?P<target>n\d+)
    | \ +classDef\ wait\ stroke-width:3px,stroke-dasharray:6
    | \ +class\ n\d+(?:,n\d+)*\ wait
    """,
    re.VERBOSE,
)


def read(drawing: str) -> list[str]:
    """Hold every line against what may stand in a drawing, and return the labels as a browser shows them."""
    made: set[str] = set()
    linked: set[str] = set()
    depth = 0
    assert re.search(r"direction\s", drawing) is None, "Mermaid looks for that in quotes as well"
    assert drawing.endswith("\n")
    for line in drawing[:-1].split("\n"):
        match = LINE.fullmatch(line)
        assert match is not None, line
        found = match.groupdict()
        new_ids = {found["id"], found["frame"]} - {None}
        assert not made & new_ids, line
        made |= new_ids
        linked |= {found["source"], found["target"]} - {None}
        depth += (found["frame"] is not None) - (found["close"] is not None)
        assert depth >= 0, line
    assert depth == 0
    assert linked <= made
    labels = re.findall(r'"([^"]*)"', drawing)
    return [html.unescape(re.sub(r"#(\d+);", r"&#\1;", label)) for label in labels]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30))
@example('"]\nn1-->n1\n%%{init: {"securityLevel": "loose"}}%%\nclick n1 "javascript:alert(1)"')
@example("`a` <br/> #quot; <img src=x onerror=alert(1)> end\nend")
@example("direction LR\ndirection  TB")
@example("\u2028\u2029\u202e\x7f\x1b[2J\r\n\t\xa0")
def test_no_name_gets_out_of_its_label(name: str) -> None:
    labels = read(to_mermaid(hostile(name)))
    shown = "".join(mark if mark.isprintable() else json.dumps(mark)[1:-1] for mark in name)

    assert labels.count(shown) == 3  # a branch, and the node of the child in two places
    assert f"{shown}<br/>up to 2 attempts" in labels
    assert f"event<br/>{shown}" in labels
    assert labels.count(f"{shown}.") == 2
    assert labels.count(f"{shown}..") == 1


def test_every_part_of_a_graph_is_in_its_drawing() -> None:
    for seed in range(40):
        definition = a_definition(Random(seed), 1)
        drawing = compiled(definition).to_mermaid()
        labels = read(drawing)
        for node in definition["nodes"]:
            assert any(label.split("<br/>")[0] == node["name"] for label in labels)
        waits = definition["waits"]
        assert sum("fallback" in node for node in definition["nodes"]) <= labels.count("fallback")
        assert sum("on_reject" in wait for wait in waits) <= labels.count("rejected")
        assert sum("timeout" in wait for wait in waits) <= sum(label.startswith("timeout ") for label in labels)
        assert len(waits) <= drawing.count("{{")
        assert sum(len(route["targets"]) for route in definition["conditional_edges"]) <= len(
            re.findall(r'-\.->\|"(?:[^"]*, )?if"\|', drawing)
        )


def test_a_name_of_letters_and_digits_stands_as_it_is() -> None:
    assert all(f'["{name}"]' in new(dict).add_node(name, keep).compile().to_mermaid() for name in NAMES[:3])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (61, "1 minute 1 second"),
        (5400, "1 hour 30 minutes"),
        (1_209_600, "14 days"),
        (1.5, "1 second 500 milliseconds"),
        (0.000001, "0.001 milliseconds"),
    ],
)
def test_a_duration_is_told_in_units(seconds: float, text: str) -> None:
    assert text == duration_text(seconds)
