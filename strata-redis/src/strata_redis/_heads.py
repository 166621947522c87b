"""Heads as two fields of a thread's hash, and the records of its rows.

``head`` is what a commit is judged by, packed, so that a script takes it apart in one step: `HEAD`, then the write IDs,
the size of the lease's owner in 4 bytes and the owner, then the *marks*.  ``facts`` is what the index is made from,
written where it changes: state, due time, graph ID and version, and keys and values of the metadata in turns, each with
a NUL behind it.  The due time is a `moment`, the graph's texts have a ``+`` before them; all three are empty for None.
Marks are the metadata of the engine, in the same form: they change with each save and are not in the index.  A row's
record is `RECORD`, the version of its form, a space, and its envelope.

Times that are listed are written by `moment`: the numbers of a script are doubles, which round after the year 2255.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from strata_core.errors import CorruptCheckpointError, InvalidInputError
from strata_core.rows import WRITE_ID_SIZE, Head, NewRow
from strata_redis._calls import HEADS, Answer, Call
from strata_redis._index import UNINDEXED
from strata_redis._keys import Keys, moment, time_of

__all__ = ["HEAD", "RECORD", "facts_of", "head_from", "heads_call", "heads_from"]

HEAD: Final = struct.Struct(">qqqqBB8s16sB")
"""Sequence, latest whole row, token, expiry, external, closing, ID of the commit that took the lease, time of update by
`moment`, bytes of write IDs."""
RECORD: Final = struct.Struct(">q8s")
"""The whole row that the row builds on, and its write ID."""


def facts_of(row: NewRow) -> tuple[bytes, bytes]:
    """Return facts and marks of a thread.

    Raises:
        InvalidInputError: A text has a NUL.
    """
    graph, version = row.graph_id, row.graph_version
    parts = [
        row.state,
        "" if row.due is None else moment(row.due),
        "" if graph is None else "+" + graph,
        "" if version is None else "+" + version,
    ]
    own: list[str] = []
    for pair in row.metadata.items():
        (own if pair[0].startswith(UNINDEXED) else parts).extend(pair)
    facts, marks = "\0".join([*parts, ""]), "\0".join([*own, ""]) if own else ""
    if facts.count("\0") + marks.count("\0") != len(parts) + len(own):
        raise InvalidInputError("row", "has a NUL in its state, graph or metadata")
    return facts.encode(), marks.encode()


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
        sequence, whole_at, token, expires, external, closing, lease_id, updated, size = HEAD.unpack_from(head)
        at = HEAD.size + size
        end = at + 4 + int.from_bytes(head[at : at + 4])
        if len(head) < end or size % WRITE_ID_SIZE:
            raise ValueError(f"{len(head)} bytes with {size} of write IDs")
        found = Head(
            thread_id,
            sequence,
            whole_at,
            head[HEAD.size : at],
            external=external == 1,
            token=token,
            owner=head[at + 4 : end].decode(),
            expires=expires,
            lease_id=lease_id if token else b"",
            closing=closing == 1,
            now=now,
        )
        if facts is not None:
            found.updated = time_of(updated)
            state, due, graph_id, graph_version, *pairs, _ = facts.decode().split("\0")
            found.state = state
            found.due = time_of(due) if due else None
            found.graph_id = graph_id[1:] if graph_id else None
            found.graph_version = graph_version[1:] if graph_version else None
            pairs += head[end:].decode().split("\0")[:-1]
            found.metadata = dict(zip(pairs[::2], pairs[1::2], strict=True))
        if record is not None:
            found.envelope = record[RECORD.size :].split(b" ", 1)[1]
    except (ValueError, IndexError, struct.error) as error:
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
