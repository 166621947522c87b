"""Listing heads: few statements in one snapshot, which look at about as many heads as they return.

Two ways lead through the heads, and which is taken is decided by counting, not by statistics that nobody refreshed:

- *By what is rare.*  A filter that has an index of its own (a metadata pair, a graph, due, leased) and that at most
  `RARE` heads pass: they are looked up and sorted.
- *In time order.*  Otherwise the heads are walked along `strata_heads_by_state`, each state's range in order, the
  ranges merged, until the page is full; the other filters are checked on the way, and pass often, or they were rare.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import attrs

from strata_core.clock import Clock, micros
from strata_core.rows import Head, HeadQuery
from strata_sqlite._heads import READ, head_from, metadata_text
from strata_sqlite._schema import STATES

__all__ = ["RARE", "list_heads", "page_statement"]

RARE: Final = 1000
"""Up to so many heads are looked up and sorted."""

_STATES: Final = """
WITH RECURSIVE found(state) AS (
    SELECT min(state) FROM strata_heads
    UNION ALL
    SELECT (SELECT min(h.state) FROM strata_heads AS h WHERE h.state > found.state)
    FROM found WHERE found.state IS NOT NULL)
SELECT state FROM found WHERE state IS NOT NULL
"""
_FILL: Final = f"""
SELECT {READ}, CAST(r.envelope AS BLOB)
FROM json_each(?) AS page
CROSS JOIN strata_heads AS h ON h.thread = page.value
LEFT JOIN strata_rows AS r ON r.thread = h.thread AND r.sequence = h.sequence
ORDER BY page.key
"""  # noqa: S608
_CARRIES: Final = """NOT EXISTS (
    SELECT 1 FROM json_each(?) AS pair WHERE NOT EXISTS (
        SELECT 1 FROM strata_metadata AS m WHERE m.key = pair.key AND m.value = pair.value AND m.thread = h.thread))"""
_RARE_PAIR: Final = """
SELECT pair.key, pair.value FROM json_each(?) AS pair
WHERE (SELECT count(*) FROM (
    SELECT 1 FROM strata_metadata AS m WHERE m.key = pair.key AND m.value = pair.value LIMIT ?)) <= ?
