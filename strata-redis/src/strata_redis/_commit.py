"""The write primitive: the commits of each bucket in one script, all buckets in one message."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from strata_core.errors import InvalidInputError
from strata_core.rows import Commit, Committed, Drop, Extend, Refusal, Refused, Take
from strata_redis._calls import COMMIT, Answer, Call
from strata_redis._errors import may_have_happened, unavailable
from strata_redis._heads import facts_of, head_from
from strata_redis._keys import EXPIRING, INDEX, TOKENS, Keys
from strata_redis._server import Server

__all__ = ["commit"]

_logger: Final = logging.getLogger("strata_redis")
_LARGEST: Final = 512 << 20
"""Bytes of one value: as much as a server takes unless proto-max-bulk-len says otherwise."""
_MOST_TOKEN: Final = 1 << 62
"""More than any token that is ever given."""
_KINDS: Final = {type(None): 0, Take: 1, Extend: 2, Drop: 3}


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
    ttl = b"%d" % finished_ttl
    calls = []
    for bucket, places in buckets.items():
        tag = keys.tags[bucket]
        names = [tag + INDEX, tag + TOKENS, tag + EXPIRING, *(keys.thread(bucket, threads[at]) for at in places)]
        arguments = [b"%d" % bucket, b"%d" % len(keys.tags), keys.skip(bucket), ttl]
        for at in places:
            _add(arguments, batch[at])
        calls.append(Call(tag, arguments, COMMIT, names))
    outcomes: list[Committed | Refused | None] = [None] * len(batch)
    answers = await server.run(calls)
    for places, answer in zip(buckets.values(), answers, strict=True):
        if isinstance(answer, Exception):
            raise _failure(answers, [batch[place].thread_id for place in places], where)
        assert isinstance(answer, list)
        for at, line in zip(places, answer, strict=True):
            outcomes[at] = _outcome(batch[at].thread_id, line)  # type: ignore[arg-type]  # what the script returns
    return outcomes  # type: ignore[return-value]  # every place belongs to a bucket


def _add(arguments: list[bytes], item: Commit) -> None:
    lease, row = item.lease, item.row
    kind = _KINDS[type(lease)]
    takes = type(lease) is Take
    arguments.append(
        b"%b %d %b %d %d %d %d %d %d %d %d %d"
        % (
            item.write_id.hex().encode(),
            item.after,
            item.after_id.hex().encode(),
            min(item.token, _MOST_TOKEN),
            item.free,
            kind,
            lease.ttl if kind in {1, 2} else 0,  # type: ignore[union-attr]  # by its kind
            takes and lease.closing,  # type: ignore[union-attr]  # by its kind
            item.erase,
            item.external,
            row is not None and row.whole,
            -1 if row is None else len(item.blobs),
        )
    )
    arguments.append(lease.owner.encode() if takes else b"")  # type: ignore[union-attr]  # by its kind
    if row is None:
        return
    if " " in row.version:
        raise InvalidInputError("row.version", "must not have a space")
    arguments += (facts_of(row), row.version.encode(), row.envelope, row.body)
    largest = max(len(row.envelope), len(row.body))
    for digest, content in item.blobs:
        arguments += (digest.encode(), content)
        largest = max(largest, len(content))
    if largest > _LARGEST - 1024:
        raise InvalidInputError("checkpoint", f"has {largest} bytes in one piece, more than Redis stores")


def _outcome(thread_id: str, line: bytes) -> Committed | Refused:
    what, _, rest = line.partition(b" ")
    if what in {b"committed", b"repeated"}:
        sequence, token, expires, *warning = rest.split(b" ", 3)
        if warning:
            _logger.warning("thread %r will not expire: %s", thread_id, warning[0].decode(errors="replace"))
        return Committed(int(sequence), int(token), int(expires), what == b"repeated")
    now, _, head = rest.partition(b" ")
    return Refused(Refusal(what.decode()), head_from(thread_id, head, None, int(now)) if head else None)


def _failure(answers: Sequence[Answer], thread_ids: Sequence[str], where: str) -> Exception:
    """Return the error of a batch of which at least one part failed."""
    maybe_written = any(may_have_happened(answer) for answer in answers)
    error = next(answer for answer in answers if isinstance(answer, Exception))
    return unavailable(
        error, where, maybe_written=maybe_written, thread_id=thread_ids[0] if len(thread_ids) == 1 else "*"
    )
