"""Listings and logs that go wrong, one promise each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs
from mutant_kit import Refusing, Wrapper, breaks

from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError
from strata_core.memory import MemoryBackend
from strata_core.records import LogPage, ThreadPage, ThreadQuery
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused

_ALL = ThreadQuery()


class _Queries(Wrapper):
    """Asks another query than it was asked, and shows another page than it got."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return query

    def page(self, page: ThreadPage, query: ThreadQuery) -> ThreadPage:
        return page

    async def list_threads(self, query: Any = _ALL, /) -> ThreadPage:
        if not isinstance(query, ThreadQuery):
            return await self._store.list_threads(query)
        return self.page(await self._store.list_threads(self.query(query)), query)


@breaks(
    "list-1",
    also={
        "list-6": "its threads differ by microseconds",
    },
)
class OrdersBySeconds(_Queries):
    """Orders the threads of a page by the second."""

    def page(self, page: ThreadPage, query: ThreadQuery) -> ThreadPage:
        threads = sorted(page.threads, key=lambda t: (t.updated_at.replace(microsecond=0), t.thread_id), reverse=True)
        return attrs.evolve(page, threads=threads)


class _Ordered(MemoryBackend):
    """Orders heads by `_place`."""

    def _place(self, updated: int, thread_id: str) -> tuple[int, Any]:
        raise AssertionError(updated, thread_id)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        heads = list(await super().list_heads(attrs.evolve(query, past=None, limit=10_000)))
        heads.sort(key=lambda head: self._place(head.updated, head.thread_id), reverse=not query.oldest_first)
        if query.past is not None:
            past = self._place(*query.past)
            sign = 1 if query.oldest_first else -1
            places = [(self._place(head.updated, head.thread_id), head) for head in heads]
            heads = [head for place, head in places if (place > past) - (place < past) == sign]
        return heads[: query.limit]


@breaks(
    "list-2",
    also={
        "row-14": "says the same of the backend",
    },
)
class OrdersAsUtf16(_Ordered):
    """Orders IDs as databases with 16-bit characters do."""

    def _place(self, updated: int, thread_id: str) -> tuple[int, Any]:
        return updated, thread_id.encode("utf-16-be")


@breaks("list-3")
class LeavesTheNextNodeOut(_Queries):
    """Does not say where a thread will go on."""

    def page(self, page: ThreadPage, query: ThreadQuery) -> ThreadPage:
        return attrs.evolve(page, threads=[attrs.evolve(thread, next_node=None) for thread in page.threads])


@breaks("list-4")
class TakesNoStatesForAll(_Queries):
    """Takes an empty set of states for no filter."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, states=query.states or None)


@breaks("list-5")
class ComparesMetadataWithoutCase(MemoryBackend):
    """Finds metadata as a case-insensitive collation does."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        wide = attrs.evolve(query, metadata={}, limit=10_000)
        wanted = {(key, value.lower()) for key, value in query.metadata.items()}
        heads = await super().list_heads(wide)
        found = [h for h in heads if wanted <= {(key, value.lower()) for key, value in h.metadata.items()}]
        return found[: query.limit]


@breaks(
    "list-6",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class ListsToTheEndInclusive(_Queries):
    """Takes the upper end of a time span for a part of it."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        try:
            later = query.updated_before and query.updated_before + timedelta(microseconds=1)
        except (OverflowError, TypeError):
            return query
        return attrs.evolve(query, updated_before=later)


@breaks(
    "list-7",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class IgnoresAVersionWithoutAGraph(_Queries):
    """Looks at the version of a graph only when the graph is named too."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        text = query.graph_version in ("1", "2", "3")
        return attrs.evolve(query, graph_version=None) if text and query.graph_id is None else query


@breaks(
    "list-8",
    also={
        "list-10": "the thread that passes is due now",
    },
)
class LeavesOutWhatIsDueNow(_Queries):
    """Takes the end of what is due for excluded, as for the other times."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        try:
            earlier = query.due_before and query.due_before - timedelta(microseconds=1)
        except (OverflowError, TypeError):
            return query
        return attrs.evolve(query, due_before=earlier)


@breaks(
    "list-9",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class TakesNotLeasedForAny(_Queries):
    """Filters by lease only when leased threads are wanted."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, leased=None) if query.leased is False else query


@breaks("list-10")
class UsesOneIndexAtMost(_Queries):
    """Leaves the metadata out when there is a graph to look for."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, metadata={}) if query.graph_id is not None else query


@breaks("list-11")
class FillsPagesToOneLess(_Queries):
    """Returns pages of one thread less than was asked for."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return (
            attrs.evolve(query, limit=query.limit - 1)
            if type(query.limit) is int and 1 < query.limit <= 1000
            else query
        )


