"""The write primitive: a commit, and what it comes to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import attrs

from strata_core.rows._head import NOTHING, WRITE_ID_SIZE, WRITE_IDS_KEPT, Head, NewRow

__all__ = [
    "ANY",
    "NOTHING",
    "WRITE_IDS_KEPT",
    "WRITE_ID_SIZE",
    "Commit",
    "Committed",
    "Drop",
    "Extend",
    "Refusal",
    "Refused",
    "Take",
    "new_write_id",
]

ANY: Final = -2
"""As `Commit.after`: whatever is latest."""


_spare: Final[list[bytes]] = []


def new_write_id() -> bytes:
    """Return 8 bytes of ``os.urandom``; drawn by the hundred, since each draw is a call to the system."""
    try:
        return _spare.pop()
    except IndexError:
        block = os.urandom(128 * WRITE_ID_SIZE)
        _spare.extend(block[at : at + WRITE_ID_SIZE] for at in range(WRITE_ID_SIZE, len(block), WRITE_ID_SIZE))
        return block[:WRITE_ID_SIZE]


os.register_at_fork(after_in_child=_spare.clear)  # two processes with the same IDs would take each other's rows for own


@attrs.define(eq=False)
class Take:
    """Take the lease, if no live one is in the way.

    Attributes:
        owner: Who takes it.
        ttl: How long it lives, in microseconds on the backend's clock.
        closing: Take it to erase the thread; the head refuses every other write until that is finished.
    """

    owner: str
    ttl: int
    closing: bool = False


@attrs.define(eq=False)
class Extend:
    """Let the held lease live for `ttl` microseconds from now on."""

    ttl: int


@attrs.define(eq=False)
class Drop:
    """Give the held lease back."""


@attrs.define(eq=False)
class Commit:
    """One atomic step on one thread: what must hold, then what changes.

    Saves, conditional and fenced saves, acquire, renew, release and purge are all commits.

    Attributes:
        thread_id: The thread.
        write_id: 8 random bytes that name this step; the same when it is repeated.
        after: The sequence that must be the latest; `ANY`, or `NOTHING` for a thread without rows.
        after_id: The write ID that the latest row must also have; empty for any.
        token: The live lease that must be held; 0 for none asked.
        free: No live lease may be held.
        row: The row to append; never together with `erase`.
        blobs: Digest and content of the row's new blobs, for a backend with blobs of its own; none without a row.  A
            digest is ``sha256:`` and 64 lower-case hex digits.  A blob may come again with a later row.
        external: From now on an external blob store may hold blobs of the thread.
        lease: What to do with the lease.
        erase: Rows, own blobs and head go; the head stays, without rows, when a lease is taken in the same step.
    """

    thread_id: str
    write_id: bytes
    after: int = ANY
    after_id: bytes = b""
    token: int = 0
    free: bool = False
    row: NewRow | None = None
    blobs: Sequence[tuple[str, bytes]] = ()
    external: bool = False
    lease: Take | Extend | Drop | None = None
    erase: bool = False


@attrs.define(eq=False)
class Committed:
    """The step was done, now or by an earlier attempt.

    Attributes:
        sequence: Of the row that the commit appended; else of the latest row, `NOTHING` without one.
        token: The thread's lease afterwards; 0 for none, and 0 when a repeated commit's own lease is lost.
        expires: When that expires, in microseconds since 1970 UTC.
        repeated: An earlier attempt had done it: the backend changes nothing.
        head: The head to put; None to remove it.  Only `decide` fills it in, for the backend that called it.
    """

    sequence: int
    token: int = 0
    expires: int = 0
    repeated: bool = False
    head: Head | None = None


class Refusal(StrEnum):
    """Why a commit was refused."""

    CHANGED = "changed"
    """Another row is the latest."""
    HELD = "held"
    """A live lease is in the way."""
    LOST = "lost"
    """The lease that must be held is not."""
    CLOSING = "closing"
    """A purge has begun to erase the thread."""


@attrs.define(eq=False)
class Refused:
    """The step was not done; nothing changed.

    Attributes:
        why: The reason.
        head: The head it was judged by; None for none.  At least `sequence`, `write_ids`, `token`, `owner`,
            `expires`, `external`, `closing` and `now` are filled in.
        maybe_done: An earlier attempt of this very commit may have been done, and be what it is refused for.  Core
            sets it; a backend never repeats a commit.
    """

    why: Refusal
    head: Head | None
    maybe_done: bool = False
