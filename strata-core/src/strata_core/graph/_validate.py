"""The checks of a graph: all of them, so that every problem is reported at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from strata_core._guess import did_you_mean
from strata_core._validation import check_thread_id
from strata_core.errors import InvalidInputError
from strata_core.graph._drafts import Draft, EdgeDraft, NodeDraft, RouteDraft
from strata_core.graph._handlers import HandlerError, inspect_handler
from strata_core.graph._problems import GraphProblem, ProblemCode
from strata_core.graph._retry import RetryPolicy
from strata_core.graph._validate_waits import NAMES, find_wait_problems, times_out

__all__ = ["find_problems"]

_GUESSES: Final = 25
"""For how many names it is said what may have been meant: a guess looks at all names, and a graph may be large."""
_SHOWN: Final = 10
"""How many nodes of a cycle are told, for the same reason."""


def find_problems(draft: Draft) -> list[GraphProblem]:
    """Return everything that is wrong with a graph; empty when it compiles."""
    if not draft.nodes:
        return [GraphProblem(ProblemCode.NO_NODES, None, "the graph has no nodes; add one with add_node")]
    problems = [*_nodes(draft), *_references(draft), *_ways(draft), *find_wait_problems(draft)]
    names = _names(draft)
    ways = _reachable_ways(draft, names)
    entry = draft.entries[0] if draft.entries else draft.nodes[0].name
    if _key(entry) in ways:
        reached = _closure([entry], ways)
        problems += [
            GraphProblem(
                ProblemCode.UNREACHABLE_NODE, name, f"no path leads to node {name!r}; add an edge to it, or remove it"
            )
            for name in ways
            if name not in reached
        ]
        problems += _endless(draft, ways, reached)
    return problems + list(_fallback_cycles(draft, names))


def _key(value: Any) -> Any:
    """Return a name that can be looked up, whatever a user has passed."""
    return value if isinstance(value, str) else ("not a name", id(value))


def _names(draft: Draft) -> set[Any]:
    return {_key(node.name) for node in draft.nodes}


def _edges(draft: Draft) -> list[EdgeDraft | RouteDraft]:
    return [*draft.edges, *draft.routes]


def _nodes(draft: Draft) -> Iterable[GraphProblem]:
    counts = Counter(_key(node.name) for node in draft.nodes)
    reported = set()
    for node in draft.nodes:
        try:
            check_thread_id(node.name, "name")
        except InvalidInputError as error:
            yield GraphProblem(ProblemCode.INVALID_NAME, None, f"the name of node {node.name!r} {error.problem}")
        key = _key(node.name)
        if counts[key] > 1 and key not in reported:
            reported.add(key)
            yield GraphProblem(
                ProblemCode.DUPLICATE_NODE, node.name, f"{counts[key]} nodes have the name {node.name!r}"
            )
        yield from _handler(node) if node.body is None else node.body.find_problems(node.name)
        if node.retry is not None and not isinstance(node.retry, RetryPolicy):
            text = f"retry of node {node.name!r} must be a RetryPolicy, not {type(node.retry).__name__}"
            yield GraphProblem(ProblemCode.INVALID_RETRY, node.name, text)


def _handler(node: NodeDraft) -> Iterable[GraphProblem]:
    try:
        handler = inspect_handler(node.handler)
    except HandlerError as error:
        yield GraphProblem(ProblemCode.INVALID_HANDLER, node.name, f"the handler of node {node.name!r} {error}")
    else:
        if node.blocking and handler.is_async:
            text = f"the handler of node {node.name!r} is async; blocking=True is for def handlers"
            yield GraphProblem(ProblemCode.INVALID_HANDLER, node.name, text)


def _references(draft: Draft) -> Iterable[GraphProblem]:
    names = _names(draft)
    guesses = iter(range(_GUESSES))

    def dangling(node: Any, missing: Any, what: str) -> Iterable[GraphProblem]:
        if _key(missing) not in names:
            hint = "" if next(guesses, None) is None else did_you_mean(missing, names)
            yield GraphProblem(ProblemCode.DANGLING_EDGE, node, f"{what} names {missing!r}, which is no node{hint}")

    for node in draft.nodes:
        if node.fallback is not None:
            yield from dangling(node.name, node.fallback, f"the fallback of node {node.name!r}")
    for edge in draft.edges:
        yield from dangling(edge.source, edge.source, f"the edge from {edge.source!r} to {edge.target!r}")
        yield from dangling(edge.source, edge.target, f"the edge from {edge.source!r} to {edge.target!r}")
    for route in draft.routes:
        yield from dangling(route.source, route.source, f"the conditional edge from {route.source!r}")
        for target in route.targets:
            yield from dangling(route.source, target, f"the conditional edge from {route.source!r}")
    for wait in draft.waits:
        yield from dangling(wait.node, wait.node, NAMES[wait.kind])
        if wait.on_reject is not None:
            yield from dangling(wait.node, wait.on_reject, f"the reject route of boundary {wait.node!r}")
        if wait.on_timeout is not None:
            yield from dangling(
                wait.node, wait.on_timeout, f"the timeout route of {NAMES[wait.kind]} at node {wait.node!r}"
            )
    for entry in draft.entries:
        yield from dangling(None, entry, "the entry")


def _ways(draft: Draft) -> Iterable[GraphProblem]:
    sources = Counter(_key(way.source) for way in _edges(draft))
    for source, count in sources.items():
        if count > 1:
            text = f"node {source!r} has {count} ways on; use one edge, or one conditional edge with several targets"
            yield GraphProblem(ProblemCode.CONFLICTING_EDGES, source if isinstance(source, str) else None, text)
    for route in draft.routes:
        try:
            inspect_handler(route.router)
        except HandlerError as error:
            text = f"the router of node {route.source!r} {error}"
            yield GraphProblem(ProblemCode.INVALID_HANDLER, route.source, text)
        if route.is_bare:
            text = (
                f"the targets of the conditional edge from {route.source!r} are a list, such as ['A', 'B'], not a str"
            )
            yield GraphProblem(ProblemCode.NO_TARGETS, route.source, text)
        if not route.targets or len(set(map(_key, route.targets))) < len(route.targets):
            text = f"the conditional edge from {route.source!r} needs targets, each named once"
            yield GraphProblem(ProblemCode.NO_TARGETS, route.source, text)
    if len(draft.entries) > 1:
        yield GraphProblem(ProblemCode.DUPLICATE_ENTRY, None, f"set_entry was called {len(draft.entries)} times")


def _reachable_ways(draft: Draft, names: set[Any]) -> dict[str, list[str]]:
    """Return where each node can go on, by whatever way, leaving out what does not exist."""
    ways: dict[str, list[str]] = {node.name: [] for node in draft.nodes if isinstance(node.name, str)}

    def add(source: Any, target: Any) -> None:
        if _key(source) in ways and _key(target) in names and isinstance(target, str):
            ways[source].append(target)

    for node in draft.nodes:
        add(node.name, node.fallback)
    for edge in draft.edges:
        add(edge.source, edge.target)
    for route in draft.routes:
        for target in route.targets:
            add(route.source, target)
    for wait in draft.waits:
        add(wait.node, wait.on_reject)
        add(wait.node, wait.on_timeout)
    return ways


def _closure(start: Iterable[str], ways: dict[str, list[str]]) -> set[str]:
    seen = set(start)
    stack = list(seen)
    while stack:
        for target in ways.get(stack.pop(), ()):
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return seen


def _endless(draft: Draft, ways: dict[str, list[str]], reached: set[str]) -> Iterable[GraphProblem]:
    leaving = {_key(way.source) for way in _edges(draft)}
    names = _names(draft)
    # A way to a node that does not exist is reported already; here it counts as a way out.
    out = {_key(edge.source) for edge in draft.edges if _key(edge.target) not in names}
    out |= {_key(route.source) for route in draft.routes if any(_key(target) not in names for target in route.targets)}
    # A timeout without a route ends the thread.
    out |= {_key(wait.node) for wait in draft.waits if times_out(wait) and wait.on_timeout is None}
    back: dict[str, list[str]] = {name: [] for name in ways}
    for source, targets in ways.items():
        for target in targets:
            back[target].append(source)
    can_end = _closure([name for name in ways if name not in leaving or name in out], back)
    for name in ways:
        if name in reached and name not in can_end:
            text = f"every path from node {name!r} loops back, so no run that comes there can end; add a way out"
            yield GraphProblem(ProblemCode.NO_TERMINAL, name, text)


def _fallback_cycles(draft: Draft, names: set[Any]) -> Iterable[GraphProblem]:
    fallbacks = {
        node.name: node.fallback for node in draft.nodes if isinstance(node.name, str) and _key(node.fallback) in names
    }
    cycles: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name in fallbacks:
        trail: dict[str, None] = {}
        at: Any = name
        while at in fallbacks and at not in seen:
            seen.add(at)
            trail[at] = None
            at = fallbacks[at]
        if at in trail:
            order = list(trail)
            cycle = order[order.index(at) :]
            for number, member in enumerate(cycle):
                cycles[member] = [cycle[(number + step) % len(cycle)] for step in range(min(len(cycle), _SHOWN))]
                cycles[member] += ["..."] if len(cycle) > _SHOWN else []
    for name in fallbacks:
        if name in cycles:
            text = f"the fallbacks of node {name!r} lead back to it: {' -> '.join([*cycles[name], name])}"
            yield GraphProblem(ProblemCode.FALLBACK_CYCLE, name, text)