@breaks("list-12")
class CountsInsteadOfRemembering(Wrapper):
    """Pages by how many threads were shown, not by which one was the last."""

    async def list_threads(self, query: ThreadQuery = _ALL, /) -> ThreadPage:
        cursor = getattr(query, "cursor", None)
        if not isinstance(query, ThreadQuery) or (cursor is not None and not isinstance(cursor, str)):
            return await self._store.list_threads(query)
        if cursor is not None and not re.fullmatch(r"after-\d{1,6}", cursor):
            raise InvalidInputError("cursor", "is not one that a page gave as next_cursor")
        start = 0 if cursor is None else int(cursor[6:])
        await self._store.list_threads(attrs.evolve(query, cursor=None))
        every = (await self._store.list_threads(attrs.evolve(query, cursor=None, limit=1000))).threads
        end = start + query.limit
        return ThreadPage(list(every[start:end]), f"after-{end}" if len(every) > end else None)


@breaks(
    "list-13",
    also={
        "argument-7": "a cursor of the wrong type is among the values",
    },
)
class StartsOverAtAFalseCursor(_Queries):
    """Takes a cursor that it does not know for the first page."""

    async def list_threads(self, query: ThreadQuery = _ALL, /) -> ThreadPage:
        try:
            return await self._store.list_threads(query)
        except InvalidInputError as error:
            if error.argument != "cursor":
                raise
            return await self._store.list_threads(attrs.evolve(query, cursor=None))


@breaks("list-14")
class GivesACursorForNothing(_Queries):
    """Returns an empty text for a cursor when the store is empty."""

    def page(self, page: ThreadPage, query: ThreadQuery) -> ThreadPage:
        return page if self._backend._heads else attrs.evolve(page, next_cursor="")


@breaks("list-15")
class ListsUndeclared(Refusing):
    """Does not declare queries, and answers them."""

    lacking = Capability.QUERY


@breaks(
    "log-1",
    also={
        "record-9 delta-5 log-2 log-4": "reads a log in its order",
    },
)
class ShowsTheNewestFirst(Wrapper):
    """Turns a slice around."""

    async def get_log(self, thread_id: str, **options: Any) -> LogPage:
        page = await self._store.get_log(thread_id, **options)
        return attrs.evolve(page, entries=list(reversed(page.entries)))


@breaks("log-2")
class AsksForOneSliceMore(Wrapper):
    """Says that a slice that is full has a next one."""

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        page = await self._store.get_log(thread_id, start=start, limit=limit)
        return attrs.evolve(page, next_start=start + limit) if len(page.entries) == limit else page


@breaks("log-3")
class StartsAtTheEndAtTheLatest(Wrapper):
    """Returns the latest checkpoint to whoever asks for what comes after it."""

    async def get_log(self, thread_id: str, **options: Any) -> LogPage:
        page = await self._store.get_log(thread_id, **options)
        latest = await self._store.load(thread_id)
        return page if page.entries or latest is None else attrs.evolve(page, entries=[latest])


@breaks("log-4")
class EndsLogsAt1500(Wrapper):
    """Reads no more than 1,500 checkpoints of a thread."""

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        page = await self._store.get_log(thread_id, start=start, limit=limit)
        kept = [entry for entry in page.entries if entry.sequence < 1500]
        return page if len(kept) == len(page.entries) else LogPage(kept, None)


@breaks(
    "list-5",
    also={
        "list-10 list-11": "filters by metadata too",
        "purge-8": "finds the thread that is kept by metadata too",
        "row-10": "lists by metadata what was erased and started over",
        "rule-1": "lists by metadata",
    },
)
class IndexesNoMetadata(MemoryBackend):
    """Keeps metadata in the record, where no listing finds it."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        for commit in batch:
            if commit.row is not None:
                commit.row.metadata = {}
        return await super().commit(batch)


@breaks(
    "list-7",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class IgnoresTheGraphVersion(_Queries):
    """Leaves out a filter that it does not know."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, graph_version=None) if query.graph_version in ("1", "2", "3") else query
