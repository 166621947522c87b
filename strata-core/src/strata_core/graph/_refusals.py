"""Refusals: nothing has run, and nothing was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.graph._journal import Journal, RefusedError
from strata_core.graph._keys import CANCEL_REASON
from strata_core.graph._plan import Plan
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._results import CancelReason, Failed, FailureCode
from strata_core.ports import CheckpointStore
from strata_core.records import Checkpoint, CheckpointStatus, LogEntry, Revision

__all__ = [
    "named",
    "refuse",
    "refuse_changed",
    "refuse_ended",
    "refuse_existing",
    "refuse_foreign",
    "refuse_held",
    "refuse_missing",
    "refuse_overtaken",
    "refuse_run",
    "refuse_unknown",
]

S = TypeVar("S")


def refuse(thread_id: str, code: FailureCode, text: str, detail: str | None = None) -> Failed:
    """Refuse something about a thread, which the text goes on from."""
    return Failed(thread_id, code, f"thread '{thread_id}' {text}", detail=detail)


def refuse_missing(plan: Plan[S], thread_id: str) -> Failed:
    """Refuse a thread without a checkpoint."""
    text = "has no checkpoint"
    if plan.checkpointing is CheckpointPolicy.BOUNDARIES:
        text += "; a run that completes keeps none under CheckpointPolicy.BOUNDARIES"
    return refuse(thread_id, FailureCode.NOT_FOUND, text)


def refuse_foreign(plan: Plan[S], checkpoint: Checkpoint, path: Sequence[str] = ()) -> Failed | None:
    """Refuse a thread of another graph, also one that another graph has had at the `path` to a subgraph.

    Without an identity on either side, nobody can tell.
    """
    identity, graph = plan.identity, checkpoint.graph
    if identity is None or graph is None or graph.id == identity.id:
        return None
    text = f"belongs to graph {graph.id!r}, not to {identity.id!r}"
    if path:
        text = f"stopped inside the subgraph {named(path)} of graph {graph.id!r}, which is {identity.id!r} here"
    return refuse(checkpoint.thread_id, FailureCode.WRONG_GRAPH, text)


def named(path: Sequence[str]) -> str:
    """Return the path to a subgraph, for people."""
    return " / ".join(map(repr, path))


def refuse_unknown(checkpoint: Checkpoint, path: Sequence[str] = (), timeout_route: str | None = None) -> Failed:
    """Refuse a thread that goes on where this graph has no node: at its next node, or at a timeout route.

    Args:
        checkpoint: The record of the level that goes on there.
        path: The path to the subgraph that this level is.
        timeout_route: Where it goes on; None for its next node.
    """
    name, how = (checkpoint.next_node, "") if timeout_route is None else (timeout_route, "has timed out and ")
    where = f"the subgraph {named(path)}" if path else "this graph"
    text = (
        f"{how}goes on at node {name!r}, which {where} does not have; "
        "keep a node of that name for the threads that wait, or end the thread with graph.end()"
    )
    return refuse(checkpoint.thread_id, FailureCode.UNKNOWN_NODE, text)


def refuse_ended(checkpoint: Checkpoint) -> Failed:
    """Refuse a thread that was ended, by somebody or by its timeout."""
    timed_out = checkpoint.metadata.get(CANCEL_REASON) == CancelReason.TIMED_OUT
    text = "timed out, and was ended by that" if timed_out else "was ended"
    return refuse(checkpoint.thread_id, FailureCode.ENDED, text)


def refuse_held(thread_id: str) -> Failed:
    """Refuse a thread that somebody holds."""
    text = f"somebody holds a live lease on thread '{thread_id}'; wait until it is given back or expires"
    return Failed(thread_id, FailureCode.LEASE_HELD, text)


def refuse_changed(thread_id: str, expected: Revision, latest: LogEntry | None) -> Failed:
    """Refuse a thread whose latest checkpoint is not the one that a call expects; None for one that cannot be read."""
    text = f"has gone on since checkpoint {expected}, which was expected; look at it again"
    if latest is not None:
        checkpoint = latest.checkpoint
        text += f": it is {checkpoint.state.value} at {checkpoint.suspended_node!r}, checkpoint {latest.revision}"
    return refuse(thread_id, FailureCode.CHANGED, text)


async def refuse_overtaken(
    store: CheckpointStore, entry: LogEntry, refused: RefusedError, expected: Revision | None = None
) -> Failed:
    """Tell who was faster than a call that was to go on from `entry`, or expected it."""
    thread_id = entry.checkpoint.thread_id
    overtaken = Failed(thread_id, FailureCode.ALREADY_RESUMED, f"somebody else has gone on with thread '{thread_id}'")
    if expected is not None:
        overtaken = refuse_changed(thread_id, expected, None)
    try:
        latest = await store.load(thread_id)
    except (CorruptCheckpointError, SchemaVersionError):
        return overtaken
    if latest is None:
        return refuse(thread_id, FailureCode.NOT_FOUND, "was purged meanwhile")
    # A lease is seen before the row that was written with it.
    if refused.held and latest.revision == entry.revision:
        return refuse_held(thread_id)
    if expected is not None:
        return refuse_changed(thread_id, expected, latest)
    return refuse_ended(latest.checkpoint) if latest.checkpoint.status is CheckpointStatus.ENDED else overtaken


def refuse_existing(thread_id: str, node: str | None = None) -> Failed:
    """Refuse to begin a thread that exists.

    Args:
        thread_id: The thread.
        node: Where the run stopped when it turned out that another one was faster; None when nothing has run.
    """
    text = f"thread '{thread_id}' exists already; resume it, or give the new execution an ID of its own"
    if node is not None:
        text += "; another run began it meanwhile, and this one wrote nothing"
    return Failed(thread_id, FailureCode.THREAD_EXISTS, text, node)


async def refuse_run(thread_id: str, journal: Journal[Any], refused: RefusedError) -> Failed:
    """Tell why a run could not take its thread."""
    # A lease is seen before the row below it; only one without a row is in the way of a thread that is to be new.
    if journal.fresh and (not refused.held or await journal.latest() is not None):
        return refuse_existing(thread_id)
    return refuse_held(thread_id)
