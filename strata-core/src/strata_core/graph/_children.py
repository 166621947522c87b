"""What a node with graphs inside asks of them, and the checks that all such nodes share."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from strata_core.graph._outline import Outline
from strata_core.graph._plan import Plan
from strata_core.graph._problems import GraphProblem, ProblemCode
from strata_core.graph._refusals import named

__all__ = [
    "Child",
    "child_of",
    "find_child_problems",
    "find_concurrency_problems",
    "find_function_problems",
    "find_hook_problems",
    "find_parallel_waits",
    "plan_of",
]


class Child(Protocol):
    """A graph as a part of another: a compiled one, or one that a definition describes."""

    @property
    def on_resume(self) -> object:
        """What checks a state after a wait; None for nothing."""

    @property
    def on_interrupted(self) -> object:
        """What is told that a thread waits; None for nothing."""

    @property
    def state_class(self) -> type | None:
        """The class of its states; None when nothing tells."""

    def waits(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths to the nodes after which a thread waits, also inside of subgraphs."""


def child_of(value: object) -> Child | None:
    """Return what a graph is as a part of another; None for what is no graph."""
    from strata_core.graph._compiled import CompiledGraph

    if isinstance(value, CompiledGraph):
        return plan_of(value)
    return value if isinstance(value, Outline) else None


def plan_of(child: Any) -> Plan[Any]:
    """Return what a compiled graph consists of."""
    plan: Plan[Any] = child._plan  # noqa: SLF001  # the engine's own
    return plan


def find_child_problems(node: Any, child: object) -> Iterable[GraphProblem]:
    """Yield that the child of a node is no compiled graph."""
    if child_of(child) is None:
        hint = "; compile it first" if hasattr(child, "compile") else ""
        text = f"the child of node {node!r} must be a CompiledGraph, not {type(child).__name__}{hint}"
        yield GraphProblem(ProblemCode.INVALID_CHILD, node, text)


def find_function_problems(node: Any, name: str, function: object, *given: str) -> Iterable[GraphProblem]:
    """Yield that a function of a node cannot be called with what it is given."""
    what = f"{name} of node {node!r}"
    if not callable(function):
        yield GraphProblem(ProblemCode.INVALID_HANDLER, node, f"{what} must be a function, not {function!r}")
        return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not tell
        return
    try:
        signature.bind(*given)
    except TypeError as error:
        text = f"{what} is called with ({', '.join(given)}), which it does not take: {error}"
        yield GraphProblem(ProblemCode.INVALID_HANDLER, node, text)


def find_concurrency_problems(node: Any, limit: object) -> Iterable[GraphProblem]:
    """Yield that a limit of a node is none."""
    if limit is not None and (type(limit) is not int or limit < 1):
        text = f"max_concurrency of node {node!r} must be an int of 1 or more, or None, not {limit!r}"
        yield GraphProblem(ProblemCode.INVALID_CONCURRENCY, node, text)


def find_hook_problems(node: Any, child: Child) -> Iterable[GraphProblem]:
    """Yield every hook of a subgraph's child."""
    for name, hook in (("on_resume", child.on_resume), ("on_interrupted", child.on_interrupted)):
        if hook is not None:
            text = (
                f"the child of node {node!r} is compiled with {name}, which would never be called there; "
                f"compile it without, and give {name} to the outermost graph"
            )
            yield GraphProblem(ProblemCode.INNER_HOOK, node, text)


def find_parallel_waits(node: Any, what: str, child: Child) -> Iterable[GraphProblem]:
    """Yield every wait in a graph that runs beside others; `what` names that."""
    for path in child.waits():
        text = (
            f"{what} would wait after {named(path)}; what runs beside others cannot: "
            f"wait before or after node {node!r} instead"
        )
        yield GraphProblem(ProblemCode.PARALLEL_WAIT, node, text)
