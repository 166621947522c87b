"""The shapes of `--json`: documented in the README, and stable.

A key of ours is always there, and null when it does not apply.  A checkpoint is the record of `schema/`, whichever way
it is stored, and parts of records (wait, graph, decision) look as they do there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from strata_core.records import Checkpoint, GraphIdentity, Lease, ThreadPage, ThreadSummary, Wait

if TYPE_CHECKING:
    from strata_core.blobs import BlobCheck

__all__ = ["lease_json", "orphans_json", "page_json", "record_json"]


def record_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the record of a checkpoint as a JSON value."""
    from strata_core.codec import encode_record

    return encode_record(checkpoint)


def lease_json(lease: Lease | None) -> Any:
    """Return a live lease."""
    if lease is None:
        return None
    return {"owner": lease.owner, "token": lease.token, "expires_at": _time(lease.expires_at)}


def page_json(page: ThreadPage) -> Any:
    """Return one page of threads."""
    return {"threads": [_thread(thread) for thread in page.threads], "next_cursor": page.next_cursor}


def _thread(thread: ThreadSummary) -> Any:
    return {
        "thread_id": thread.thread_id,
        "sequence": thread.sequence,
        "revision": str(thread.revision),
        "state": thread.state.value,
        "status": thread.status.value,
        "updated_at": _time(thread.updated_at),
        "suspended_node": thread.suspended_node,
        "next_node": thread.next_node,
        "wait": _wait(thread.wait),
        "graph": _graph(thread.graph),
        "metadata": dict(thread.metadata),
        "lease": lease_json(thread.lease),
    }


def orphans_json(checks: Sequence[BlobCheck], before: datetime) -> dict[str, Any]:
    """Return what was found in a blob store."""
    return {
        "before": _time(before),
        "folders": len(checks),
        "blobs": sum(len(check.blobs) for check in checks),
        "orphans": [
            {
                "thread_id": check.thread_id,
                "folder": check.folder,
                "has_thread": check.has_thread,
                "digests": [blob.digest for blob in check.orphans],
                "bytes": sum(blob.size for blob in check.orphans),
                "newest": _time(max(blob.stored_at for blob in check.orphans)),
            }
            for check in checks
            if check.orphans
        ],
    }


def _wait(wait: Wait | None) -> Any:
    if wait is None:
        return None
    due_at = None if wait.due_at is None else _time(wait.due_at)
    members = {"kind": wait.kind.value, "event_type": wait.event_type, "due_at": due_at, "on_timeout": wait.on_timeout}
    return {key: value for key, value in members.items() if value is not None}


def _graph(graph: GraphIdentity | None) -> Any:
    return None if graph is None else {"id": graph.id, "version": graph.version}


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
