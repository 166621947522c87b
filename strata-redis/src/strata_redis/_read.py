"""The reads of one thread."""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any, Final

from strata_core.errors import CorruptCheckpointError, StoreBusyError
from strata_core.rows import Head, Row
from strata_redis._calls import ROWS, Answer, Call
from strata_redis._errors import unavailable
from strata_redis._heads import RECORD, heads_call, heads_from
from strata_redis._keys import Keys
from strata_redis._server import Server

__all__ = ["SLICE", "read_blobs", "read_head", "read_rows"]

SLICE: Final = 8 << 20
"""About how many bytes of rows a script reads before it lets others work."""
ROUNDS: Final = 20
"""How often a read starts over because the thread was purged under it."""


async def read_head(server: Server, keys: Keys, thread_id: str, where: str) -> Head | None:
    """Return a thread's head; None for none."""
    thread = thread_id.encode()
    answer = await _one(server, heads_call(keys, keys.bucket(thread), [thread], records=False), thread_id, where)
    return heads_from(answer, [thread])[0]


async def read_rows(
    server: Server, keys: Keys, thread_id: str, first: int | None, last: int | None, where: str
) -> list[Row]:
    """Return rows as `RowBackend.read` promises.

    What is larger than `SLICE` takes several steps, each of which makes sure that it goes on where the last one ended:
    rows never change, so then they belong to one moment.
    """
    thread = thread_id.encode()
    bucket = keys.bucket(thread)
    names = [keys.thread(bucket, thread)]
    asked = (b"%d" % (-1 if first is None else first), b"%d" % (-1 if last is None else last), b"%d" % SLICE)
    for _ in range(ROUNDS):
        rows: list[Row] = []
        arguments = [*asked, b"-1", b""]
        while True:
            answer: Any = await _one(server, Call(keys.tags[bucket], arguments, ROWS, names), thread_id, where)
            if not answer:
                return []
            if answer[0] < 0:
                break
            start, end = answer[:2]
            rows += [_row(thread_id, start + at // 2 - 1, *answer[at : at + 2]) for at in range(2, len(answer), 2)]
            if not rows or rows[-1].sequence >= end:
                return rows
            latest = rows[-1]
            arguments = [b"0", b"%d" % end, asked[2], b"%d" % (latest.sequence + 1), latest.write_id]
    raise StoreBusyError(f"{where}: thread {thread_id!r} was purged and begun again during each of {ROUNDS} reads")


async def read_blobs(
    server: Server, keys: Keys, thread_id: str, digests: Collection[str], where: str
) -> dict[str, bytes]:
    """Return those of a thread's blobs that are there."""
    if not digests:
        return {}
    thread = thread_id.encode()
    bucket = keys.bucket(thread)
    names = list(digests)
    command = (b"HMGET", keys.thread(bucket, thread), *(name.encode() for name in names))
    answer: Any = await _one(server, Call(keys.tags[bucket], command), thread_id, where)
    return {name: content for name, content in zip(names, answer, strict=True) if content is not None}


async def _one(server: Server, call: Call, thread_id: str, where: str) -> Answer:
    (answer,) = await server.read([call])
    if isinstance(answer, Exception):
        raise unavailable(answer, where, thread_id=thread_id)
    return answer


def _row(thread_id: str, sequence: int, record: bytes | None, body: bytes | None) -> Row:
    if record is None or body is None:
        raise CorruptCheckpointError(thread_id, sequence, "is missing from the thread's hash")
    try:
        whole_at, write_id = RECORD.unpack_from(record)
        version, envelope = record[RECORD.size :].split(b" ", 1)
        return Row(sequence, whole_at, write_id, version.decode(), envelope, body)
    except (ValueError, struct.error) as error:
        raise CorruptCheckpointError(thread_id, sequence, f"has a record that cannot be read: {error}") from error
