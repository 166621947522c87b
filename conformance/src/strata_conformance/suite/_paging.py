"""Paging through a listing."""

from __future__ import annotations

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, THREAD_IDS, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._listing import SECOND, pages, queries
from strata_core.errors import InvalidInputError
from strata_core.records import (
    ThreadQuery,
)

__all__ = ["PagingTests"]


class PagingTests(PortTests):
    """Pages of a listing, and the cursors between them."""

    @promise("list-11")
    @queries
    @pytest.mark.parametrize("limit", [1, 3, 10, 11, 1000])
    async def test_pages_hold_the_limit_and_end(self, open_store: OpenStore, limit: int) -> None:
        """Each page but the last holds exactly `limit` threads and a cursor, the last has no cursor; together they
        hold each thread once, also when many have the same time; filters hold on every page.
        """
        async with open_store() as store:
            for n in range(10):
                await store.save(checkpoint(f"t{n}", at=BASE + (n // 4) * SECOND, metadata={"even": str(n % 2 == 0)}))
            got = await pages(store, limit=limit)
            even = await pages(store, limit=limit, metadata={"even": "True"})

        expected = [f"t{n}" for n in reversed(range(10))]
        assert [expected[start : start + limit] for start in range(0, 10, limit)] == got
        assert [expected[1::2][start : start + limit] for start in range(0, 5, limit)] == even

    @promise("list-12")
    @queries
    async def test_a_thread_that_does_not_change_is_seen_exactly_once(self, open_store: OpenStore) -> None:
        """While somebody pages, threads are saved, leased, added and finished: each thread that does not change is
        seen exactly once, on this handle or another.
        """
        async with open_store() as one, open_store() as two:
            for n in range(30):
                await one.save(checkpoint(f"t{n:02}", at=BASE + (n % 5) * SECOND))
            seen, cursor, turn = [], None, 0
            while True:
                page = await (one, two)[turn % 2].list_threads(ThreadQuery(limit=4, cursor=cursor))
                seen += [thread.thread_id for thread in page.threads]
                cursor = page.next_cursor
                if cursor is None:
                    break
                await one.save(checkpoint(f"new{turn}", at=BASE + 2 * SECOND))
                await two.save(completed(f"t{turn:02}", at=BASE + 60 * SECOND))
                await one.acquire_lease(f"t{turn + 20:02}", owner="o", ttl=LONG)
                turn += 1

        unchanged = [f"t{n:02}" for n in range(turn, 30)]
        assert unchanged == sorted(thread for thread in seen if thread in set(unchanged))

    @promise("list-13")
    @queries
    @pytest.mark.parametrize(
        "cursor",
        ["", "garbage", "AAAA", "====", "e30=", "W10=", "WzEsMl0=", "WyJhIiwiYiJd", "\x00", "\ud800", "\u00e9", "[1]"],
    )
    async def test_a_cursor_that_no_page_gave_is_refused(self, open_store: OpenStore, cursor: str) -> None:
        """A cursor that no listing gave raises InvalidInputError that names it; it is never taken for the first
        page.
        """
        async with open_store() as store:
            await store.save(checkpoint())
            with pytest.raises(InvalidInputError) as caught:
                await store.list_threads(ThreadQuery(cursor=cursor))

        assert "cursor" == caught.value.argument

    @promise("list-16")
    @queries
    async def test_the_oldest_come_first_when_asked_for(self, open_store: OpenStore) -> None:
        """With `oldest_first` the order is the other way round, by time and by ID, on each page and from page to page;
        filters hold, and a thread that does not change while others are updated and added is seen exactly once.
        """
        async with open_store() as store:
            for n, thread in enumerate(THREAD_IDS):
                await store.save(checkpoint(thread, at=BASE + (n % 3) * SECOND, metadata={"odd": str(n % 2)}))
            every = await pages(store, limit=7, oldest_first=True)
            odd = await pages(store, limit=5, oldest_first=True, metadata={"odd": "1"})
            seen, cursor = [], None
            changed: set[str] = set()
            while len(changed) < len(THREAD_IDS):
                page = await store.list_threads(ThreadQuery(limit=3, oldest_first=True, cursor=cursor))
                seen += [thread.thread_id for thread in page.threads if thread.thread_id not in changed]
                cursor = page.next_cursor
                if cursor is None:
                    break
                changed.add(page.threads[0].thread_id)
                await store.save(completed(page.threads[0].thread_id, at=BASE + 60 * SECOND))

        places = sorted((n % 3, thread.encode()) for n, thread in enumerate(THREAD_IDS))
        expected = [thread.decode() for _, thread in places]
        assert expected == [thread for page in every for thread in page]
        assert [thread for thread in expected if THREAD_IDS.index(thread) % 2] == [t for page in odd for t in page]
        assert expected == seen

    @promise("list-17")
    @queries
    @pytest.mark.parametrize("oldest_first", [True, False])
    async def test_a_cursor_is_of_one_order(self, open_store: OpenStore, oldest_first: bool) -> None:
        """A cursor of a listing in one order raises InvalidInputError that names it when it is given to the other."""
        async with open_store() as store:
            for n in range(3):
                await store.save(checkpoint(f"t{n}"))
            page = await store.list_threads(ThreadQuery(limit=1, oldest_first=oldest_first))
            turned = ThreadQuery(limit=1, oldest_first=not oldest_first, cursor=page.next_cursor)
            with pytest.raises(InvalidInputError) as caught:
                await store.list_threads(turned)

        assert "cursor" == caught.value.argument
