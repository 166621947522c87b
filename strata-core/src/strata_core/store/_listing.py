"""Listing threads, page by page."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection
from typing import Final

import attrs

from strata_core._validation import check_limit, check_metadata, check_moment, check_text, check_thread_id, shown
from strata_core.clock import from_micros
from strata_core.codec._record_decoder import decode_envelope
from strata_core.codec._versions import MalformedRecordError
from strata_core.errors import CorruptCheckpointError, InvalidInputError, SchemaVersionError
from strata_core.records import Lease, Revision, ThreadPage, ThreadQuery, ThreadState, ThreadSummary
from strata_core.rows import Head, HeadQuery
from strata_core.store._link import Link

__all__ = ["Lister", "check_states"]

_MAX_INT64: Final = 2**63 - 1
_OLDEST_FIRST: Final = "oldest"
"""Stands in the cursors of listings in that order."""


class Lister:
    """Answers thread queries from heads."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def page(self, query: ThreadQuery) -> ThreadPage:
        """Return one page."""
        heads_query = _translate(query)
        if heads_query.states is not None and not heads_query.states:
            return ThreadPage(())
        limit = query.limit
        heads = await self._link.backend.list_heads(attrs.evolve(heads_query, limit=limit + 1))
        more = len(heads) > limit
        heads = heads[:limit]
        return ThreadPage([_read(head, query) for head in heads], _cursor(heads[-1], query) if more else None)


def check_states(states: object) -> frozenset[str]:
    """Return states as text; a str or anything but `ThreadState` members is refused."""
    if isinstance(states, str) or not isinstance(states, Collection):
        raise InvalidInputError("states", "must be a collection of ThreadState, for example {ThreadState.FAILED}")
    for state in states:
        if not isinstance(state, ThreadState):
            raise InvalidInputError("states", f"holds {shown(state)}, which is not a ThreadState")
    return frozenset(state.value for state in states)


def _translate(query: ThreadQuery) -> HeadQuery:
    if not isinstance(query, ThreadQuery):
        raise InvalidInputError("query", f"must be a ThreadQuery, not {type(query).__name__}")
    check_limit(query.limit)
    states = None if query.states is None else check_states(query.states)
    for name in ("graph_id", "graph_version"):
        if getattr(query, name) is not None:
            check_text(getattr(query, name), name)
    if query.leased is not None and type(query.leased) is not bool:
        raise InvalidInputError("leased", f"must be a bool or None, not {shown(query.leased)}")
    if type(query.oldest_first) is not bool:
        raise InvalidInputError("oldest_first", f"must be a bool, not {shown(query.oldest_first)}")
    return HeadQuery(
        states=states,
        metadata=dict(check_metadata(query.metadata)),
        updated_after=_moment(query, "updated_after"),
        updated_before=_moment(query, "updated_before"),
        graph_id=query.graph_id,
        graph_version=query.graph_version,
        due_until=_moment(query, "due_before"),
        leased=query.leased,
        oldest_first=query.oldest_first,
        past=None if query.cursor is None else _place(query.cursor, oldest_first=query.oldest_first),
    )


def _moment(query: ThreadQuery, name: str) -> int | None:
    value = getattr(query, name)
    return None if value is None else check_moment(value, name)


def _cursor(head: Head, query: ThreadQuery) -> str:
    place = [head.updated, head.thread_id, *([_OLDEST_FIRST] if query.oldest_first else [])]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _place(cursor: object, *, oldest_first: bool) -> tuple[int, str]:
    problem = InvalidInputError("cursor", "is not one that a page gave as next_cursor")
    if type(cursor) is not str:
        raise problem
    try:
        place = json.loads(base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, RecursionError, binascii.Error):
        raise problem from None
    if type(place) is not list or not 2 <= len(place) <= 3 or place[2:] not in ([], [_OLDEST_FIRST]):
        raise problem
    if type(place[0]) is not int or abs(place[0]) > _MAX_INT64:
        raise problem
    if bool(place[2:]) is not oldest_first:
        raise InvalidInputError("cursor", "is of a listing in the other order: keep oldest_first from page to page")
    try:
        return place[0], check_thread_id(place[1])
    except InvalidInputError:
        raise problem from None


def _read(head: Head, query: ThreadQuery) -> ThreadSummary:
    """Return a thread's summary; the error of one that cannot be read tells where the listing goes on behind it."""
    try:
        return _summary(head)
    except CorruptCheckpointError as error:
        error.next_cursor = _cursor(head, query)
        raise
    except SchemaVersionError as error:
        error.thread_id, error.next_cursor = head.thread_id, _cursor(head, query)
        raise


def _summary(head: Head) -> ThreadSummary:
    try:
        checkpoint = decode_envelope(head.envelope, {})
        if checkpoint.thread_id != head.thread_id:
            raise MalformedRecordError("is a record of another thread")
    except MalformedRecordError as error:
        raise CorruptCheckpointError(head.thread_id, head.sequence, str(error)) from None
    except SchemaVersionError as error:
        raise SchemaVersionError(
            f"checkpoint {head.thread_id!r} #{head.sequence}: {error}", found=error.found, supported=error.supported
        ) from None
    lease = None
    if head.is_leased(head.now) and not head.closing:
        lease = Lease(head.thread_id, head.token, head.owner, from_micros(head.expires))
    return ThreadSummary(
        thread_id=head.thread_id,
        sequence=head.sequence,
        state=checkpoint.state,
        status=checkpoint.status,
        updated_at=checkpoint.updated_at,
        revision=Revision(head.sequence, head.write_id),
        suspended_node=checkpoint.suspended_node,
        next_node=checkpoint.next_node,
        wait=checkpoint.wait,
        graph=checkpoint.graph,
        metadata=checkpoint.metadata,
        lease=lease,
    )
