"""A batch of commits as the arguments of one call, and its answer as outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from strata_core.errors import InvalidInputError
from strata_core.rows import ANY, Commit, Committed, Extend, Head, Refusal, Refused, Take
from strata_postgres._facets import STATES, facets_of

__all__ = ["CALL", "arguments", "outcomes", "text_array"]

CALL: Final = "SELECT {s}.strata_commit_1(%s::text[], %s::json, %b::bytea)"
"""The one statement of a batch.  Its plan is nothing, so it need not be prepared."""

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HEX: Final = "\\x"
_NO_TOKEN: Final = 2**63
"""Beyond what the database counts to."""


def text_array(texts: Sequence[str]) -> str:
    """Return an array of texts as PostgreSQL reads it; the driver would take 7 us an element."""
    return (
        '{"' + '","'.join([text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]) + '"}' if texts else "{}"
    )


def arguments(batch: Sequence[Commit]) -> tuple[list[Commit], tuple[str, str, bytes]]:
    """Return the batch in the order in which threads are locked, and the arguments of `CALL` for it.

    Rows and blobs go as one piece of bytes, which nobody has to escape or to parse; the rest goes as JSON, in which
    what a commit does not have takes no room.

    Raises:
        InvalidInputError: Two commits are of one thread, or a state is not known.
    """
    # Python orders texts by code point, which is the order of their UTF-8 bytes, and so of the collation "C".
    ordered = sorted(batch, key=lambda commit: commit.thread_id) if len(batch) > 1 else list(batch)
    ids = [commit.thread_id for commit in ordered]
    if len(set(ids)) != len(ids):
        raise InvalidInputError("batch", "has two commits of one thread")
    contents: list[bytes] = []
    start = 1
    items = []
    for commit in ordered:
        item = _item(commit)
        row = commit.row
        if row is not None:
            item["start"] = start
            parts = [row.envelope, row.body, *[content for _, content in commit.blobs]]
            contents += parts
            start += sum(map(len, parts))
        items.append(item)
    return ordered, (text_array(ids), _ENCODE(items), b"".join(contents))


def _item(commit: Commit) -> dict[str, Any]:
    item: dict[str, Any] = {"thread_id": commit.thread_id, "write_id": _HEX + commit.write_id.hex()}
    if commit.after != ANY:
        item["after"] = commit.after
        if commit.after_id:
            item["after_id"] = _HEX + commit.after_id.hex()
    if commit.token:
        item["token"] = commit.token if abs(commit.token) < _NO_TOKEN else -1  # neither is ever given
    for name in ("free", "external", "erase"):
        if getattr(commit, name):
            item[name] = True
    if commit.lease is not None:
        _add_lease(item, commit)
    if commit.row is not None:
        _add_row(item, commit)
    return item


def _add_lease(item: dict[str, Any], commit: Commit) -> None:
    lease = commit.lease
    if isinstance(lease, Take):
        item |= {"lease": "take", "owner": lease.owner, "ttl": lease.ttl, "closing": lease.closing}
    elif isinstance(lease, Extend):
        item |= {"lease": "extend", "ttl": lease.ttl}
    else:
        item["lease"] = "drop"


def _add_row(item: dict[str, Any], commit: Commit) -> None:
    row = commit.row
    assert row is not None
    state = STATES.get(row.state)
    if state is None:
        raise InvalidInputError(
            "row.state", f"is {row.state!r}, which this release does not know; upgrade strata-postgres"
        )
    item["version"] = row.version
    item["whole"] = row.whole
    item["envelope"] = len(row.envelope)
    item["body"] = len(row.body)
    item["state"] = state
    item["updated"] = row.updated
    item["facets"] = facets_of(row)
    if row.due is not None:
        item["due"] = row.due
    if row.graph_id is not None:
        item["graph_id"] = row.graph_id
    if row.graph_version is not None:
        item["graph_version"] = row.graph_version
    if row.metadata:
        item["metadata"] = dict(row.metadata)
    if commit.blobs:
        item["digests"] = [digest for digest, _ in commit.blobs]
        item["sizes"] = [len(content) for _, content in commit.blobs]


def outcomes(batch: Sequence[Commit], ordered: Sequence[Commit], answer: str) -> list[Committed | Refused]:
    """Return the outcomes that the function's answer tells, in the order of the batch."""
    found = {commit.thread_id: _outcome(commit, part) for commit, part in zip(ordered, json.loads(answer), strict=True)}
    return [found[commit.thread_id] for commit in batch]


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
