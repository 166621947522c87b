"""Listing heads: one statement, which looks at about as many threads as it returns.

It walks `strata_listing` along one facet: a range for each state, in order, the ranges merged as they are read.  Each
thread on the way is looked up and tested against every filter, until the page is full.  Which facet:

- that of the one filter that has a facet, or `ALL`;
- of several, the rarest, found by counting each up to `2 * limit`: no statistics have to be fresh;
- with `due_until`, those that are due are looked up by that time and sorted, when they are at most `2 * limit`.

Running threads may lie up to `LAG` too early (see `_facets`).  So behind the page the walk looks on: newest first, at
running threads that may belong into it, which lie at most `LAG` behind its last place; oldest first, at threads up to
its latest time of update.

The planner would rather sort than merge, and believes its statistics, which know nothing of a tenant that came today:
measured, it read all 50,000 threads of one for a page of fifty.  So the statement runs inside a function that carries
settings of the planner which leave only the walk.  Such settings end with the function: they are no state of a session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from strata_core.rows import HeadQuery
from strata_postgres._facets import (
    ALL,
    DUE,
    DUE_AT,
    LAG,
    LEASED,
    ROWLESS,
    RUNNING,
    STATES,
    graph_facet,
    graph_version_facet,
    pair_facet,
    version_facet,
)
from strata_postgres._heads import COLUMNS, NOW, READ

__all__ = ["CALL", "LIST", "PLANNER", "page_statement"]

PLANNER: Final = {
    "enable_sort": "off",  # merge what the key has sorted
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
_TYPES: Final = {
    "thread_id": "text",
    "sequence": "integer",
    "whole_at": "integer",
    "write_ids": "bytea",
    "state": "smallint",
    "updated": "bigint",
    "due": "bigint",
    "graph_id": "text",
    "graph_version": "text",
    "metadata": "jsonb",
    "external": "boolean",
    "token": "bigint",
    "owner": "text",
    "expires": "bigint",
    "lease_id": "bytea",
    "closing": "boolean",
}
LIST: Final = f"""
CREATE FUNCTION {{s}}.strata_list_1(statement text, arguments jsonb) RETURNS SETOF record LANGUAGE plpgsql
{" ".join(f"SET {name} = {value}" for name, value in PLANNER.items())}
AS $strata$
BEGIN
    RETURN QUERY EXECUTE statement USING arguments;
END $strata$
"""
"""Makes the function that lists; ``{{s}}`` stands for the schema.

