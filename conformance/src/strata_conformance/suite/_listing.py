"""Listing threads: what is asked in `_filters.py`, and page by page in `_paging.py`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, THREAD_IDS, checkpoint, every_field
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_core.capabilities import Capability
from strata_core.errors import UnsupportedError
from strata_core.records import (
    CheckpointStatus,
    ThreadQuery,
    ThreadState,
    ThreadSummary,
)

__all__ = ["QueryTests"]

SECOND = timedelta(seconds=1)
MICRO = timedelta(microseconds=1)
queries = pytest.mark.requires(Capability.QUERY)


async def ids(store: Store, **query: Any) -> list[str]:
    """Return the IDs of the first page."""
    return [thread.thread_id for thread in (await store.list_threads(ThreadQuery(**query))).threads]


async def pages(store: Store, **query: Any) -> list[list[str]]:
    """Return the IDs of all pages."""
    found, cursor = [], None
    while True:
        page = await store.list_threads(ThreadQuery(**query, cursor=cursor))
        found.append([thread.thread_id for thread in page.threads])
        cursor = page.next_cursor
        if cursor is None:
            return found
        assert len(found) < 1000, "the pages do not end"


class QueryTests(PortTests):
    """The order of a listing, and what it says of each thread."""

    @promise("list-1")
    @queries
    async def test_threads_are_listed_newest_first(self, open_store: OpenStore) -> None:
        """Threads are listed by the time of their latest checkpoint, newest first, to the microsecond, whatever the
        order of the saves.
        """
        ages = {"b": 2, "d": 0, "a": 3, "c": 1, "e": 5}
        async with open_store() as store:
            for thread, age in ages.items():
                await store.save(checkpoint(thread, at=BASE - age * MICRO))
            before = await ids(store)
            await store.save(checkpoint("e", at=BASE + MICRO))
            after = await ids(store)

        assert ["d", "c", "b", "a", "e"] == before
        assert ["e", "d", "c", "b", "a"] == after

    @promise("list-2")
    @queries
    async def test_threads_of_the_same_time_are_ordered_by_id_as_utf8(self, open_store: OpenStore) -> None:
        """Threads of the same time are ordered by thread ID, compared as UTF-8 bytes, descending: case, accents, NULs
        of a column's width and characters beyond 16 bits included.
        """
        async with open_store() as store:
            for thread in THREAD_IDS:
                await store.save(checkpoint(thread))
            got = await ids(store, limit=1000)
            paged = await pages(store, limit=7)

        expected = sorted(THREAD_IDS, key=str.encode, reverse=True)
        assert expected == got
        assert expected == [thread for page in paged for thread in page]

    @promise("list-3")
    @queries
    @pytest.mark.parametrize("status", list(CheckpointStatus))
    async def test_a_summary_tells_the_latest_checkpoint(self, open_store: OpenStore, status: CheckpointStatus) -> None:
        """A summary holds everything of the thread's latest checkpoint but the state, its sequence and revision, and
        as its time the later of created_at and resumed_at.
        """
        record = every_field("t", status)
        bare = checkpoint("bare", status, at=BASE - SECOND)
        async with open_store() as store:
            await store.save(checkpoint(metadata={"old": "1"}, suspended_node="Old"))
            await store.save(checkpoint(metadata={"older": "1"}, suspended_node="Older", next_node="Old"))
            await store.save(record)
            await store.save(bare)
            page = await store.list_threads()
            latest, latest_bare = await store.load("t"), await store.load("bare")

        assert record.resumed_at is not None
        assert latest is not None
        assert latest_bare is not None
        assert [
            ThreadSummary(
                "t",
                2,
                ThreadState.RESUMED,
                status,
                record.resumed_at,
                latest.revision,
                record.suspended_node,
                record.next_node,
                record.wait,
                record.graph,
                record.metadata,
            ),
            ThreadSummary("bare", 0, ThreadState(status.value), status, bare.created_at, latest_bare.revision),
        ] == list(page.threads)
        assert page.next_cursor is None

    @promise("list-14")
    @queries
    async def test_an_empty_store_lists_one_empty_page(self, open_store: OpenStore) -> None:
        """An empty store lists one empty page without a cursor."""
        async with open_store() as store:
            page = await store.list_threads()

        assert ([], None) == (list(page.threads), page.next_cursor)

    @promise("list-15")
    @pytest.mark.refuses(Capability.QUERY)
    async def test_a_store_that_cannot_query_says_so(self, open_store: OpenStore) -> None:
        """A store that does not declare queries raises UnsupportedError from list_threads and get_log."""
        async with open_store() as store:
            await store.save(checkpoint())
            with pytest.raises(UnsupportedError) as listing:
                await store.list_threads()
            with pytest.raises(UnsupportedError) as log:
                await store.get_log("t")

        assert [Capability.QUERY] * 2 == [listing.value.capability, log.value.capability]
