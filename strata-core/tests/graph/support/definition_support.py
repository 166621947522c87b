"""Definitions at random, the builders that say the same, and ways to break them."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from random import Random
from typing import Any

from strata_core.graph import CheckpointPolicy, CompiledGraph, RetryPolicy, StateGraph
from strata_core.records import GraphIdentity

Definition = dict[str, Any]

NAMES = ["Draft", "end", "Review", 'say "hi"', "naïve ✓"]
DURATIONS = [1, 1.5, 86_400, 1_209_600, 0.000001, 3_155_760_000, 0]


def keep(*_: Any) -> Any:
    """Any function of a graph."""


def builder(definition: Definition) -> Any:
    """Return a builder that was told what a definition says."""
    graph: Any = StateGraph(dict)
    for node in definition["nodes"]:
        common = {"retry": _retry(node.get("retry")), "fallback": node.get("fallback")}
        limit = {"max_concurrency": node.get("max_concurrency")}
        if node["kind"] == "node":
            graph.add_node(node["name"], keep, blocking=node.get("blocking", False), **common)
        elif node["kind"] == "subgraph":
            graph.add_subgraph(node["name"], compiled(node["child"]), enter=keep, leave=keep, **common)
        elif node["kind"] == "map":
            graph.add_map(node["name"], compiled(node["child"]), keep, keep, **limit, **common)
        else:
            branches = {
                branch["name"]: compiled(branch["child"]) if "child" in branch else keep for branch in node["branches"]
            }
            blocking = [branch["name"] for branch in node["branches"] if branch.get("blocking")]
            graph.add_parallel_group(node["name"], branches, keep, blocking=blocking, **limit, **common)
    graph.set_entry(definition["entry"])
    for edge in definition["edges"]:
        graph.add_edge(edge["source"], edge["target"])
    for route in definition["conditional_edges"]:
        graph.add_conditional_edge(route["source"], keep, route["targets"])
    for wait in definition["waits"]:
        _add_wait(graph, wait)
    return graph


def compiled(definition: Definition) -> CompiledGraph[Any]:
    """Return the graph that a definition describes."""
    identity = definition.get("identity")
    graph: CompiledGraph[Any] = builder(definition).compile(
        identity=None if identity is None else GraphIdentity(**identity),
        checkpointing=CheckpointPolicy(definition["checkpointing"]),
        completion_record=definition.get("completion_record", False),
        on_resume=(lambda state: None) if definition.get("on_resume") else None,
        on_interrupted=(lambda interrupted: None) if definition.get("on_interrupted") else None,
    )
    return graph


def _retry(given: Any) -> RetryPolicy | None:
    if given is None:
        return None
    durations: dict[str, Any] = {
        key: timedelta(seconds=given[key]) for key in ("initial_delay", "max_delay") if key in given
    }
    numbers = {key: given[key] for key in ("max_attempts", "multiplier", "jitter") if key in given}
    retry_on: Any = given.get("retry_on", ["Exception"])
    wanted = keep if retry_on == "computed" else tuple(getattr(builtins, name) for name in retry_on)
    return RetryPolicy(**numbers, **durations, retry_on=wanted)


def _add_wait(graph: Any, wait: dict[str, Any]) -> None:
    timeout = wait.get("timeout")
    given = {"timeout": None if timeout is None else timedelta(seconds=timeout), "on_timeout": wait.get("on_timeout")}
    if wait["kind"] == "timer":
        graph.add_timer(wait["node"], keep if wait["delay"] == "computed" else timedelta(seconds=wait["delay"]))
    elif wait["kind"] == "event":
        graph.add_wait_for_event(wait["node"], wait["event_type"], **given)
    else:
        graph.add_interrupt_boundary(wait["node"], on_reject=wait.get("on_reject"), **given)


def graphs(definition: Definition, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Definition]]:
    """Yield the graphs of a definition by their paths, the outermost first, in the order of the document."""
    yield path, definition
    for node in definition["nodes"]:
        if "child" in node:
            yield from graphs(node["child"], (*path, node["name"]))
        for branch in node.get("branches", ()):
            if "child" in branch:
                yield from graphs(branch["child"], (*path, node["name"], branch["name"]))


def a_definition(dice: Random, depth: int = 2, *, waits: bool = True, hooks: bool = True) -> Definition:
    """Make the definition of a graph that compiles; its parts stand in the order in which a compiled graph has them."""
    names = dice.sample(NAMES, dice.randint(1, 4))
    document: Definition = {"schema_version": "1.0.0"}
    if dice.random() < 0.5:
        document["identity"] = {"id": dice.choice(NAMES), "version": "1"}
    document["checkpointing"] = dice.choice(["boundaries", "every_node"])
    for flag in ("completion_record", *(("on_resume", "on_interrupted") if hooks else ())):
        if dice.random() < 0.3:
            document[flag] = True
    document |= {"entry": names[0], "nodes": [], "edges": [], "conditional_edges": [], "waits": []}
    for number, name in enumerate(names):
        after = names[number + 1 :]
        document["nodes"].append(_node(dice, name, after, depth, waits))
        if after and dice.random() < 0.5:
            document["edges"].append({"source": name, "target": after[0]})
        elif after:
            others = [other for other in names if other != after[0] and dice.random() < 0.3]
            document["conditional_edges"].append({"source": name, "targets": [after[0], *others]})
        if waits and dice.random() < 0.4:
            document["waits"].append(_wait(dice, name, names))
    return document


def _node(dice: Random, name: str, after: list[str], depth: int, waits: bool) -> dict[str, Any]:
    kind = dice.choice(["node", "subgraph", "group", "map"]) if depth else "node"
    node: dict[str, Any] = {"name": name, "kind": kind}
    if kind == "subgraph":
        node["child"] = a_definition(dice, depth - 1, waits=waits, hooks=False)
    elif kind == "map":
        node["child"] = a_definition(dice, depth - 1, waits=False)
    elif kind == "group":
        node["branches"] = [_branch(dice, branch, depth) for branch in dice.sample(NAMES, dice.randint(1, 3))]
    elif dice.random() < 0.3:
        node["blocking"] = True
    if kind in {"group", "map"} and dice.random() < 0.5:
        node["max_concurrency"] = dice.randint(1, 50)
    if dice.random() < 0.4:
        node["retry"] = {
            "max_attempts": dice.randint(1, 5),
            **_some(
                dice,
                initial_delay=dice.choice(DURATIONS[:-1]),
                multiplier=dice.choice([1, 3, 1.5]),
                max_delay=dice.choice(DURATIONS),
                jitter=dice.choice([1, 0.25]),
                retry_on=dice.choice(["computed", ["ConnectionError"], ["OSError", "ValueError"]]),
            ),
        }
    if after and dice.random() < 0.3:
        node["fallback"] = dice.choice(after)
    return node


def _branch(dice: Random, name: str, depth: int) -> dict[str, Any]:
    kind = dice.randint(0, 2)
    if kind == 2:
        return {"name": name, "child": a_definition(dice, depth - 1, waits=False)}
    return {"name": name, "blocking": True} if kind else {"name": name}


def _some(dice: Random, **values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if dice.random() < 0.5}


def _wait(dice: Random, node: str, names: list[str]) -> dict[str, Any]:
    kind = dice.choice(["person", "event", "timer"])
    wait: dict[str, Any] = {"node": node, "kind": kind}
    if kind == "timer":
        return wait | {"delay": dice.choice([*DURATIONS, "computed"])}
    if kind == "event":
        wait["event_type"] = dice.choice(["paid", 'a "b"'])
    if dice.random() < 0.5:
        wait |= {"timeout": dice.choice(DURATIONS), **_some(dice, on_timeout=dice.choice(names))}
    return wait | (_some(dice, on_reject=dice.choice(names)) if kind == "person" else {})


def broken(dice: Random, definition: Definition) -> Definition:
    """Break a definition in one or two places, in ways that a builder can be told as well."""
    document = deepcopy(definition)
    for _ in range(dice.randint(1, 2)):
        _break(dice, dice.choice([graph for _, graph in graphs(document)]))
    return document


def _break(dice: Random, graph: Definition) -> None:
    name, other, node = _any(dice), _any(dice), dice.choice(graph["nodes"]) if graph["nodes"] else {}
    match dice.choice(["drop", "add", "name", "fallback", "entry", "edge", "route", "wait", "alone", "limit", "hook"]):
        case "drop":
            graph["nodes"] = [each for each in graph["nodes"] if each is not node]
        case "add":
            graph["nodes"].append({"name": name, "kind": "node", "fallback": other})
        case "name":
            node["name"] = name
        case "fallback":
            node["fallback"] = name
        case "entry":
            graph["entry"] = name
        case "edge":
            graph["edges"].append({"source": name, "target": other})
        case "route":
            graph["conditional_edges"].append({"source": name, "targets": dice.sample([other, other, *NAMES], 2)})
        case "wait":
            wait = _wait(dice, name, [*NAMES, "Nowhere"])
            duration = dice.choice([{}, {"delay" if wait["kind"] == "timer" else "timeout": dice.choice([-1, 1e11])}])
            graph["waits"].append(wait | duration)
        case "alone":
            graph["waits"].append({"node": name, "kind": "event", "event_type": "", "on_timeout": other})
        case "limit":
            for each in graph["nodes"]:
                each |= {"max_concurrency": dice.randint(-1, 0)} if each["kind"] in {"group", "map"} else {}
                if each["kind"] == "group":
                    _break_branches(dice, each)
        case "hook":
            graph[dice.choice(["on_resume", "on_interrupted"])] = True


def _break_branches(dice: Random, group: dict[str, Any]) -> None:
    if dice.random() < 0.5:
        group["branches"] = dice.choice([[], [{"name": ""}]])
    for branch in group["branches"]:
        branch["blocking"] = True


def _any(dice: Random) -> str:
    return dice.choice([*NAMES, "Nowhere", "Reviw", ""])
