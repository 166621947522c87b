"""A node that runs a graph for each of many items."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any

from strata_core.graph._apart import walk_apart
from strata_core.graph._attempt import NodeReturnError, consult, consult_state
from strata_core.graph._children import (
    child_of,
    find_child_problems,
    find_concurrency_problems,
    find_function_problems,
    find_parallel_waits,
    plan_of,
)
from strata_core.graph._copying import isolate
from strata_core.graph._fan_out import FanOut
from strata_core.graph._inside import LevelFailedError
from strata_core.graph._level import Level
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._problems import GraphProblem
from strata_core.graph._results import FailureCode

__all__ = ["Map", "MapDraft"]


class MapDraft:
    """One call of `add_map`, apart from what every node has."""

    __slots__ = ("_child", "_items", "_limit", "_reducer")

    def __init__(self, child: Any, items: Any, reducer: Any, limit: Any) -> None:
        self._child = child
        self._items = items
        self._reducer = reducer
        self._limit = limit

    def find_problems(self, node: Any) -> Iterable[GraphProblem]:
        """Yield what is wrong with it."""
        yield from find_child_problems(node, self._child)
        yield from find_function_problems(node, "items", self._items, "state")
        yield from find_function_problems(node, "the reducer", self._reducer, "before", "results")
        yield from find_concurrency_problems(node, self._limit)
        if (child := child_of(self._child)) is not None:
            yield from find_parallel_waits(node, f"the child of node {node!r}", child)

    def make(self) -> Map:
        """Return the body."""
        return Map(plan_of(self._child), self._items, self._reducer, self._limit)


class Map:
    """A graph for each of many items as the body of a node; a reducer makes one state of theirs."""

    __slots__ = ("_child", "_items", "_limit", "_reducer", "uses_context")

    def __init__(
        self, child: Plan[Any], items: Callable[..., Any], reducer: Callable[..., Any], limit: int | None
    ) -> None:
        self._child = child
        self._items = items
        self._reducer = reducer
        self._limit = limit
        self.uses_context = child.uses_context

    def waits(self) -> Iterator[tuple[str, ...]]:
        """Yield nothing: no child waits."""
        return iter(())

    def describe(self, define: Callable[[Plan[Any]], dict[str, Any]]) -> dict[str, Any]:
        """Return what its node has in a definition beyond what every node has."""
        limit = {} if self._limit is None else {"max_concurrency": self._limit}
        return {"kind": "map", "child": define(self._child), **limit}

    async def attempt(self, level: Level[Any], node: Node) -> Any:
        """Run the child for every item, and return what the reducer makes of their last states."""
        items = await self._find_items(level)
        fan_out: FanOut[Any] = FanOut(level.stop, "item {}".format)
        path = f"{level.path}{node.name}\0"

        def run(number: int) -> Coroutine[Any, Any, Any]:
            return walk_apart(level, fan_out, self._child, items[number], f"{path}{number}")

        emitter = level.emitter
        job = run if emitter is None else emitter.jobs(level, node, str, run)
        results = await level.stop.guard(fan_out.run(len(items), job, self._limit))
        return await consult_state(
            level, "the reducer", level.state_class, self._reducer, isolate(level.state), results
        )

    async def _find_items(self, level: Level[Any]) -> list[Any]:
        """Return the state that the child begins with, for each item.

        Raises:
            LevelFailedError: The function failed, or gave something else.
        """
        wanted = self._child.codec.cls
        given = await consult(level, "items", self._items, isolate(level.state))
        try:
            items = list(given)
        except Exception as error:
            raise LevelFailedError(FailureCode.NODE_FAILED, "items failed", error) from error
        for number, item in enumerate(items):
            if not isinstance(item, wanted):
                problem = NodeReturnError(f"item {number} is {type(item).__name__}, not {wanted.__name__}")
                raise LevelFailedError(FailureCode.INVALID_STATE, "items failed", problem)
        return items
