"""The write primitive: a batch in one script, or, where scripts must keep to a slot, in one of each bucket."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from strata_core.errors import InvalidInputError
from strata_core.rows import Commit, Committed, Drop, Extend, Refusal, Refused, Take
from strata_redis._calls import COMMIT, Answer, Call
from strata_redis._errors import is_cross_slot, may_have_happened, unavailable
from strata_redis._heads import facts_of, head_from
from strata_redis._keys import Keys, moment
from strata_redis._server import Server

__all__ = ["commit"]

_logger: Final = logging.getLogger("strata_redis")
_LARGEST: Final = 512 << 20
"""Bytes of one value: as much as a server takes unless proto-max-bulk-len says otherwise."""
_MOST_TOKEN: Final = 1 << 53
"""More than any token that is ever given; the numbers of a script are exact up to here."""
_KINDS: Final = {type(None): 0, Take: 1, Extend: 2, Drop: 3}
_HEADER: Final = struct.Struct(">q?ii")
_GROUP: Final = struct.Struct(">iii")
_TERMS: Final = struct.Struct(">8sq?8sqqB?????i16s")
_OUTCOME: Final = struct.Struct(">Bqqq")
_REPEATED: Final = 1
_REFUSALS: Final = {2: Refusal.CHANGED, 3: Refusal.HELD, 4: Refusal.LOST, 5: Refusal.CLOSING}
"""The clock stands where the sequence of others does, and the head in the way is among what follows."""
_IMMORTAL: Final = 6
"""Done, but it will not expire; the reason is among what follows."""


async def commit(
    server: Server, keys: Keys, batch: Sequence[Commit], finished_ttl: int, where: str
) -> list[Committed | Refused]:
    """Judge and do a batch.

    Args:
        server: Where to.
        keys: The store's keys.
        batch: What to do.
        finished_ttl: How many milliseconds a finished thread lives; 0 for ever.
        where: The store, for messages.

    Raises:
        StoreUnavailableError: A server did not answer, or refused.  `maybe_written` when anything may have been done;
            repeated, what was done is recognised.
    """
    buckets: dict[int, list[int]] = {}
    threads = [item.thread_id.encode() for item in batch]
    if len(set(threads)) != len(threads):
        raise InvalidInputError("batch", "has two commits of one thread")
    for at, thread in enumerate(threads):
        buckets.setdefault(keys.bucket(thread), []).append(at)
    terms = [_terms(item) for item in batch]

    def call_for(part: Mapping[int, Sequence[int]]) -> Call:
        header = _HEADER.pack(finished_ttl, server.waits, len(keys.tags), len(part))
        names: list[bytes] = []
        arguments = [b""]
        for bucket, places in part.items():
            header += _GROUP.pack(bucket, keys.skip(bucket), len(places))
            names += keys.of_bucket(bucket)
            for at in places:
                arguments += terms[at]
        arguments[0] = header
        names += [keys.thread(bucket, threads[at]) for bucket, places in part.items() for at in places]
        return Call(keys.tags[next(iter(part))], arguments, COMMIT, names)

    while True:
        spans = server.spans
        parts = [buckets] if spans else [{bucket: places} for bucket, places in buckets.items()]
        answers = await server.run([call_for(part) for part in parts], writes=True)
        if not spans or not is_cross_slot(answers[0]):
            break
        server.spans = False
    outcomes: list[Committed | Refused | None] = [None] * len(batch)
    for part, answer in zip(parts, answers, strict=True):
        order = [at for places in part.values() for at in places]
        if isinstance(answer, Exception):
            raise _failure(answers, [batch[at].thread_id for at in order], where)
        packed, *rest = answer  # type: ignore[misc]  # what the script returns
        more: Iterator[bytes] = iter(rest)  # type: ignore[arg-type]
        for at, came_to in zip(order, _OUTCOME.iter_unpack(packed), strict=True):  # type: ignore[arg-type]
            outcomes[at] = _outcome(batch[at].thread_id, more, *came_to)
    return outcomes  # type: ignore[return-value]  # every place belongs to a bucket


def _terms(item: Commit) -> list[bytes]:
    """Return what the script is told of a commit."""
    lease, row = item.lease, item.row
    kind = _KINDS[type(lease)]
    takes = type(lease) is Take
    terms = _TERMS.pack(
        item.write_id,
        item.after,
        item.after_id != b"",
        item.after_id,
        min(item.token, _MOST_TOKEN),
        lease.ttl if kind in {1, 2} else 0,  # type: ignore[union-attr]  # by its kind
        kind,
        item.free,
        takes and lease.closing,  # type: ignore[union-attr]  # by its kind
        item.erase,
        item.external,
        row is not None and row.whole,
        -1 if row is None else len(item.blobs),
        b"" if row is None else moment(row.updated).encode(),
    )
    if takes:
        terms += lease.owner.encode()  # type: ignore[union-attr]  # by its kind
    if row is None:
        return [terms]
    if " " in row.version:
        raise InvalidInputError("row.version", "must not have a space")
    arguments = [terms, *facts_of(row), row.body, b"%b %b" % (row.version.encode(), row.envelope)]
    for digest, content in item.blobs:
        arguments += (digest.encode(), content)
    if (largest := max(map(len, arguments))) > _LARGEST - 1024:
        raise InvalidInputError("checkpoint", f"has {largest} bytes in one piece, more than Redis stores")
    return arguments


def _outcome(
    thread_id: str, more: Iterator[bytes], kind: int, sequence: int, token: int, expires: int
) -> Committed | Refused:
    if kind in _REFUSALS:
        head, now = next(more), sequence
        return Refused(_REFUSALS[kind], head_from(thread_id, head, None, now) if head else None)
    if kind == _IMMORTAL:
        _logger.warning("thread %r will not expire: %s", thread_id, next(more).decode(errors="replace"))
    return Committed(sequence, token, expires, kind == _REPEATED)


def _failure(answers: Sequence[Answer], thread_ids: Sequence[str], where: str) -> Exception:
    """Return the error of a batch of which at least one part failed."""
    maybe_written = any(may_have_happened(answer) for answer in answers)
    error = next(answer for answer in answers if isinstance(answer, Exception))
    return unavailable(
        error, where, maybe_written=maybe_written, thread_id=thread_ids[0] if len(thread_ids) == 1 else "*"
    )
