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
    "ENDING",
    "LEASE",
    "PROGRESS",
    "READ",
    "fields",
    "head_from",
    "lease",
    "metadata_from",
    "metadata_text",
    "progress",
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
ENDING: Final = PROGRESS + LEASE
"""What a save changes with which the lease is taken or given back."""
READ: Final = ", ".join(f"h.{column}" for column in ("thread", "thread_id", *ALL))
"""What `head_from` takes."""

_NULL: Final = bytearray()
"""Stands for NULL; in these columns no other value is a blob."""
_PLACES: Final = dict.fromkeys(("due", "graph_id", "graph_version", "metadata"), "nullif(?, x'')")
_STATE_NAMES: Final = {number: state for state, number in STATES.items()}
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def metadata_text(metadata: Mapping[str, str]) -> str | None:
    """Return metadata as stored: JSON, or NULL when there is none."""
    return _ENCODE(dict(metadata)) if metadata else None


def metadata_from(text: str | None) -> dict[str, str]:
    """Return stored metadata."""
    return {} if text is None else json.loads(text)


def head_from(record: tuple[Any, ...], now: int, *, envelope: bytes = b"") -> Head:
    """Return the head that a record of `READ` holds."""
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
        metadata_from(pairs),
        external != 0,
        token,
        owner,
        expires,
        lease_id,
        closing != 0,
        now,
        envelope,
    )


# The driver looks for an adapter for each value that is no plain int, float, str or bytearray, which costs thousands of
# instructions.  So nothing that is bound is bytes, a bool or None: NULL is bound as `_NULL`.


def progress(thread: int, head: Head) -> tuple[Any, ...]:
    """Return the thread number and the values of `PROGRESS`."""
    state = head.state
    return (
        thread,
        head.sequence,
        head.whole_at,
        bytearray(head.write_ids),
        STATES.get(state, state),
        head.updated,
    )


def lease(thread: int, head: Head) -> tuple[Any, ...]:
    """Return the thread number and the values of `LEASE`."""
    return (
        thread,
        1 if head.external else 0,
        head.token,
        head.owner,
        head.expires,
        bytearray(head.lease_id),
        1 if head.closing else 0,
    )


def fields(thread: int, head: Head, metadata: str | None) -> tuple[Any, ...]:
    """Return the thread number and the values of `ALL`."""
    return (
        *progress(thread, head),
        _NULL if head.due is None else head.due,
        _NULL if head.graph_id is None else head.graph_id,
        _NULL if head.graph_version is None else head.graph_version,
        _NULL if metadata is None else metadata,
        *lease(thread, head)[1:],
    )


def values_list(width: int, count: int) -> str:
    """Return `count` parenthesised lists of `width` parameters."""
    return ", ".join(["(" + ", ".join(["?"] * width) + ")"] * count)


@cache
def put(columns: tuple[str, ...], count: int) -> str:
    """Return the statement that puts `count` heads: the thread number and `columns` of each, which it takes over.

    With no columns the heads are new, and given by number, `ALL` and thread ID.  (An upsert: with fifty heads it takes
    half the time of ``UPDATE ... FROM``.  The heads are there, so of the columns that are not given nothing is stored,
    and any value that is not NULL will do.)
    """
    every = ("thread", *ALL, "thread_id")
    given = (every[0], *columns) if columns else every
    others = [column for column in every if column not in given]
    values = f"({', '.join([_PLACES.get(column, '?') for column in given] + ['0'] * len(others))})"
    statement = f"INSERT INTO strata_heads({', '.join((*given, *others))}) VALUES {', '.join([values] * count)}"  # noqa: S608
    if not columns:
        return statement
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return f"{statement} ON CONFLICT (thread) DO UPDATE SET {changes}"
