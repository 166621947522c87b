"""The rule book of a commit."""

from __future__ import annotations

from collections.abc import Callable

from strata_core.rows._commit import (
    ANY,
    NOTHING,
    WRITE_ID_SIZE,
    WRITE_IDS_KEPT,
    Commit,
    Committed,
    Extend,
    Refusal,
    Refused,
    Take,
)
from strata_core.rows._head import Head

__all__ = ["decide"]


def decide(commit: Commit, head: Head | None, now: int, new_token: Callable[[], int]) -> Committed | Refused:
    """Judge a commit by the thread's head, and give the new head.

    The order of the rules is part of the contract:

    1. *Repeated*: a row whose write ID the head knows, or a lease taken by this very write ID.  Comes before every
       condition, so that an attempt whose answer was lost is not told that it conflicts with itself.
    2. *Lost*: a token is asked for, and is not that of a live lease.
    3. *Closing*: a purge has begun.  Only its own token passes, or another purge that takes over an expired one.
    4. *Held*: a live lease is in the way of taking one, or of a commit that wants the thread free.
    5. *Changed*: the latest row is not the expected one, by sequence and write ID.

    Args:
        commit: The step to judge.
        head: The thread's head as of now, read in the same transaction, with `now` filled in, since a refusal shows
            it; None for none.
        now: The backend's clock, in microseconds since 1970 UTC.
        new_token: Gives the next lease token of the whole store; called only when a lease is taken.

    Returns:
        `Committed` with the head to put, or `Refused`.
    """
    lease = commit.lease
    taking = type(lease) is Take
    if head is None:
        if commit.token:
            return Refused(Refusal.LOST, None)
        if commit.after >= 0:
            return Refused(Refusal.CHANGED, None)
        head = Head(commit.thread_id)
        known: Head | None = None
        live = False
    else:
        known = head
        live = head.token != 0 and head.expires > now
        if (repeated := _repeated(commit, head, live)) is not None:
            return repeated
        if commit.token:
            if not live or head.token != commit.token:
                return Refused(Refusal.LOST, head)
        elif head.closing and not (taking and lease.closing and not live):  # type: ignore[union-attr]  # taking
            return Refused(Refusal.CLOSING, head)
        elif live and (commit.free or taking):
            return Refused(Refusal.HELD, head)
        if commit.after != ANY and (
            commit.after != head.sequence or (commit.after_id and head.write_ids[:WRITE_ID_SIZE] != commit.after_id)
        ):
            return Refused(Refusal.CHANGED, head)
    return _apply(commit, head, known, now, new_token)


def _repeated(commit: Commit, head: Head, live: bool) -> Committed | None:
    write_id = commit.write_id
    own_lease = live and head.lease_id == write_id
    if commit.row is None:
        if type(commit.lease) is Take and own_lease:
            return Committed(head.sequence, head.token, head.expires, True, head)
        return None
    ids = head.write_ids
    at = ids.find(write_id)
    while at > 0 and at % WRITE_ID_SIZE:
        at = ids.find(write_id, at + 1)
    if at < 0:
        return None
    sequence = head.sequence - at // WRITE_ID_SIZE
    if type(commit.lease) is Take and not own_lease:
        # The row is there, but the lease taken with it has passed to somebody else: never hand out theirs.
        return Committed(sequence, 0, 0, True, head)
    return Committed(sequence, head.token, head.expires, True, head)


def _apply(commit: Commit, head: Head, known: Head | None, now: int, new_token: Callable[[], int]) -> Committed:
    lease = commit.lease
    token, owner, expires, lease_id, closing = head.token, head.owner, head.expires, head.lease_id, head.closing
    if lease is not None:
        if type(lease) is Take:
            token, owner, expires, lease_id = new_token(), lease.owner, now + lease.ttl, commit.write_id
            closing = closing or lease.closing
        elif type(lease) is Extend:
            expires = now + lease.ttl
        else:
            token, owner, expires, lease_id, closing = 0, "", 0, b"", False
    external = head.external or commit.external
    row = commit.row
    if commit.erase:
        if type(lease) is not Take:
            return Committed(NOTHING)
        new = Head(commit.thread_id)
    elif row is not None:
        sequence = head.sequence + 1
        new = Head(
            commit.thread_id,
            sequence,
            sequence if row.whole else head.whole_at,
            (commit.write_id + head.write_ids)[: WRITE_ID_SIZE * WRITE_IDS_KEPT],
            row.state,
            row.updated,
            row.due,
            row.graph_id,
            row.graph_version,
            row.metadata,
        )
    elif head.sequence == NOTHING and token == 0:
        return Committed(NOTHING)
    else:
        new = Head(
            commit.thread_id,
            head.sequence,
            head.whole_at,
            head.write_ids,
            head.state,
            head.updated,
            head.due,
            head.graph_id,
            head.graph_version,
            head.metadata,
        )
    new.external = external
    new.token, new.owner, new.expires, new.lease_id, new.closing = token, owner, expires, lease_id, closing
    return Committed(new.sequence, token, expires, False, new)
