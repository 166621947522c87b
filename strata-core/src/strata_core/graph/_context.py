"""What a node is told besides the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import attrs

from strata_core.graph._cancellation import CancellationToken
from strata_core.records import HumanDecision

__all__ = ["NodeContext", "visit_key"]

S = TypeVar("S")


@attrs.frozen
class NodeContext(Generic[S]):
    """What a node is told besides the state.

    Attributes:
        thread_id: The thread.
        node: The name of the node.
        attempt: Which attempt this is, from 1.
        decision: The human decision in effect: the latest one, whichever boundary it answered; None before the first.
            Neither an event nor a timeout changes it.
        metadata: The run's own metadata, without the engine's keys.
        cancellation: Cancelled when the run must stop, whatever the reason.  An async node is interrupted by itself; a
            ``def`` node and a blocking one can look at it.
        idempotency_key: Names this visit of the thread to this node.  The same for every attempt, also when the thread
            failed or was cancelled here and is resumed; another one when the thread comes to the node again in a loop,
            and in another `run`, also one of the same thread ID.  Give it to whatever must not be done twice, such as a
            bank.
    """

    thread_id: str
    node: str
    attempt: int
    decision: HumanDecision | None
    metadata: Mapping[str, str]
    cancellation: CancellationToken
    idempotency_key: str


def visit_key(thread_id: str, node: str, anchor: bytes, step: int) -> str:
    """Name one visit of a thread to a node.

    The place of a visit is told by the row the thread stood at when it came, and the number of nodes that have
    committed since.  A row's write ID is stored with it, so whoever loads the thread derives the same key: under
    `EVERY_NODE` the row just before the visit is its anchor.  A row that stops a thread in the middle of a visit
    (`failed`, `cancelled`), and the first row of whoever goes on from there, carry the visit's anchor and step in the
    metadata, because they are no step of the thread.  Commits reset both, so that the next visit has another key.

    Args:
        thread_id: The thread.
        node: The node.
        anchor: The write ID of the row the thread stood at, which nothing else has; random without one.
        step: How many nodes have committed since that row.
    """
    from hashlib import blake2b

    text = f"{len(thread_id.encode())}:{thread_id}{node}".encode()
    return blake2b(text, digest_size=16, key=anchor, salt=step.to_bytes(8, "big")).hexdigest()
