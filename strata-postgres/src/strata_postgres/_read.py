"""The reads of one thread: each one statement, so each one snapshot and one round trip."""

from __future__ import annotations

from typing import Final

from strata_postgres._heads import NOW, READ

__all__ = ["BLOBS", "HEAD", "LATEST", "LATEST_OF_ALL", "RANGE"]

HEAD: Final = f"SELECT {READ}, {NOW} FROM {{s}}.strata_heads AS h WHERE h.thread_id = %s"  # noqa: S608
_ROW: Final = "r.sequence, r.whole_at, r.write_id, r.version, r.envelope, r.body"
LATEST: Final = f"""
SELECT {_ROW}
FROM {{s}}.strata_heads AS h
CROSS JOIN LATERAL (
    SELECT * FROM {{s}}.strata_rows AS r
    WHERE r.thread = h.thread AND r.sequence BETWEEN h.whole_at AND h.sequence OFFSET 0) AS r
WHERE h.thread_id = %(thread_id)s
ORDER BY r.sequence
"""  # noqa: S608
LATEST_OF_ALL: Final = f"""
SELECT h.thread_id, {_ROW}
FROM {{s}}.strata_heads AS h
CROSS JOIN LATERAL (
    SELECT * FROM {{s}}.strata_rows AS r
    WHERE r.thread = h.thread AND r.sequence BETWEEN h.whole_at AND h.sequence OFFSET 0) AS r
WHERE h.thread_id = ANY (%s::text[])
ORDER BY h.thread_id, r.sequence
"""  # noqa: S608
RANGE: Final = f"""
SELECT {_ROW}
FROM {{s}}.strata_heads AS h
JOIN {{s}}.strata_rows AS f ON f.thread = h.thread AND f.sequence = %(first)s
CROSS JOIN LATERAL (
    SELECT * FROM {{s}}.strata_rows AS r
    WHERE r.thread = h.thread AND r.sequence BETWEEN f.whole_at AND least(h.sequence, %(last)s) OFFSET 0) AS r
WHERE h.thread_id = %(thread_id)s
ORDER BY r.sequence
"""  # noqa: S608
BLOBS: Final = """
SELECT b.digest, b.content
FROM {s}.strata_heads AS h
JOIN {s}.strata_blobs AS b ON b.thread = h.thread
WHERE h.thread_id = %s AND b.digest = ANY (%s::text[])
"""
