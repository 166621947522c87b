"""What the commands show of a definition, as spans that are safe to write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from strata_host.cli._text import phrase, word
from strata_host.cli.output import Line, Role, Span

if TYPE_CHECKING:
    from strata_core.graph import GraphProblem

__all__ = ["NODE_HEADER", "PROBLEM_HEADER", "count_nodes", "graph_fields", "node_rows", "problem_row"]

NODE_HEADER: Final = ("NODE", "KIND", "GOES ON AT", "WAITS FOR", "WHEN IT FAILS")
PROBLEM_HEADER: Final = ("CODE", "NODE", "PROBLEM")

_NOTHING: Final = (Span("-"),)


def problem_row(problem: GraphProblem) -> Sequence[Line]:
    """Return a problem's row under `PROBLEM_HEADER`."""
    names = [*problem.path, *([] if problem.node is None else [problem.node])]
    where = " / ".join(map(word, names)) or "-"
    return (Span(problem.code.value, Role.REMOVED),), (Span(where, Role.NODE),), (Span(phrase(problem.text)),)


def count_nodes(definition: Mapping[str, Any]) -> str:
    """Return how many nodes a definition has, also inside of nodes."""
    number = sum(kind != "branch" for _, kind, _ in _walk(definition, ()))
    return "1 node" if number == 1 else f"{number} nodes"


def graph_fields(definition: Mapping[str, Any]) -> Iterator[tuple[str, Line]]:
    """Yield the labels and values of the outermost graph, apart from its nodes."""
    identity = definition.get("identity")
    yield "graph", _NOTHING if identity is None else (Span(f"{word(identity['id'])}@{word(identity['version'])}"),)
    record = ", with a completion record" if definition.get("completion_record") else ""
    yield "checkpoints", (Span(f"{definition['checkpointing']}{record}"),)
    hooks = [name for name in ("on_resume", "on_interrupted") if definition.get(name)]
    yield "hooks", (Span(", ".join(hooks) or "-"),)
    yield "entry", (Span(word(definition["entry"]), Role.NODE),)


def node_rows(definition: Mapping[str, Any]) -> Iterator[Sequence[Line]]:
    """Yield the row of each node, and of what is in it, under `NODE_HEADER`."""
    for path, kind, ways in _walk(definition, ()):
        name = (Span(" / ".join(map(word, path)), Role.NODE),)
        yield name, (Span(kind),), ways.on, ways.wait, ways.failure


class _Ways:
    """How a node goes on, in three cells."""

    __slots__ = ("failure", "on", "wait")

    def __init__(self, on: Line = _NOTHING, wait: Line = _NOTHING, failure: Line = _NOTHING) -> None:
        self.on = on
        self.wait = wait
        self.failure = failure


def _walk(definition: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, _Ways]]:
    """Yield the path, kind and ways of each node, those of children and branches behind their nodes."""
    edges = {edge["source"]: edge["target"] for edge in definition["edges"]}
    routes = {route["source"]: route["targets"] for route in definition["conditional_edges"]}
    waits = {wait["node"]: wait for wait in definition["waits"]}
    for node in definition["nodes"]:
        name = node["name"]
        here = (*path, name)
        targets = routes[name] if name in routes else [edges[name]] if name in edges else []
        yield here, _kind(node), _Ways(_names(targets), _wait(waits.get(name)), _failure(node))
        for branch in node.get("branches") or ():
            yield (*here, branch["name"]), "branch", _Ways()
            if branch.get("child") is not None:
                yield from _walk(branch["child"], (*here, branch["name"]))
        if "child" in node:
            yield from _walk(node["child"], here)


def _kind(node: Mapping[str, Any]) -> str:
    kind: str = node["kind"]
    limit = node.get("max_concurrency")
    return kind if limit is None else f"{kind}, {int(limit)} at a time"


def _names(names: Sequence[str]) -> Line:
    spans: list[Span] = []
    for name in names:
        spans += [Span(" or ")] if spans else []
        spans.append(Span(word(name), Role.NODE))
    return spans or _NOTHING


def _wait(wait: Mapping[str, Any] | None) -> Line:
    if wait is None:
        return _NOTHING
    from strata_core.graph.definitions import duration_text

    spans = [Span(wait["kind"], Role.INTERRUPTED)]
    if wait.get("event_type") is not None:
        spans.append(Span(f" {word(wait['event_type'])}"))
    if wait["kind"] == "timer":
        spans.append(Span(" computed" if wait["delay"] == "computed" else f" {duration_text(wait['delay'])}"))
    if wait.get("on_reject") is not None:
        spans += [Span(", rejected: "), Span(word(wait["on_reject"]), Role.NODE)]
    if wait.get("timeout") is not None:
        spans.append(Span(f", after {duration_text(wait['timeout'])}: "))
        route = wait.get("on_timeout")
        spans.append(Span("the thread ends") if route is None else Span(word(route), Role.NODE))
    return spans


def _failure(node: Mapping[str, Any]) -> Line:
    retry, fallback = node.get("retry"), node.get("fallback")
    spans = [] if retry is None else [Span(f"{int(retry['max_attempts'])} attempts")]
    if fallback is not None:
        spans += [Span(", then " if spans else ""), Span(word(fallback), Role.NODE)]
    return spans or _NOTHING