LIMIT 1
"""


@attrs.frozen
class _Term:
    """A condition with its values; and, where it has an index of its own, the tables to begin at."""

    sql: str
    values: tuple[Any, ...]
    source: str = ""


def list_heads(db: sqlite3.Connection, clock: Clock, query: HeadQuery) -> list[Head]:
    """Return heads as `RowBackend.list_heads` promises."""
    if query.states is not None and not query.states:
        return []
    db.execute("BEGIN")
    try:
        now = micros(clock.now())
        statement, values = page_statement(db, query, now)
        threads = [record[0] for record in db.execute(statement, values).fetchall()]
        records = db.execute(_FILL, (json.dumps(threads),)).fetchall()
    finally:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
    return [head_from(record, now, envelope=record[-1] or b"") for record in records]


def page_statement(db: sqlite3.Connection, query: HeadQuery, now: int) -> tuple[str, list[Any]]:
    """Return the statement that selects the numbers of the heads to list, and its values."""
    start = _rare(db, query, now)
    order = "ASC" if query.oldest_first else "DESC"
    if start is not None:
        terms = [*_indexed(query, now), *_window(query), *_others(query, now)]
        if query.states is not None:
            states = _states(db, query)
            terms.append(_Term(f"h.state IN ({', '.join('?' * len(states))})", tuple(states)))
        where = " AND ".join([start.sql, *(term.sql for term in terms)])
        values = [*start.values, *(value for term in terms for value in term.values), query.limit]
        statement = (
            f"SELECT h.thread FROM {start.source} WHERE {where} "  # noqa: S608
            f"ORDER BY h.updated {order}, h.thread_id {order} LIMIT ?"
        )
        return statement, values
    states = _states(db, query)
    window = list(_window(query))
    range_ = (
        "SELECT h.thread, h.updated, h.thread_id FROM strata_heads AS h INDEXED BY strata_heads_by_state "  # noqa: S608
        f"WHERE {' AND '.join(['h.state = ?', *(term.sql for term in window)])}"
    )
    # The filters stand outside the merge: inside, a range that never passes them would be walked to its end before
    # the first head came out.  LIMIT -1 keeps SQLite from moving them in.
    walk = " UNION ALL ".join([range_] * len(states)) + f" ORDER BY 2 {order}, 3 {order} LIMIT -1"
    filters = [*_indexed(query, now), *_others(query, now)]
    statement = (
        f"SELECT h.thread FROM ({walk}) AS walk CROSS JOIN strata_heads AS h ON h.thread = walk.thread "  # noqa: S608
        f"WHERE {' AND '.join(term.sql for term in filters)} LIMIT ?"
    )
    ranges = [value for state in states for value in (state, *(bound for term in window for bound in term.values))]
    return statement, [*ranges, *(value for term in filters for value in term.values), query.limit]


def _states(db: sqlite3.Connection, query: HeadQuery) -> list[int | str]:
    if query.states is not None:
        return [STATES.get(state, state) for state in sorted(query.states)]
    if query.rowless:
        return [""]
    return [record[0] for record in db.execute(_STATES).fetchall()] or [""]


def _rare(db: sqlite3.Connection, query: HeadQuery, now: int) -> _Term | None:
    """Return a filter to begin at, which few heads pass."""
    if query.metadata:
        pair = db.execute(_RARE_PAIR, (metadata_text(query.metadata), RARE + 1, RARE)).fetchone()
        if pair is not None:
            source = "strata_metadata AS p CROSS JOIN strata_heads AS h ON h.thread = p.thread"
            return _Term("p.key = ? AND p.value = ?", pair, source)
    return next((term for term in _indexed(query, now) if term.source and _is_rare(db, term)), None)


def _indexed(query: HeadQuery, now: int) -> Iterator[_Term]:
    if query.metadata:
        yield _Term(_CARRIES, (metadata_text(query.metadata),))  # one term, however many pairs
    if query.due_until is not None:
        yield _Term("h.due <= ?", (query.due_until,), "strata_heads AS h INDEXED BY strata_heads_by_due")
    if query.leased:
        yield _Term("h.token <> 0 AND h.expires > ?", (now,), "strata_heads AS h INDEXED BY strata_heads_by_lease")
    if query.graph_id is not None:
        sql, values = "h.graph_id = ?", [query.graph_id]
        if query.graph_version is not None:
            sql, values = sql + " AND h.graph_version = ?", [*values, query.graph_version]
        yield _Term(sql, tuple(values), "strata_heads AS h INDEXED BY strata_heads_by_graph")


def _is_rare(db: sqlite3.Connection, term: _Term) -> bool:
    statement = f"SELECT count(*) FROM (SELECT 1 FROM {term.source} WHERE {term.sql} LIMIT ?)"  # noqa: S608
    return bool(db.execute(statement, (*term.values, RARE + 1)).fetchone()[0] <= RARE)


def _window(query: HeadQuery) -> Iterator[_Term]:
    """Yield at most one lower and one upper bound in the order of the listing: the index takes one of each."""
    after, before, past = query.updated_after, query.updated_before, query.past
    if past is not None:
        if query.oldest_first:
            if after is None or after < past[0]:
                yield _Term("(h.updated, h.thread_id) > (?, ?)", past)
                after = None
        elif before is None or before > past[0]:
            yield _Term("(h.updated, h.thread_id) < (?, ?)", past)
            before = None
    if after is not None:
        yield _Term("h.updated > ?", (after,))
    if before is not None:
        yield _Term("h.updated < ?", (before,))


def _others(query: HeadQuery, now: int) -> Iterator[_Term]:
    yield _Term("h.sequence < 0" if query.rowless else "h.sequence >= 0", ())
    if query.graph_version is not None and query.graph_id is None:
        yield _Term("h.graph_version = ?", (query.graph_version,))
    if query.leased is False:
        yield _Term("NOT (h.token <> 0 AND h.expires > ?)", (now,))
