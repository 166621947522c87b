"""What a row takes from a checkpoint besides its state."""

from __future__ import annotations

from strata_core._validation import check_moment
from strata_core.codec._record_encoder import encode_envelope
from strata_core.records import Checkpoint
from strata_core.rows import NewRow

__all__ = ["read_facts"]


def read_facts(checkpoint: Checkpoint) -> tuple[str, bytes, NewRow]:
    """Return the thread, the envelope without its version, and a row that still lacks its version and body.

    Raises:
        InvalidInputError: A field breaks a rule; names it.
    """
    envelope, updated = encode_envelope(checkpoint)
    status: str = checkpoint.status._value_
    due = None if checkpoint.wait is None else checkpoint.due_at
    graph = checkpoint.graph
    row = NewRow(
        "",
        True,
        b"",
        b"",
        status,
        status if checkpoint.resumed_at is None else "resumed",
        updated,
        None if due is None else check_moment(due, "wait.due_at"),
        None if graph is None else graph.id,
        None if graph is None else graph.version,
        dict(checkpoint.metadata) if checkpoint.metadata else {},
    )
    return checkpoint.thread_id, envelope, row
