"""Heads as rows of `strata_heads`."""

from __future__ import annotations

from typing import Any, Final

from strata_core.rows import Head
from strata_postgres._facets import STATE_NAMES

__all__ = ["COLUMNS", "NOW", "READ", "head_from"]

COLUMNS: Final = (
    "thread_id",
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
"""What `head_from` takes, in this order, and after it the clock."""
READ: Final = ", ".join(f"h.{column}" for column in COLUMNS)
NOW: Final = "(extract(epoch FROM statement_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint"
"""The server's clock when the statement came, which is one moment for all that it reads."""


def head_from(record: tuple[Any, ...], *, envelope: bytes = b"") -> Head:
    """Return the head that a record of `COLUMNS` and the clock holds."""
    (thread_id, sequence, whole_at, write_ids, state, updated, due, graph_id, graph_version, metadata) = record[:10]
    (external, token, owner, expires, lease_id, closing, now) = record[10:17]
    return Head(
        thread_id,
        sequence,
        whole_at,
        write_ids,
        STATE_NAMES[state],
        updated,
        due,
        graph_id,
        graph_version,
        {} if metadata is None else metadata,
        external,
        token,
        owner,
        expires,
        lease_id,
        closing,
        now,
        envelope,
    )
