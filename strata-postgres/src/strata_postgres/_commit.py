"""A batch of commits as the arguments of one call, and its answer as outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from psycopg.pq import Format

from strata_core.errors import InvalidInputError
from strata_core.rows import ANY, Commit, Committed, Extend, Head, Refusal, Refused, Take
from strata_postgres._function import DIGEST_SIZE, NUMBERS
from strata_postgres._row_facts import ENCODE, escaped, facts_of

__all__ = ["BEYOND", "CALL", "FORMATS", "arguments", "more_of", "outcomes", "text_array"]

CALL: Final = "SELECT {s}.strata_commit_1($1, $2, $3)"
"""The one statement of a batch.  Its plan is nothing, so it need not be prepared."""
FORMATS: Final = (Format.TEXT, Format.TEXT, Format.BINARY)
"""Of its arguments.  A NUL, which core lets through nowhere, would leave a literal without its end: refused."""

BEYOND: Final = 2**62
"""No sequence and no token is ever so large; a larger number would not fit a ``bigint``."""
_ROWLESS: Final = ('{\\"state\\":0', bytes(DIGEST_SIZE))
"""The facts of a commit without a row, and their digest."""
_FREE: Final = ',\\"free\\":true'


def text_array(texts: Sequence[str]) -> str:
    """Return an array of texts as PostgreSQL reads it; the driver would take 7 us an element."""
    return '{"' + '","'.join(map(escaped, texts)) + '"}' if texts else "{}"


def arguments(batch: Sequence[Commit]) -> tuple[Sequence[int], tuple[bytes, bytes, bytes]]:
    """Return the order in which threads are locked, as positions in the batch, and the arguments of `CALL`.

    They are what `_function` says of `NUMBERS` and `TEXTS`.  Envelopes, bodies and blobs go as one piece of bytes,
    which nobody has to escape or to parse.

    Raises:
        InvalidInputError: Two commits are of one thread, or a state is not known.
    """
    order = range(1) if len(batch) == 1 else _order(batch)
    numbers: list[str] = []
    texts: list[str] = []
    contents: list[bytes] = []
    start = 1
    for place in order:
        commit = batch[place]
        row = commit.row
        after = commit.after
        parts = [commit.write_id, b"", commit.after_id if after != ANY else b""]
        if row is None:
            facts, parts[1] = _ROWLESS
            version = "NULL"
            updated = envelope = body = 0
            ordinary = whole = False
        else:
            known = facts_of(row)
            facts, parts[1] = known.literal, known.digest
            version = f'"{escaped(row.version)}"'
            updated, envelope, body = row.updated, len(row.envelope), len(row.body)
            ordinary, whole = row.state == "running", row.whole
            parts += row.envelope, row.body
        if commit.lease is not None or commit.blobs or commit.external or commit.erase:
            ordinary = False
            facts += escaped(more_of(commit))
            parts += [content for _, content in commit.blobs]
        elif commit.free:
            facts += _FREE
        numbers.append(
            f"{min(after, BEYOND)},{commit.token if abs(commit.token) < BEYOND else -1},{whole:d},{updated},"
            f"{start},{8 + DIGEST_SIZE + len(parts[2])},{envelope},{body},{ordinary:d}"
        )
        texts.append(f'"{escaped(commit.thread_id)}",{version},"{facts}}}"')
        contents += parts
        start += sum(map(len, parts))
    return order, (b"{%b}" % ",".join(numbers).encode(), b"{%b}" % ",".join(texts).encode(), b"".join(contents))


def _order(batch: Sequence[Commit]) -> Sequence[int]:
    ids = [commit.thread_id for commit in batch]
    if len(set(ids)) != len(ids):
        raise InvalidInputError("batch", "has two commits of one thread")
    # Python orders texts by code point, which is the order of their UTF-8 bytes, and so of the collation "C".
    return sorted(range(len(ids)), key=ids.__getitem__)


def more_of(commit: Commit) -> str:
    """Return what no ordinary save has, as more of the JSON object of its facts."""
    if not (commit.blobs or commit.external or commit.erase):
        lease = commit.lease
        if type(lease) is Take:
            return _take(commit.free, lease.owner, lease.ttl, lease.closing)
        if lease is None:
            return ',"free":true' if commit.free else ""
    return _more(commit)


@lru_cache(maxsize=64)
def _take(free: bool, owner: str, ttl: int, closing: bool) -> str:
    return _more(Commit("", b"", free=free, lease=Take(owner, ttl, closing)))


def _more(commit: Commit) -> str:
    more: dict[str, Any] = {name: True for name in ("free", "external", "erase") if getattr(commit, name)}
    lease = commit.lease
    if isinstance(lease, Take):
        more |= {"lease": "take", "owner": lease.owner, "ttl": lease.ttl, "closing": lease.closing}
    elif isinstance(lease, Extend):
        more |= {"lease": "extend", "ttl": lease.ttl}
    elif lease is not None:
        more["lease"] = "drop"
    if commit.blobs:
        more["digests"] = [digest for digest, _ in commit.blobs]
        more["sizes"] = [len(content) for _, content in commit.blobs]
    return "," + ENCODE(more)[1:-1]


def outcomes(batch: Sequence[Commit], order: Sequence[int], answer: bytes) -> list[Committed | Refused]:
    """Return the outcomes that the function's answer tells, in the order of the batch."""
    found: list[Any] = [None] * len(batch)
    for at, *part in json.loads(b"[%b]" % answer):
        place = order[at // len(NUMBERS)]
        found[place] = _outcome(batch[place], part)
    return found


def _outcome(commit: Commit, part: list[Any]) -> Committed | Refused:
    if type(part[0]) is int:
        sequence, token, expires, repeated = part
        return Committed(sequence, token, expires, repeated == 1)
    why = Refusal(part[0])
    if len(part) == 1:
        return Refused(why, None)
    _, sequence, write_ids, token, owner, expires, external, closing, now = part
    head = Head(
        commit.thread_id,
        sequence,
        write_ids=bytes.fromhex(write_ids),
        token=token,
        owner=owner,
        expires=expires,
        external=external,
        closing=closing,
        now=now,
    )
    return Refused(why, head)
