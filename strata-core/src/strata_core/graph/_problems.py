"""What can be wrong with a graph."""

from __future__ import annotations

from enum import StrEnum

import attrs

__all__ = ["GraphProblem", "ProblemCode"]


class ProblemCode(StrEnum):
    """What is wrong with a graph, for programs."""

    NO_NODES = "STRATA_ERR_NO_NODES"
    """The graph has no nodes."""
    INVALID_NAME = "STRATA_ERR_INVALID_NAME"
    """A node's name is no str, is empty or too long, or has a NUL or a lone surrogate."""
    DUPLICATE_NODE = "STRATA_ERR_DUPLICATE_NODE"
    """Two nodes have one name."""
    INVALID_HANDLER = "STRATA_ERR_INVALID_HANDLER"
    """A handler, a router, a delay, a reducer, or what leads into a child graph or out of it, cannot be called with
    what it is given."""
    INVALID_CHILD = "STRATA_ERR_INVALID_CHILD"
    """The child of a subgraph or a map, or a branch of a group, is no compiled graph that can be one there."""
    INVALID_BRANCH = "STRATA_ERR_INVALID_BRANCH"
    """The branches of a group are no handlers by names, or none; or a name among the blocking ones is none of them."""
    INVALID_CONCURRENCY = "STRATA_ERR_INVALID_CONCURRENCY"
    """A `max_concurrency` is no int, or less than 1."""
    PARALLEL_WAIT = "STRATA_ERR_PARALLEL_WAIT"
    """A boundary, an event wait or a timer stands in a branch of a group or the child of a map, at any depth."""
    INNER_HOOK = "STRATA_ERR_INNER_HOOK"
    """The child of a subgraph has an `on_resume` or an `on_interrupted`, which only the outermost graph has."""
    INVALID_RETRY = "STRATA_ERR_INVALID_RETRY"
    """The `retry` of a node is no `RetryPolicy`."""
    DANGLING_EDGE = "STRATA_ERR_DANGLING_EDGE"
    """An edge, target, reject or timeout route, wait, fallback or the entry names a node that does not exist."""
    CONFLICTING_EDGES = "STRATA_ERR_CONFLICTING_EDGES"
    """A node has more than one way on that is always taken."""
    NO_TARGETS = "STRATA_ERR_NO_TARGETS"
    """A conditional edge has no targets, or one of them twice."""
    DUPLICATE_ENTRY = "STRATA_ERR_DUPLICATE_ENTRY"
    """The entry is set twice."""
    DUPLICATE_WAIT = "STRATA_ERR_DUPLICATE_WAIT"
    """A node has two waits."""
    INVALID_EVENT_TYPE = "STRATA_ERR_INVALID_EVENT_TYPE"
    """The event type of a wait is no str, is empty or too long, or has a NUL or a lone surrogate."""
    INVALID_TIMEOUT = "STRATA_ERR_INVALID_TIMEOUT"
    """A timeout or a delay is no timedelta, is negative or longer than a century; or a timeout route has no timeout."""
    UNREACHABLE_NODE = "STRATA_ERR_UNREACHABLE_NODE"
    """No path leads from the entry to a node."""
    NO_TERMINAL = "STRATA_ERR_NO_TERMINAL"
    """Every path from a node loops back: no run that comes there can end."""
    FALLBACK_CYCLE = "STRATA_ERR_FALLBACK_CYCLE"
    """Fallbacks lead back to a node that has failed."""
    UNSUPPORTED_TYPE = "STRATA_ERR_UNSUPPORTED_TYPE"
    """The state type holds a type without a JSON form."""
    MALFORMED_DEFINITION = "STRATA_ERR_MALFORMED_DEFINITION"
    """The text of a definition is no JSON in UTF-8, or has a key twice."""
    INVALID_DEFINITION = "STRATA_ERR_INVALID_DEFINITION"
    """A definition lacks a key, has one that nobody knows, or a value of another type."""
    DEFINITION_VERSION = "STRATA_ERR_DEFINITION_VERSION"
    """A definition is of a version that this release does not read."""


@attrs.frozen
class GraphProblem:
    """One thing that is wrong with a graph.

    Attributes:
        code: What is wrong.
        node: The node at fault; None when it is the whole graph.
        text: What is wrong and what to do, for people.
        path: Where in a definition that graph is: the names of the nodes, and branches, around it, outermost first.
            Empty for the definition itself, and for a graph that is compiled, whose children are compiled already.
    """

    code: ProblemCode
    node: str | None
    text: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"in {' / '.join(map(repr, self.path))}: " if self.path else ""
        return f"{self.code}: {where}{self.text}"