It runs with the rights of its caller, who could run the statement as well without it.
"""
CALL: Final = (
    "SELECT * FROM {s}.strata_list_1(%s, %s::jsonb) AS h("  # noqa: S608  # names of columns
    + ", ".join(f"{column} {_TYPES[column]}" for column in COLUMNS)
    + ", now bigint, envelope bytea)"
)
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_MOST_PAIRS: Final = 8
"""Of so many metadata pairs the rarest is looked for; every pair is tested."""


def page_statement(query: HeadQuery) -> tuple[str, str] | None:
    """Return the statement that lists heads, as `RowBackend.list_heads` promises, and its arguments as JSON.

    It gives `COLUMNS`, the clock and the envelope.  The schema stands as ``{s}``.  None when nothing can match.
    """
    states = _states(query)
    return _Page(query, states).statement() if states else None


def _states(query: HeadQuery) -> list[int]:
    if query.rowless:
        return [ROWLESS] if query.states is None or "" in query.states else []
    if query.states is None:
        return sorted(STATES.values())
    return sorted(STATES[state] for state in query.states if state in STATES)


class _Page:
    """One listing, put together from parts.

    Only numbers of ours and names of columns stand in its text, so nothing can be injected; all else is an argument.
    """

    def __init__(self, query: HeadQuery, states: list[int]) -> None:
        self._query = query
        self._states = states
        self._limit = query.limit
        self._few = 2 * query.limit
        self._order = "ASC" if query.oldest_first else "DESC"
        self._values: dict[str, Any] = {}
        facets = [ALL] if query.rowless else sorted(set(_facets(query))) or [ALL]
        self._facets = facets
        self._facet = str(facets[0]) if len(facets) == 1 else "(SELECT facet FROM rarest)"

    def statement(self) -> tuple[str, str]:
        parts = [f"first AS MATERIALIZED ({self._first()})"]
        sources = ["first"]
        if len(self._facets) > 1:
            parts.insert(0, f"rarest AS MATERIALIZED ({self._rarest()})")
        if self._by_due:
            parts.insert(0, f"due AS MATERIALIZED ({self._due()})")
            parts.append(f"soon AS MATERIALIZED ({self._soon()})")
            sources.append("soon")
        if RUNNING in self._states:
            parts.append(f"late AS MATERIALIZED ({self._late()})")
            sources.append("late")
        columns = ", ".join(COLUMNS)
        found = " UNION ALL ".join(f"SELECT {columns}, thread FROM {source}" for source in sources)  # noqa: S608
        order = f"ORDER BY h.updated {self._order}, h.thread_id {self._order}"
        text = f"""
            WITH {", ".join(parts)}
            SELECT {READ}, {NOW}, r.envelope
            FROM (SELECT * FROM ({found}) AS h {order} LIMIT {self._limit}) AS h
            LEFT JOIN LATERAL (
                SELECT r.envelope FROM {{s}}.strata_rows AS r
                WHERE r.thread = h.thread AND r.sequence = h.sequence OFFSET 0) AS r ON true
            {order}"""  # noqa: S608
        return text, _ENCODE(self._values)

    @property
    def _by_due(self) -> bool:
        return self._query.due_until is not None and not self._query.rowless

    def _first(self) -> str:
        """The walk, up to a full page."""
        gate = f"WHERE (SELECT count(*) FROM due) > {self._few}" if self._by_due else ""  # noqa: S608
        return f"""
            SELECT w.place, h.*
            FROM ({self._walk(self._states)}) AS w {self._heads("w")}
            {gate}
            ORDER BY w.place {self._order}, w.thread_id {self._order} LIMIT {self._limit}"""  # noqa: S608

    def _walk(self, states: list[int], more: str = "") -> str:
        order = f"ORDER BY l.place {self._order}, l.thread_id {self._order}"
        return " UNION ALL ".join(
            "(SELECT l.place, l.thread_id FROM {s}.strata_listing AS l "  # noqa: S608
            + " AND ".join([f"WHERE l.facet = {self._facet} AND l.state = {state}{more}", *self._bounds(state)])
            + f" {order})"
            for state in states
        )

    def _late(self) -> str:
        """What lies behind the full page and may belong into it."""
        edge = f"ORDER BY place {_opposite(self._order)}, thread_id {_opposite(self._order)} LIMIT 1"
        place, thread_id = (f"(SELECT {column} FROM first {edge})" for column in ("place", "thread_id"))  # noqa: S608
        if self._query.oldest_first:
            states = self._states
            beyond = f"(l.place, l.thread_id) > ({place}, {thread_id})"
            end = "l.place <= (SELECT max(updated) FROM first)"
        else:
            states = [RUNNING]
            beyond = f"(l.place, l.thread_id) < ({place}, {thread_id})"
            end = f"l.place > {place} - {LAG}"
        return f"""
            SELECT w.place, h.*
            FROM ({self._walk(states, f" AND {beyond} AND {end}")}) AS w {self._heads("w")}
            WHERE (SELECT count(*) FROM first) = {self._limit}"""  # noqa: S608

    def _due(self) -> str:
        """The threads that are due, as far as they are few, by that time."""
        ranges = " UNION ALL ".join(
            "SELECT l.thread_id FROM {s}.strata_listing AS l "  # noqa: S608
            f"WHERE l.facet = {DUE_AT} AND l.state = {state} AND l.place <= {self._bind('due', self._query.due_until)}"
            for state in self._states
        )
        return f"{ranges} LIMIT {self._few + 1}"

    def _soon(self) -> str:
        return f"""
            SELECT 0::bigint AS place, h.* FROM due AS w {self._heads("w")}
            WHERE (SELECT count(*) FROM due) <= {self._few}"""  # noqa: S608

    def _rarest(self) -> str:
        facets = "{" + ",".join(map(str, self._facets)) + "}"
        states = ", ".join(map(str, self._states))
        return f"""
            SELECT f.facet FROM unnest('{facets}'::bigint[]) AS f(facet)
            CROSS JOIN LATERAL (SELECT count(*) AS found FROM (
                SELECT FROM {{s}}.strata_listing AS l
                WHERE l.facet = f.facet AND l.state IN ({states}) LIMIT {self._few}) AS l) AS c
            ORDER BY c.found, f.facet LIMIT 1"""  # noqa: S608

    def _heads(self, source: str) -> str:
        """The heads of a walk, in its order, as far as they pass every filter; OFFSET keeps it a look-up each."""
        where = " AND ".join([f"h.thread_id = {source}.thread_id", *self._filters()])
        return f"""
            CROSS JOIN LATERAL (
                SELECT h.thread, {READ} FROM {{s}}.strata_heads AS h WHERE {where} OFFSET 0) AS h"""  # noqa: S608

    def _bind(self, name: str, value: object) -> str:
        self._values[name] = value
        if isinstance(value, int):
            return f"($1 ->> '{name}')::bigint"
        return f"($1 -> '{name}')" if isinstance(value, dict) else f"($1 ->> '{name}')"

    def _bounds(self, state: int) -> Iterator[str]:
        """Yield at most one lower and one upper bound of the places of a state: the index takes one of each.

        A running thread may lie up to `LAG` before its time of update, never behind it.
        """
        query = self._query
        after, before, past = query.updated_after, query.updated_before, query.past
        lag = LAG if state == RUNNING else 0
        if past is not None:
            place = self._bind("past", past[0])
            pair = f"({place}, {self._bind('past_id', past[1])})"
            if query.oldest_first and (after is None or after < past[0]):
                yield f"l.place > {place} - {lag}" if lag else f"(l.place, l.thread_id) > {pair}"
                after = None
            elif not query.oldest_first and (before is None or before > past[0]):
                yield f"l.place <= {place}" if lag else f"(l.place, l.thread_id) < {pair}"
                before = None
        if after is not None:
            yield f"l.place > {self._bind('after', after)} - {lag}"
        if before is not None:
            yield f"l.place < {self._bind('before', before)}"

    def _filters(self) -> Iterator[str]:
        query = self._query
        if query.updated_after is not None:
            yield f"h.updated > {self._bind('after', query.updated_after)}"
        if query.updated_before is not None:
            yield f"h.updated < {self._bind('before', query.updated_before)}"
        if query.past is not None:
            place, thread_id = self._bind("past", query.past[0]), self._bind("past_id", query.past[1])
            yield f"(h.updated, h.thread_id) {'>' if query.oldest_first else '<'} ({place}, {thread_id})"
        if query.metadata:
            yield f"h.metadata @> {self._bind('metadata', dict(query.metadata))}"
        if query.graph_id is not None:
            yield f"h.graph_id = {self._bind('graph_id', query.graph_id)}"
        if query.graph_version is not None:
            yield f"h.graph_version = {self._bind('graph_version', query.graph_version)}"
        if query.due_until is not None:
            yield f"h.due <= {self._bind('due', query.due_until)}"
        if query.leased is not None:
            yield f"{'' if query.leased else 'NOT '}(h.token <> 0 AND h.expires > {NOW})"


def _opposite(order: str) -> str:
    return "DESC" if order == "ASC" else "ASC"


def _facets(query: HeadQuery) -> Iterator[int]:
    for key, value in sorted(query.metadata.items())[:_MOST_PAIRS]:
        yield pair_facet(key, value)
    if query.graph_id is not None and query.graph_version is not None:
        yield graph_version_facet(query.graph_id, query.graph_version)
    elif query.graph_id is not None:
        yield graph_facet(query.graph_id)
    elif query.graph_version is not None:
        yield version_facet(query.graph_version)
    if query.leased:
        yield LEASED
    if query.due_until is not None:
        yield DUE
