"""Listings that go wrong in order or paging, one promise each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs
from mutant_kit import Refusing, Wrapper, breaks

from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError
from strata_core.memory import MemoryBackend
from strata_core.records import ThreadPage, ThreadQuery
from strata_core.rows import Head, HeadQuery

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


@breaks(
    "list-11",
    also={
        "purge-13": "lists all that a purge has left on one page",
    },
)
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


@breaks("list-16")
class ForgetsTheOrderBehindTheFirstPage(Wrapper):
    """Goes on from the oldest thread of the first page with the newest ones."""

    async def list_threads(self, query: ThreadQuery = _ALL, /) -> ThreadPage:
        if not isinstance(query, ThreadQuery) or query.oldest_first is not True or query.cursor is None:
            return await self._store.list_threads(query)
        page = await self._store.list_threads(query)
        turned = await self._store.list_threads(attrs.evolve(query, oldest_first=False, cursor=None))
        return attrs.evolve(turned, next_cursor=page.next_cursor)


@breaks("list-17")
class TurnsRoundAtACursor(_Queries):
    """Goes on in the order of the cursor, whatever the query says."""

    async def list_threads(self, query: ThreadQuery = _ALL, /) -> ThreadPage:
        try:
            return await self._store.list_threads(query)
        except InvalidInputError as error:
            if error.argument != "cursor":
                raise
            turned = attrs.evolve(query, oldest_first=not query.oldest_first)
            return await self._store.list_threads(turned)


@breaks("list-14")
class GivesACursorForNothing(_Queries):
    """Returns an empty text for a cursor when the store is empty."""

    def page(self, page: ThreadPage, query: ThreadQuery) -> ThreadPage:
        return page if self._backend._heads else attrs.evolve(page, next_cursor="")


@breaks("list-15")
class ListsUndeclared(Refusing):
    """Does not declare queries, and answers them."""

    lacking = Capability.QUERY
