"""What a node is told besides the state."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Final, Generic, TypeVar

import attrs

from strata_core.graph._cancellation import CancellationToken
from strata_core.records import HumanDecision

__all__ = ["NodeContext", "Trail", "visit_key"]

S = TypeVar("S")


@attrs.frozen
class NodeContext(Generic[S]):
    """What a node is told besides the state.

    Attributes:
        thread_id: The thread.
        node: The name of the node; in a parallel group, of the branch.
        attempt: Which attempt this is, from 1; for a branch, that of its group.
        decision: The human decision in effect: the latest one, whichever boundary it answered; None before the first.
            Neither an event nor a timeout changes it.  Inside a subgraph, only an answer to one of the subgraph's own
            boundaries, which the nodes around it do not see.
        metadata: The run's own metadata, without the engine's keys.
        cancellation: Cancelled when the run must stop, whatever the reason.  An async node is interrupted by itself; a
            ``def`` node and a blocking one can look at it.
        idempotency_key: Names this visit of the thread to this node.  The same for every attempt, also when the thread
            failed or was cancelled here and is resumed; another one when the thread comes to the node again in a loop,
            and in another `run`, also one of the same thread ID.  Every subgraph node, branch and item of a map has
            keys of its own.  Give it to whatever must not be done twice, such as a bank.
    """

    thread_id: str
    node: str
    attempt: int
    decision: HumanDecision | None
    metadata: Mapping[str, str]
    cancellation: CancellationToken
    idempotency_key: str
    _emit: Callable[[Any], Awaitable[None]] | None = attrs.field(default=None, eq=False, repr=False)

    def emit(self, value: Any) -> Awaitable[None]:
        """Tell whoever streams the run something, such as a piece of text: it comes as `Emitted`.  Nobody else sees it.

        It never waits, and may be called from the node's thread.  What an async node tells without awaiting anything
        waits in memory: ``await ctx.emit(piece)`` goes on when the stream has room.

        Args:
            value: Anything; handed over as it is, so it must not be changed afterwards.
        """
        return _NOBODY if self._emit is None else self._emit(value)


class _Nobody:
    """Stands for a consumer who is never waited for."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield  # what makes it a generator


_NOBODY: Final[Awaitable[None]] = _Nobody()


class Trail:
    """How far a thread has come, in a form that whoever loads it finds again; shared by all levels of a run.

    Attributes:
        anchor: Names the row that the thread stood at when it came here; with `visit_key`, this names visits.
        step: How many nodes have committed since that row.
    """

    __slots__ = ("anchor", "step")

    def __init__(self, anchor: bytes) -> None:
        self.anchor = anchor
        self.step = 0

    @classmethod
    def begin(cls, is_used: bool) -> Trail:
        """Return the trail of a run that no row tells of yet."""
        return cls(os.urandom(8) if is_used else b"")

    def follow(self, anchor: bytes, step: int) -> None:
        """Go on from a row, or from where a visit was cut short."""
        self.anchor, self.step = anchor, step


def visit_key(thread_id: str, node: str, trail: Trail) -> str:
    """Name one visit of a thread to a node.

    The place of a visit is told by the row the thread stood at when it came, and the number of nodes that have
    committed since.  A row's write ID is stored with it, so whoever loads the thread derives the same key: under
    `EVERY_NODE` the row just before the visit is its anchor.  A row that stops a thread in the middle of a visit
    (`failed`, `cancelled`), and the first row of whoever goes on from there, carry the visit's anchor and step in the
    metadata, because they are no step of the thread.  Commits reset both, so that the next visit has another key.

    Args:
        thread_id: The thread.
        node: The node; inside others, the names that lead to it, each ended by a NUL, before its own.
        trail: Where the thread stands.  Its anchor is the write ID of a row, which nothing else has; random without
            one.
    """
    from hashlib import blake2b

    text = f"{len(thread_id.encode())}:{thread_id}{node}".encode()
    return blake2b(text, digest_size=16, key=trail.anchor, salt=trail.step.to_bytes(8, "big")).hexdigest()
