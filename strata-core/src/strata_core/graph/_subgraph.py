"""A node that is a graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from strata_core.codec import check_json
from strata_core.errors import InvalidInputError
from strata_core.graph._attempt import consult_state
from strata_core.graph._children import (
    child_of,
    find_child_problems,
    find_function_problems,
    find_hook_problems,
    plan_of,
)
from strata_core.graph._copying import isolate
from strata_core.graph._inner_journal import InnerJournal
from strata_core.graph._inside import LevelFailedError, PausedError
from strata_core.graph._level import Level
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._problems import GraphProblem
from strata_core.graph._results import FailureCode, Interrupted

__all__ = ["Subgraph", "SubgraphDraft", "go_inside"]

C = TypeVar("C")


class SubgraphDraft:
    """One call of `add_subgraph`, apart from what every node has."""

    __slots__ = ("_child", "_enter", "_leave")

    def __init__(self, child: Any, enter: Any, leave: Any) -> None:
        self._child = child
        self._enter = enter
        self._leave = leave

    def find_problems(self, node: Any) -> Iterable[GraphProblem]:
        """Yield what is wrong with it."""
        yield from find_child_problems(node, self._child)
        yield from find_function_problems(node, "enter", self._enter, "state")
        yield from find_function_problems(node, "leave", self._leave, "state", "child_state")
        if (child := child_of(self._child)) is not None:
            yield from find_hook_problems(node, child)

    def make(self) -> Subgraph:
        """Return the body."""
        return Subgraph(plan_of(self._child), self._enter, self._leave)


class Subgraph:
    """A graph as the body of a node: its nodes run, stop and commit as the nodes around it do.

    An attempt goes on where the one before has failed inside.  What leads back out of it is called again when that
    fails, and no node of the child with it: the child has come to its end by then.
    """

    __slots__ = ("_enter", "_leave", "child", "uses_context")

    def __init__(self, child: Plan[Any], enter: Callable[..., Any], leave: Callable[..., Any]) -> None:
        self.child = child
        self.uses_context = child.uses_context
        self._enter = enter
        self._leave = leave

    def waits(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths to the nodes in it after which a thread waits."""
        return self.child.waits()

    def describe(self, define: Callable[[Plan[Any]], dict[str, Any]]) -> dict[str, Any]:
        """Return what its node has in a definition beyond what every node has."""
        return {"kind": "subgraph", "child": define(self.child)}

    async def attempt(self, level: Level[Any], node: Node) -> Any:
        """Go inside, or on inside, and come out with the node's state."""
        inside = level.inside
        if inside is None:
            state = await consult_state(level, "enter", self.child.codec.cls, self._enter, isolate(level.state))
            if level.journal.is_stored:
                self._check_savable(state)
            inside = go_inside(level, node, self.child, state)
            inside.node, inside.after_wait = self.child.entry, level.after_wait
        if inside.node is not None:
            result = await inside.walk()
            if isinstance(result, Interrupted):
                raise PausedError(result)
            inside.last, inside.node, inside.state = inside.node.name, None, result.state
        states = isolate(level.state), isolate(inside.state)
        return await consult_state(level, "leave", level.state_class, self._leave, *states)

    def _check_savable(self, state: Any) -> None:
        """Refuse a state that cannot be saved, rather now than at the first stop inside, after nodes have run.

        Raises:
            LevelFailedError: It is so.
        """
        try:
            check_json(self.child.codec.dump(state))
        except InvalidInputError as error:
            text = "the state that enter returned cannot be saved"
            raise LevelFailedError(FailureCode.INVALID_STATE, text, error) from error


def go_inside(outer: Level[Any], node: Node, plan: Plan[C], state: C) -> Level[C]:
    """Return a new level inside a subgraph's node, with that state; nothing says yet at which node it stands."""
    journal = InnerJournal(plan, outer, node.name)
    path = f"{outer.path}{node.name}\0"
    inside = Level(plan, outer.thread_id, journal, outer.stop, outer.shown_metadata, outer.clock, path, outer.emitter)
    inside.state = state
    outer.inside = inside
    return inside
