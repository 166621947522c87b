"""A node that is several handlers at once, each starting from the same state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any

from strata_core._guess import did_you_mean
from strata_core._validation import check_thread_id
from strata_core.errors import InvalidInputError
from strata_core.graph._apart import walk_apart
from strata_core.graph._attempt import NodeReturnError, call_in_thread, consult_state
from strata_core.graph._children import (
    child_of,
    find_concurrency_problems,
    find_function_problems,
    find_parallel_waits,
    plan_of,
)
from strata_core.graph._context import NodeContext, visit_key
from strata_core.graph._copying import isolate
from strata_core.graph._fan_out import FanOut
from strata_core.graph._handlers import Handler, HandlerError, inspect_handler
from strata_core.graph._level import Level
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._problems import GraphProblem, ProblemCode

__all__ = ["Group", "GroupDraft"]


class GroupDraft:
    """One call of `add_parallel_group`, apart from what every node has.

    `state` is the class of the graph's states.
    """

    __slots__ = ("_blocking", "_branches", "_limit", "_reducer", "_state")

    def __init__(self, branches: Any, reducer: Any, limit: Any, blocking: Any, state: type) -> None:
        self._branches = dict(branches) if isinstance(branches, Mapping) else branches
        self._reducer = reducer
        self._limit = limit
        self._blocking = blocking
        self._state = state

    def find_problems(self, node: Any) -> Iterable[GraphProblem]:
        """Yield what is wrong with it."""
        yield from find_function_problems(node, "the reducer", self._reducer, "before", "results")
        yield from find_concurrency_problems(node, self._limit)
        if not isinstance(self._branches, dict) or not self._branches:
            text = f"the branches of node {node!r} must be handlers by their names, at least one"
            yield GraphProblem(ProblemCode.INVALID_BRANCH, node, text)
            return
        yield from self._blocking_problems(node, self._branches)
        for name, branch in self._branches.items():
            try:
                check_thread_id(name, "name")
            except InvalidInputError as error:
                text = f"the name of branch {name!r} of node {node!r} {error.problem}"
                yield GraphProblem(ProblemCode.INVALID_NAME, node, text)
            yield from self._branch_problems(node, f"branch {name!r} of node {node!r}", branch)

    def _blocking_problems(self, node: Any, branches: dict[Any, Any]) -> Iterable[GraphProblem]:
        names = self._blocking
        if isinstance(names, str) or not isinstance(names, Collection):
            text = f"blocking of node {node!r} must be names of branches, such as ['A', 'B'], not {names!r}"
            yield GraphProblem(ProblemCode.INVALID_BRANCH, node, text)
            return
        for name in names:
            if name not in branches:
                hint = did_you_mean(name, branches)
                text = f"blocking of node {node!r} names {name!r}, which is no branch of it{hint}"
                yield GraphProblem(ProblemCode.INVALID_BRANCH, node, text)
            elif child_of(branches[name]) is not None or _is_async(branches[name]):
                text = f"branch {name!r} of node {node!r} is async or a graph; blocking is for def handlers"
                yield GraphProblem(ProblemCode.INVALID_HANDLER, node, text)

    def _branch_problems(self, node: Any, what: str, branch: object) -> Iterable[GraphProblem]:
        if (child := child_of(branch)) is not None:
            state = child.state_class
            if state is not None and state is not self._state:
                text = f"{what} is a graph of {state.__name__}, not of {self._state.__name__}"
                yield GraphProblem(ProblemCode.INVALID_CHILD, node, text)
            yield from find_parallel_waits(node, what, child)
            return
        try:
            inspect_handler(branch)
        except HandlerError as error:
            hint = "; compile it first" if hasattr(branch, "compile") else ""
            yield GraphProblem(ProblemCode.INVALID_HANDLER, node, f"{what} {error}{hint}")

    def make(self) -> Group:
        """Return the body."""
        branches = [
            Branch(name, plan_of(branch) if child_of(branch) else inspect_handler(branch), name in self._blocking)
            for name, branch in self._branches.items()
        ]
        return Group(branches, self._reducer, self._limit)


def _is_async(branch: object) -> bool:
    try:
        return inspect_handler(branch).is_async
    except HandlerError:
        return False


class Branch:
    """One of the handlers, or graphs, of a group."""

    __slots__ = ("blocking", "name", "work")

    def __init__(self, name: str, work: Handler | Plan[Any], blocking: bool) -> None:
        self.name = name
        self.work = work
        self.blocking = blocking

    @property
    def uses_context(self) -> bool:
        """Whether anything in it is given a context."""
        return self.work.wants_context if isinstance(self.work, Handler) else self.work.uses_context

    def describe(self, define: Callable[[Plan[Any]], dict[str, Any]]) -> dict[str, Any]:
        """Return it as a definition has it."""
        child = {"child": define(self.work)} if isinstance(self.work, Plan) else {}
        return {"name": self.name, **({"blocking": True} if self.blocking else {}), **child}


class Group:
    """Several branches at once as the body of a node; a reducer makes one state of theirs."""

    __slots__ = ("_branches", "_limit", "_reducer", "uses_context")

    def __init__(self, branches: Sequence[Branch], reducer: Callable[..., Any], limit: int | None) -> None:
        self._branches = branches
        self._reducer = reducer
        self._limit = limit
        self.uses_context = any(branch.uses_context for branch in branches)

    def waits(self) -> Iterator[tuple[str, ...]]:
        """Yield nothing: no branch waits."""
        return iter(())

    def describe(self, define: Callable[[Plan[Any]], dict[str, Any]]) -> dict[str, Any]:
        """Return what its node has in a definition beyond what every node has."""
        branches = [branch.describe(define) for branch in self._branches]
        limit = {} if self._limit is None else {"max_concurrency": self._limit}
        return {"kind": "group", "branches": branches, **limit}

    async def attempt(self, level: Level[Any], node: Node) -> Any:
        """Run every branch, and return what the reducer makes of their states."""
        branches = self._branches
        fan_out: FanOut[Any] = FanOut(level.stop, lambda number: f"branch {branches[number].name!r}")
        path = f"{level.path}{node.name}\0"

        def run(number: int) -> Coroutine[Any, Any, Any]:
            return _run(level, fan_out, path, branches[number])

        emitter = level.emitter
        job = run if emitter is None else emitter.jobs(level, node, lambda number: branches[number].name, run)
        results = await level.stop.guard(fan_out.run(len(branches), job, self._limit))
        return await consult_state(
            level, "the reducer", level.state_class, self._reducer, isolate(level.state), results
        )


async def _run(level: Level[Any], fan_out: FanOut[Any], path: str, branch: Branch) -> Any:
    """Run a branch on a state of its own, and return the state that it comes to."""
    work, state = branch.work, isolate(level.state)
    if isinstance(work, Plan):
        return await walk_apart(level, fan_out, work, state, path + branch.name)
    ctx = _context(level, fan_out, path, branch) if work.wants_context else None
    if branch.blocking:
        result = await fan_out.guard(call_in_thread(work, state, ctx), only_lost=True)
    else:
        result = work.call(state) if ctx is None else work.call(state, ctx)
        if work.is_async or hasattr(result, "__await__"):
            result = await result
    if not isinstance(result, level.state_class):
        raise NodeReturnError(
            f"branch {branch.name!r} returned {type(result).__name__}, not {level.state_class.__name__}"
        )
    return result


def _context(level: Level[Any], fan_out: FanOut[Any], path: str, branch: Branch) -> NodeContext[Any]:
    emitter = level.emitter
    return NodeContext(
        level.thread_id,
        branch.name,
        level.attempt,
        level.shown_decision,
        level.shown_metadata,
        fan_out.token,
        visit_key(level.thread_id, path + branch.name, level.trail),
        None if emitter is None else emitter.writer(path, branch.name),
    )
