"""What a listing of heads asks for."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from strata_core.rows._commit import NOTHING
from strata_core.rows._head import Head

__all__ = ["HeadQuery", "matches"]


@attrs.frozen
class HeadQuery:
    """Which heads to list.  Filters are ANDed; None means any.  Times are microseconds since 1970 UTC.

    Attributes:
        states: The thread's state is one of these; an empty set selects nothing.
        metadata: Pairs that must all be there.
        updated_after: Updated later than this; exclusive.
        updated_before: Updated earlier than this; exclusive.
        graph_id: The graph's ID.
        graph_version: The graph's version.
        due_until: Due at this time or earlier.
        leased: A live lease holds the thread (True), or none does (False), on the backend's clock.
        rowless: Instead of threads, heads without rows: what a killed purge or a run that never saved left.
        oldest_first: The order, by (updated, thread ID as UTF-8 bytes): ascending, or descending.
        past: Only heads strictly past this (updated, thread ID) in that order.
        limit: At most this many; a backend may not return fewer while more match.
    """

    states: frozenset[str] | None = None
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    updated_after: int | None = None
    updated_before: int | None = None
    graph_id: str | None = None
    graph_version: str | None = None
    due_until: int | None = None
    leased: bool | None = None
    rowless: bool = False
    oldest_first: bool = False
    past: tuple[int, str] | None = None
    limit: int = 100


def matches(head: Head, query: HeadQuery, now: int) -> bool:
    """Tell whether a head belongs to a listing; the meaning of `HeadQuery`, once.

    A backend that cannot index a filter applies this to what it scanned.  Python compares strings by code point, which
    is the order of their UTF-8 bytes.
    """
    place = (head.updated, head.thread_id)
    return (
        (head.sequence == NOTHING) is query.rowless
        and (query.states is None or head.state in query.states)
        and (query.updated_after is None or head.updated > query.updated_after)
        and (query.updated_before is None or head.updated < query.updated_before)
        and (query.graph_id is None or head.graph_id == query.graph_id)
        and (query.graph_version is None or head.graph_version == query.graph_version)
        and (query.due_until is None or (head.due is not None and head.due <= query.due_until))
        and all(head.metadata.get(key) == value for key, value in query.metadata.items())
        and (query.leased is None or query.leased == head.is_leased(now))
        and (query.past is None or (place > query.past if query.oldest_first else place < query.past))
    )
