"""Heads as rows of `strata_heads`, and the statements that write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from strata_core.rows import Head
from strata_sqlite._schema import STATES

__all__ = [
    "ALL",
    "LEASE",
    "PROGRESS",
    "READ",
    "fields",
    "head_from",
    "metadata_from",
    "metadata_text",
    "put",
    "values_list",
]

# Statements are put together from these names and from counts only; every value is bound.

ALL: Final = (
    "sequence",
    "whole_at",
    "write_ids",
    "state",
    "updated",
    "due",
    "graph_id",
    "graph_version",
    "metadata",
    "external",
    "token",
    "owner",
    "expires",
    "lease_id",
    "closing",
)
"""Every column that can change, in the order of `fields`."""
PROGRESS: Final = ALL[:5]
"""What an ordinary save changes: of the indexes, only `strata_heads_by_state` has to be written."""
LEASE: Final = ALL[9:]
"""What a commit without a row changes: of the indexes, only `strata_heads_by_lease` has to be written."""
READ: Final = ", ".join(f"h.{column}" for column in ("thread", "thread_id", *ALL))
"""What `head_from` takes."""

_STATE_NAMES: Final = {number: state for state, number in STATES.items()}
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def metadata_text(metadata: Mapping[str, str]) -> str | None:
    """Return metadata as stored: JSON, or NULL when there is none."""
    return _ENCODE(dict(metadata)) if metadata else None


def metadata_from(text: str | None) -> dict[str, str]:
    """Return stored metadata."""
    return {} if text is None else json.loads(text)


def head_from(record: tuple[Any, ...], now: int, *, metadata: bool = True, envelope: bytes = b"") -> Head:
    """Return the head that a record of `READ` holds; `metadata` False leaves that empty, as a judge needs none."""
    (_, thread_id, sequence, whole_at, write_ids, state, updated, due, graph_id, graph_version, pairs) = record[:11]
    (external, token, owner, expires, lease_id, closing) = record[11:17]
    return Head(
        thread_id,
        sequence,
        whole_at,
        write_ids,
        _STATE_NAMES.get(state, state),
        updated,
        due,
        graph_id,
        graph_version,
        metadata_from(pairs) if metadata else {},
        external != 0,
        token,
        owner,
        expires,
        lease_id,
        closing != 0,
        now,
        envelope,
    )


def fields(head: Head, metadata: str | None) -> tuple[Any, ...]:
    """Return the values of `ALL`."""
    return (
        head.sequence,
        head.whole_at,
        head.write_ids,
        STATES.get(head.state, head.state),
        head.updated,
        head.due,
        head.graph_id,
        head.graph_version,
        metadata,
        head.external,
        head.token,
        head.owner,
        head.expires,
        head.lease_id,
        head.closing,
    )


def values_list(width: int, count: int) -> str:
    """Return `count` parenthesised lists of `width` parameters."""
    return ", ".join(["(" + ", ".join(["?"] * width) + ")"] * count)


@cache
def put(columns: tuple[str, ...], count: int) -> str:
    """Return the statement that puts `count` heads: number, thread ID and `ALL` of each.

    `columns` are what a head that is there takes over; with none, the heads are new.  (An upsert: with fifty heads it
    takes half the time of ``UPDATE ... FROM``.)
    """
    names = ", ".join(("thread", "thread_id", *ALL))
    statement = f"INSERT INTO strata_heads({names}) VALUES {values_list(len(ALL) + 2, count)}"  # noqa: S608
    if not columns:
        return statement
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return f"{statement} ON CONFLICT (thread) DO UPDATE SET {changes}"
