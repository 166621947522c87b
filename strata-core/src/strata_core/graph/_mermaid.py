"""A definition as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from strata_core.graph._mermaid_text import duration_text, label

__all__ = ["draw"]

_INDENT: Final = "    "
_ONCE: Final = "once due"


def draw(definition: Mapping[str, Any]) -> str:
    """Return the flowchart of a definition without problems."""
    chart = _Chart()
    _Level(chart, definition, 1).draw(is_child=False)
    lines = ["flowchart TD", *chart.lines]
    if chart.waits:
        lines.append(f"{_INDENT}classDef wait stroke-width:3px,stroke-dasharray:6")
        lines.append(f"{_INDENT}class {','.join(chart.waits)} wait")
    return "\n".join(lines) + "\n"


class _Chart:
    """The lines written so far, and the IDs given out: never names, so that no name can be taken for syntax."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.waits: list[str] = []
        self._numbers = count(1)

    def identifier(self) -> str:
        return f"n{next(self._numbers)}"

    def write(self, level: int, line: str) -> None:
        self.lines.append(_INDENT * level + line)


class _Ends:
    """How a node is reached, left, and, when it fails, given up."""

    __slots__ = ("enter", "leave", "whole")

    def __init__(self, enter: str, leave: str, whole: str) -> None:
        self.enter = enter
        self.leave = leave
        self.whole = whole


class _Level:
    """Draws one graph.

    Nothing is ever linked to a frame that it stands in, which Mermaid cannot draw: ways lead to the first thing in a
    frame, and from the last.
    """

    def __init__(self, chart: _Chart, definition: Mapping[str, Any], level: int) -> None:
        self._chart = chart
        self._definition = definition
        self._level = level
        self._nodes: dict[str, _Ends] = {}
        self._end: str | None = None
        self._stopped: str | None = None

    def draw(self, *, is_child: bool) -> tuple[str, str]:
        """Draw it, and return where it begins and where it ends."""
        start = self._new('(("start"))')
        if is_child:
            self._find_end()
        for node in self._definition["nodes"]:
            self._nodes[node["name"]] = self._node(node)
        self._link(start, "-->", self._nodes[self._definition["entry"]].enter)
        waits = {wait["node"]: wait for wait in self._definition["waits"]}
        edges = {edge["source"]: edge["target"] for edge in self._definition["edges"]}
        routes = {route["source"]: route["targets"] for route in self._definition["conditional_edges"]}
        for node in self._definition["nodes"]:
            name = node["name"]
            source: str = self._nodes[name].leave
            text: tuple[str, ...] = ()
            if name in waits:
                source, text = self._wait(source, waits[name])
            if name in routes:
                for target in routes[name]:
                    self._link(source, "-.->", self._nodes[target].enter, *text, "if")
            else:
                target = edges.get(name)
                self._link(source, "-->", self._find_end() if target is None else self._nodes[target].enter, *text)
            if node.get("fallback") is not None:
                self._link(self._nodes[name].whole, "-.->", self._nodes[node["fallback"]].enter, "fallback")
        return start, self._end or ""

    def _new(self, shape: str) -> str:
        identifier = self._chart.identifier()
        self._chart.write(self._level, identifier + shape)
        return identifier

    def _find_end(self) -> str:
        if self._end is None:
            self._end = self._new('(("end"))')
        return self._end

    def _find_stop(self) -> str:
        if self._stopped is None:
            self._stopped = self._new('((("thread ended")))')
        return self._stopped

    def _link(self, source: str, arrow: str, target: str, *texts: str) -> None:
        text = f"|{label(', '.join(texts))}|" if texts else ""
        self._chart.write(self._level, f"{source} {arrow}{text} {target}")

    def _wait(self, source: str, wait: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        """Draw a wait behind its node; return from where its thread goes on, and when."""
        on_reject, timeout = wait.get("on_reject"), wait.get("timeout")
        what, text = _wait_texts(wait)
        identifier = self._new(f"{{{{{label(*what)}}}}}")
        self._chart.waits.append(identifier)
        self._link(source, "-->", identifier)
        if on_reject is not None:
            self._link(identifier, "-.->", self._nodes[on_reject].enter, "rejected")
        if timeout is not None:
            route = wait.get("on_timeout")
            target = self._find_stop() if route is None else self._nodes[route].enter
            self._link(identifier, "-.->", target, f"timeout {duration_text(timeout)}")
        return identifier, (text,)

    def _node(self, node: Mapping[str, Any]) -> _Ends:
        kind, lines = node["kind"], (node["name"], *_marks(node))
        if kind == "node":
            identifier = self._new(f"[{label(*lines)}]")
            return _Ends(identifier, identifier, identifier)
        frame = self._chart.identifier()
        self._chart.write(self._level, f"subgraph {frame}[{label(*lines)}]")
        inside = _Level(self._chart, node.get("child") or {}, self._level + 1)
        enter, leave = inside.draw(is_child=True) if kind == "subgraph" else inside.fan_out(node)
        self._chart.write(self._level, "end")
        return _Ends(enter, leave, frame)

    def fan_out(self, node: Mapping[str, Any]) -> tuple[str, str]:
        """Draw what a group or a map runs at once, and return where it begins and where it ends."""
        is_map, limit = node["kind"] == "map", node.get("max_concurrency")
        how = "for each item" if is_map else "all at once"
        fork = self._new(f"[/{label(how if limit is None else f'{how}, {limit} at a time')}\\]")
        join = self._new(f"[\\{label('reduce')}/]")
        for enter, leave in self._items(node) if is_map else self._branches(node):
            self._link(fork, "-->", enter)
            self._link(leave, "-->", join)
        return fork, join

    def _items(self, node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield _Level(self._chart, node["child"], self._level).draw(is_child=True)

    def _branches(self, node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for branch in node["branches"]:
            child = branch.get("child")
            if child is None:
                identifier = self._new(f"[{label(branch['name'], *_marks(branch))}]")
                yield identifier, identifier
                continue
            self._chart.write(self._level, f"subgraph {self._chart.identifier()}[{label(branch['name'])}]")
            ends = _Level(self._chart, child, self._level + 1).draw(is_child=True)
            self._chart.write(self._level, "end")
            yield ends


def _marks(node: Mapping[str, Any]) -> Iterator[str]:
    if node.get("blocking"):
        yield "in a thread"
    retry = node.get("retry")
    if retry is not None and retry["max_attempts"] > 1:
        yield f"up to {int(retry['max_attempts'])} attempts"


def _wait_texts(wait: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """Return the label of a wait, and that of the way on."""
    if wait["kind"] == "timer":
        delay = wait["delay"]
        return ("timer", "computed" if delay == "computed" else duration_text(delay)), _ONCE
    if wait["kind"] == "event":
        return ("event", wait["event_type"]), "signalled"
    return ("person",), "approved or rejected" if wait.get("on_reject") is None else "approved"
