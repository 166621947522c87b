"""A listing goes past what cannot be read, and tells it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.listing import ThreadWalk, UnreadableThread
from strata_core.records import (
    CheckpointStatus,
    Revision,
    ThreadPage,
    ThreadQuery,
    ThreadState,
    ThreadSummary,
)

AT = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
EVERY_THREAD = ThreadQuery()


class Threads:
    """As much of a store as a listing needs: numbered threads, of which some cannot be read."""

    def __init__(self, count: int, *bad: int, gives_cursors: bool = True, is_set_up: bool = True) -> None:
        self.count = count
        self.bad = set(bad)
        self.gives_cursors = gives_cursors
        self.is_set_up = is_set_up
        self.asked = 0

    async def list_threads(self, query: ThreadQuery = EVERY_THREAD, /) -> ThreadPage:
        self.asked += 1
        if not self.is_set_up:
            raise SchemaVersionError("never set up", found="none", supported="2")
        first = 0 if query.cursor is None else int(query.cursor)
        last = min(first + query.limit, self.count)
        for number in range(first, last):
            if number in self.bad:
                error = CorruptCheckpointError(f"t{number}", 0, "is not JSON")
                error.next_cursor = str(number + 1) if self.gives_cursors else None
                raise error
        found = [summary(f"t{number}") for number in range(first, last)]
        return ThreadPage(found, str(last) if last < self.count else None)

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> object:
        raise AssertionError


def summary(thread_id: str) -> ThreadSummary:
    return ThreadSummary(
        thread_id=thread_id,
        sequence=0,
        state=ThreadState.RUNNING,
        status=CheckpointStatus.RUNNING,
        updated_at=AT,
        revision=Revision(0, bytes(8)),
    )


async def walked(walk: ThreadWalk) -> tuple[list[str], list[str]]:
    """Return the threads that could be read, and the others, in order."""
    read, unread = [], []
    while not walk.is_over:
        page = await walk.next_page()
        if isinstance(page, UnreadableThread):
            unread.append(page.thread_id)
        else:
            read += [thread.thread_id for thread in page]
    assert () == await walk.next_page()
    return read, unread


@pytest.mark.parametrize("bad", [(), (0,), (1,), (49,), (0, 1, 2, 20, 48, 49), tuple(range(50))])
@pytest.mark.parametrize("first", [1, 7, 1000])
def test_every_thread_comes_once_whatever_cannot_be_read(bad: tuple[int, ...], first: int) -> None:
    store = Threads(50, *bad)
    read, unread = asyncio.run(walked(ThreadWalk(store, ThreadQuery(), first=first)))  # type: ignore[arg-type]

    assert [f"t{number}" for number in range(50) if number not in bad] == read
    assert [f"t{number}" for number in bad] == unread


def test_one_that_cannot_be_read_among_a_thousand_costs_a_few_pages() -> None:
    store = Threads(1000, 700)
    asyncio.run(walked(ThreadWalk(store, ThreadQuery())))  # type: ignore[arg-type]

    assert 25 > store.asked


def test_a_store_that_tells_no_way_on_or_was_never_set_up_is_an_error() -> None:
    with pytest.raises(CorruptCheckpointError):
        asyncio.run(walked(ThreadWalk(Threads(5, 2, gives_cursors=False), ThreadQuery())))  # type: ignore[arg-type]
    with pytest.raises(SchemaVersionError, match="never set up"):
        asyncio.run(walked(ThreadWalk(Threads(5, is_set_up=False), ThreadQuery())))  # type: ignore[arg-type]
