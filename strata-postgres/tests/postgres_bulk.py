"""A hundred thousand threads, made by the server itself."""

from __future__ import annotations

from typing import Final

from postgres_support import EXAMPLE_TIME, query

from strata_postgres._facets import (
    ALL,
    DUE,
    DUE_AT,
    LAG,
    LEASED,
    RUNNING,
    STATES,
    graph_facet,
    graph_version_facet,
    pair_facet,
    version_facet,
)

__all__ = ["GAP", "THREADS", "fill"]

THREADS: Final = 100_000
GAP: Final = 20_000
"""Microseconds between the threads' times of update: fifty saves a second."""

_HEADS: Final = f"""
INSERT INTO strata_heads(thread, updated, place, token, expires, sequence, whole_at, state, external, closing,
                         thread_id, write_ids, owner, lease_id, facets, due, graph_id, graph_version, metadata)
SELECT n, updated, CASE state WHEN {RUNNING} THEN updated - n * 7919 % {LAG} ELSE updated END,
       CASE WHEN leased THEN n ELSE 0 END, CASE WHEN leased THEN 4102444800000000 ELSE 0 END, 0, 0, state, false, false,
       't' || n, decode(lpad(to_hex(n), 16, '0'), 'hex'), '', '',
       ARRAY[{ALL}, CASE n % 2 WHEN 0 THEN {pair_facet("tenant", "acme")} ELSE {pair_facet("tenant", "else")} END,
             CASE n WHEN 7 THEN {pair_facet("order", "7")} ELSE 1000 + n END,
             CASE WHEN n <= 40 THEN {graph_facet("rare")} ELSE {graph_facet("common")} END,
             CASE WHEN n <= 40 THEN {graph_version_facet("rare", "1")} ELSE {graph_version_facet("common", "2")} END,
             CASE WHEN n <= 40 THEN {version_facet("1")} ELSE {version_facet("2")} END]
       || CASE WHEN due IS NULL THEN '{{}}'::bigint[] ELSE ARRAY[{DUE}, {DUE_AT}] END
       || CASE WHEN leased THEN ARRAY[{LEASED}] ELSE '{{}}'::bigint[] END,
       due, CASE WHEN n <= 40 THEN 'rare' ELSE 'common' END, CASE WHEN n <= 40 THEN '1' ELSE '2' END,
       jsonb_build_object('tenant', CASE n % 2 WHEN 0 THEN 'acme' ELSE 'else' END, 'order', n::text)
FROM (SELECT n, {EXAMPLE_TIME} + n * {GAP} AS updated, state, state = {RUNNING} AND n % 100 = 0 AS leased,
             CASE state WHEN {STATES["interrupted"]} THEN {EXAMPLE_TIME} + n * 1000 END AS due
      FROM (SELECT n, (ARRAY[{RUNNING}, {STATES["interrupted"]}, {STATES["interrupted"]}, {STATES["completed"]},
                             {STATES["failed"]}])[1 + (n / 10) % 5] AS state
            FROM generate_series(1::bigint, {THREADS}) AS n) AS a) AS b
"""
_LISTING: Final = f"""
INSERT INTO strata_listing(facet, state, place, thread_id)
SELECT f, h.state, CASE f WHEN {DUE_AT} THEN h.due ELSE h.place END, h.thread_id
FROM strata_heads AS h CROSS JOIN LATERAL unnest(h.facets) AS f ORDER BY 1, 2, 3
"""
_ROWS: Final = """
INSERT INTO strata_rows
SELECT h.thread, 0, 0, h.write_ids, '1.7.0', '{"status":"?"}', '{"step":1}' FROM strata_heads AS h
"""


def fill(url: str) -> None:
    """Put the threads into a store that is set up, as if each had saved once."""
    for statement in (_HEADS, _LISTING, _ROWS):
        query(url, statement)
