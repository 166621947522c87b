"""The checks that all nodes with graphs inside share."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, TypeGuard

from strata_core.graph._plan import Plan
from strata_core.graph._problems import GraphProblem, ProblemCode
from strata_core.graph._refusals import named

__all__ = [
    "find_child_problems",
    "find_concurrency_problems",
    "find_function_problems",
    "find_parallel_waits",
    "is_compiled",
    "plan_of",
]


def is_compiled(value: object) -> TypeGuard[Any]:
    """Tell whether something is a compiled graph."""
    from strata_core.graph._compiled import CompiledGraph

    return isinstance(value, CompiledGraph)


def plan_of(child: Any) -> Plan[Any]:
    """Return what a compiled graph consists of."""
    plan: Plan[Any] = child._plan  # noqa: SLF001  # the engine's own
    return plan


def find_child_problems(node: Any, child: object) -> Iterable[GraphProblem]:
    """Yield that the child of a node is no compiled graph."""
    if not is_compiled(child):
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


def find_parallel_waits(node: Any, what: str, plan: Plan[Any]) -> Iterable[GraphProblem]:
    """Yield every wait in a graph that runs beside others; `what` names that."""
    for path in plan.waits():
        text = (
            f"{what} would wait after {named(path)}; what runs beside others cannot: "
            f"wait before or after node {node!r} instead"
        )
        yield GraphProblem(ProblemCode.PARALLEL_WAIT, node, text)
