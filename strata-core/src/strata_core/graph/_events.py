"""What a streamed run tells, one event after the other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from strata_core.graph._results import RunResult
from strata_core.records import ThreadState

__all__ = [
    "CheckpointSaved",
    "Emitted",
    "NodeFailed",
    "NodeFinished",
    "NodeRetrying",
    "NodeStarted",
    "RunEvent",
    "RunFinished",
]

S = TypeVar("S")


@attrs.frozen
class NodeStarted:
    """An attempt at a node begins.

    Attributes:
        thread_id: The thread.
        path: What the node is inside of, from the outermost graph inwards, ``()`` for that itself: names of subgraph
            nodes, as in `LevelSignals`, of parallel groups and their branches, of maps and the numbers of their items.
        node: The node; in a parallel group also a branch, by its name, and in a map an item, by its number from 0.
        attempt: Which attempt, from 1.  Branches and items count those of the node that they are inside of.
    """

    thread_id: str
    path: tuple[str, ...]
    node: str
    attempt: int


@attrs.frozen
class NodeFinished:
    """A node has returned a state, and that is committed: what follows starts from it.

    Where that writes a row, the row is saved, and `CheckpointSaved` has come just before.  Branches, items and what is
    inside of them are committed by the node around them.

    Attributes:
        thread_id: The thread.
        path: What the node is inside of; see `NodeStarted`.
        node: The node, branch or item.
        state: The state, as the event's own: to change it changes nothing for the run.  It is one of the graph that the
            node is in, so of the streamed graph's own type where `path` is ``()``.
    """

    thread_id: str
    path: tuple[str, ...]
    node: str
    state: Any


@attrs.frozen
class NodeRetrying:
    """An attempt has failed, and another one follows; its `NodeStarted` comes after the delay.

    Attributes:
        thread_id: The thread.
        path: What the node is inside of; see `NodeStarted`.
        node: The node.
        attempt: Which attempt has failed.
        error: Why.
        delay: How long the next one waits.
    """

    thread_id: str
    path: tuple[str, ...]
    node: str
    attempt: int
    error: BaseException = attrs.field(eq=False, repr=False)
    delay: timedelta


@attrs.frozen
class NodeFailed:
    """A node has failed for good, or what follows it: its router, its timer, or the saving of its state.

    Attributes:
        thread_id: The thread.
        path: What the node is inside of; see `NodeStarted`.
        node: The node, branch or item.
        attempt: Which attempt was the last.
        error: Why.
        fallback: The node that takes over; None when the level fails with it.
    """

    thread_id: str
    path: tuple[str, ...]
    node: str
    attempt: int
    error: BaseException = attrs.field(eq=False, repr=False)
    fallback: str | None = None


@attrs.frozen
class Emitted:
    """Something that a node has told with `NodeContext.emit`, such as a piece of text.

    Attributes:
        thread_id: The thread.
        path: What the node is inside of; see `NodeStarted`.
        node: The node or branch.
        value: What it gave: the object itself, not a copy.
    """

    thread_id: str
    path: tuple[str, ...]
    node: str
    value: Any


@attrs.frozen
class CheckpointSaved:
    """A row of the thread's log is saved.

    Attributes:
        thread_id: The thread.
        sequence: Its place in the log.
        state: The thread's state with it.
    """

    thread_id: str
    sequence: int
    state: ThreadState


@attrs.frozen
class RunFinished(Generic[S]):
    """The run has come to its end: always the last event, once.

    Attributes:
        result: What `run` or `resume` would have returned.
    """

    result: RunResult[S]


RunEvent: TypeAlias = (
    NodeStarted | NodeFinished | NodeRetrying | NodeFailed | Emitted | CheckpointSaved | RunFinished[S]
)
"""What a `RunStream` yields: one of these, for `match`."""
