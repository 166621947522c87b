"""The reads of one thread: each one statement, so each one snapshot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from typing import Final

from strata_core.clock import Clock, micros
from strata_core.rows import Head, Row
from strata_sqlite._heads import READ, head_from

__all__ = ["BLOBS", "HEAD", "LATEST", "RANGE", "read_blobs", "read_head", "read_rows"]

HEAD: Final = f"SELECT {READ} FROM strata_heads AS h WHERE h.thread_id = ?"  # noqa: S608
_ROW: Final = "r.sequence, r.whole_at, r.write_id, r.version, CAST(r.envelope AS BLOB), CAST(r.body AS BLOB)"
LATEST: Final = f"""
SELECT {_ROW}
FROM strata_heads AS h
CROSS JOIN strata_rows AS r ON r.thread = h.thread AND r.sequence BETWEEN h.whole_at AND h.sequence
WHERE h.thread_id = ?
ORDER BY r.sequence
"""  # noqa: S608
RANGE: Final = f"""
SELECT {_ROW}
FROM strata_heads AS h
CROSS JOIN strata_rows AS f ON f.thread = h.thread AND f.sequence = ?2
CROSS JOIN strata_rows AS r
    ON r.thread = h.thread AND r.sequence BETWEEN f.whole_at AND min(h.sequence, coalesce(?3, h.sequence))
WHERE h.thread_id = ?1
ORDER BY r.sequence
"""  # noqa: S608
BLOBS: Final = """
SELECT b.digest, b.content
FROM strata_heads AS h
CROSS JOIN strata_blobs AS b ON b.thread = h.thread AND b.digest IN (SELECT value FROM json_each(?2))
WHERE h.thread_id = ?1
"""


def read_head(db: sqlite3.Connection, clock: Clock, thread_id: str) -> Head | None:
    """Return a thread's head; None for none."""
    record = db.execute(HEAD, (thread_id,)).fetchone()
    return None if record is None else head_from(record, micros(clock.now()))


def read_rows(db: sqlite3.Connection, thread_id: str, first: int | None, last: int | None) -> list[Row]:
    """Return rows as `RowBackend.read` promises."""
    statement, values = (LATEST, (thread_id,)) if first is None else (RANGE, (thread_id, first, last))
    records = db.execute(statement, values)
    return [Row(*record) for record in records.fetchall()]


def read_blobs(db: sqlite3.Connection, thread_id: str, digests: Collection[str]) -> dict[str, bytes]:
    """Return those of a thread's blobs that are there; a file of version 1 has none."""
    if db.execute("PRAGMA user_version").fetchone()[0] < 2:
        return {}
    return dict(db.execute(BLOBS, (thread_id, json.dumps(list(digests)))).fetchall())
