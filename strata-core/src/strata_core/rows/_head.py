"""What a backend stores: rows, and one head a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

__all__ = ["NOTHING", "RESERVATION", "WRITE_IDS_KEPT", "WRITE_ID_SIZE", "Head", "NewRow", "Row"]

NOTHING: Final = -1
"""As `Commit.after`: the thread has no row yet.  As `Head.sequence`: a head without rows."""
WRITE_ID_SIZE: Final = 8
"""Bytes of a write ID."""
WRITE_IDS_KEPT: Final = 8
"""How many write IDs a head keeps: how many rows back a repeated commit is recognised."""
RESERVATION: Final = ""
"""The owner of a lease that a first save with external blobs takes for as long as it lasts.  Nobody else's: an owner
that a caller gives is not empty."""

# Hot records: plain slotted classes without comparison or freezing cost less to make.  Treat them as immutable.


@attrs.define(eq=False)
class NewRow:
    """A row to append.

    `envelope` and `body` are opaque bytes of UTF-8 JSON text; what a listing needs stands beside them and goes to the
    head.

    Attributes:
        version: The `schema_version` of the record.
        whole: False when the row builds on the one before it.
        envelope: The record without its state.
        body: The state as stored: whole, or the difference from the row before.
        status: The checkpoint's own status.
        state: The thread's state with this row as its latest (`ThreadState` as text).
        updated: The thread's time of update, in microseconds since 1970 UTC.
        due: When the thread must be woken, in microseconds since 1970 UTC; None for never.
        graph_id: The ID of the graph that wrote it.
        graph_version: The version of that graph.
        metadata: The checkpoint's metadata.
    """

    version: str
    whole: bool
    envelope: bytes
    body: bytes
    status: str
    state: str
    updated: int
    due: int | None = None
    graph_id: str | None = None
    graph_version: str | None = None
    metadata: Mapping[str, str] = attrs.field(factory=dict)


@attrs.define
class Row:
    """A stored row.

    Attributes:
        sequence: Its position in the thread's log, from 0.
        whole_at: The sequence of the whole row it builds on; its own when it is whole.
        write_id: The ID of the commit that appended it.
        version: The `schema_version` of the record.
        envelope: As in `NewRow`.
        body: As in `NewRow`.
    """

    sequence: int
    whole_at: int
    write_id: bytes
    version: str
    envelope: bytes
    body: bytes


@attrs.define
class Head:
    """What a backend keeps once a thread, written in the same step as the row.

    A lease without rows makes a head with sequence `NOTHING`: invisible to loads and listings, gone on release.

    Attributes:
        thread_id: The thread.
        sequence: Of the latest row; `NOTHING` without rows.
        whole_at: The latest whole row.
        write_ids: The IDs of the latest rows, newest first, 8 bytes each, at most 8 of them.
        state: The thread's state, as in `NewRow`; empty without rows.
        updated: As in `NewRow`; 0 without rows.
        due: As in `NewRow`.
        graph_id: As in `NewRow`.
        graph_version: As in `NewRow`.
        metadata: Of the latest row.
        external: Whether an external blob store may hold blobs of this thread.
        token: The lease; 0 for none.  A lease stays here after it expired.
        owner: Who took it.
        expires: When it expires, in microseconds since 1970 UTC on the backend's clock.
        lease_id: The ID of the commit that took it.
        closing: A purge has begun to erase the thread and must finish first.
        now: The backend's clock when this head was read; 0 on a head that was not read.
        envelope: Of the latest row; only a listing fills it in.
    """

    thread_id: str
    sequence: int = NOTHING
    whole_at: int = NOTHING
    write_ids: bytes = b""
    state: str = ""
    updated: int = 0
    due: int | None = None
    graph_id: str | None = None
    graph_version: str | None = None
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    external: bool = False
    token: int = 0
    owner: str = ""
    expires: int = 0
    lease_id: bytes = b""
    closing: bool = False
    now: int = 0
    envelope: bytes = b""

    @property
    def write_id(self) -> bytes:
        """The write ID of the latest row; empty without rows."""
        return self.write_ids[:WRITE_ID_SIZE]

    @property
    def is_reserved(self) -> bool:
        """Whether its lease, live or not, is the reservation of a first save."""
        return self.token != 0 and self.owner == RESERVATION

    def is_leased(self, now: int) -> bool:
        """Tell whether a live lease holds the thread at `now`."""
        return self.token != 0 and self.expires > now
