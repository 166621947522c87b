"""Heads as two fields of a thread's hash.

``head`` is what a commit is judged by, as text that a script takes apart without a parser: sequence, latest whole row,
token, expiry, external, closing, ID of the commit that took the lease, write IDs, owner.  ``facts`` is what is listed,
written with each row, as a JSON array: updated, state, due, graph ID, graph version, metadata.

Times in facts are written by `moment`: the numbers of a script are doubles, which round after the year 2255.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from strata_core.errors import CorruptCheckpointError
from strata_core.rows import Head, NewRow
from strata_redis._calls import HEADS, Answer, Call
from strata_redis._keys import Keys, moment, time_of

__all__ = ["facts_of", "head_from", "heads_call", "heads_from"]

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def facts_of(row: NewRow) -> bytes:
    """Return what is listed of a thread, as stored."""
    due = None if row.due is None else moment(row.due)
    facts = (moment(row.updated), row.state, due, row.graph_id, row.graph_version, dict(row.metadata))
    return _ENCODE(facts).encode()


def head_from(thread_id: str, head: bytes, facts: bytes | None, now: int, record: bytes | None = None) -> Head:
    """Return the head that the fields of a thread hold.

    Args:
        thread_id: The thread.
        head: Its field ``head``.
        facts: Its field ``facts``; None for a head without rows, or where only the lease matters.
        now: The server's clock.
        record: Of its latest row, for the envelope.

    Raises:
        CorruptCheckpointError: The fields are not what a commit writes.
    """
    try:
        sequence, whole_at, token, expires, external, closing, lease_id, write_ids, owner = head.split(b" ", 8)
        found = Head(
            thread_id,
            int(sequence),
            int(whole_at),
            bytes.fromhex(write_ids.decode()),
            external=external == b"1",
            token=int(token),
            owner=owner.decode(),
            expires=int(expires),
            lease_id=bytes.fromhex(lease_id.decode()),
            closing=closing == b"1",
            now=now,
        )
        if facts is not None:
            updated, found.state, due, found.graph_id, found.graph_version, found.metadata = json.loads(facts)
            found.updated = time_of(updated)
            found.due = None if due is None else time_of(due)
        if record is not None:
            found.envelope = record.split(b" ", 3)[3]
    except (ValueError, TypeError, IndexError) as error:
        raise CorruptCheckpointError(thread_id, None, f"has a head that cannot be read: {error}") from error
    return found


def heads_call(keys: Keys, bucket: int, threads: Sequence[bytes], *, records: bool) -> Call:
    """Return the call that reads heads of one bucket."""
    return Call(
        keys.tags[bucket], (b"1" if records else b"0",), HEADS, [keys.thread(bucket, thread) for thread in threads]
    )


def heads_from(answer: Answer, threads: Sequence[bytes]) -> list[Head | None]:
    """Return the heads that such a call found, None for a thread that has none."""
    assert isinstance(answer, list)
    now = int(answer[0])  # type: ignore[arg-type]  # what the script returns
    heads: list[Head | None] = []
    for at, thread in enumerate(threads):
        head, facts, record = answer[1 + 3 * at : 4 + 3 * at]
        if head is None:
            heads.append(None)
        else:
            heads.append(head_from(thread.decode(), head, facts, now, record))  # type: ignore[arg-type]  # bytes
    return heads
