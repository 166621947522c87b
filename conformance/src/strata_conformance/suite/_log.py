"""Reading a thread's log."""

from __future__ import annotations

import asyncio

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import checkpoint
from strata_conformance.suite._base import OpenStore, PortTests
from strata_core.capabilities import Capability

__all__ = ["LogTests"]

queries = pytest.mark.requires(Capability.QUERY)


class LogTests(PortTests):
    """Slices of a log."""

    @promise("log-1")
    @queries
    async def test_a_log_is_read_oldest_first(self, open_store: OpenStore) -> None:
        """A log holds every checkpoint of the thread, oldest first, and of no other thread."""
        async with open_store() as store:
            for n in range(5):
                await store.save(checkpoint("t", state={"n": n}))
                await store.save(checkpoint("t1", state={"n": "other"}))
            page = await store.get_log("t")

        assert [(n, {"n": n}) for n in range(5)] == [(e.sequence, e.checkpoint.frozen_state) for e in page.entries]
        assert page.next_start is None

    @promise("log-2")
    @queries
    async def test_slices_join_without_gaps(self, open_store: OpenStore) -> None:
        """A slice holds at most `limit` checkpoints from `start` on, and says where the next one starts; the one that
        reaches the end of the log says None.
        """
        async with open_store() as store:
            for n in range(7):
                await store.save(checkpoint(state={"n": n}))
            got = []
            for start, limit in ((0, 3), (3, 3), (6, 3), (0, 7), (0, 8), (5, 1), (6, 1), (2, 1000)):
                page = await store.get_log("t", start=start, limit=limit)
                got.append(([entry.sequence for entry in page.entries], page.next_start))

        assert [
            ([0, 1, 2], 3),
            ([3, 4, 5], 6),
            ([6], None),
            ([0, 1, 2, 3, 4, 5, 6], None),
            ([0, 1, 2, 3, 4, 5, 6], None),
            ([5], 6),
            ([6], None),
            ([2, 3, 4, 5, 6], None),
        ] == got

    @promise("log-3")
    @queries
    async def test_there_is_nothing_past_the_end(self, open_store: OpenStore) -> None:
        """The log of an unknown thread, and a slice that starts past the end, is empty and says None."""
        async with open_store() as store:
            await store.save(checkpoint())
            pages = [await store.get_log("unknown"), await store.get_log("unknown", start=5)]
            pages += [await store.get_log("t", start=start) for start in (1, 2, 2**16, 2**31 - 1)]

        assert [([], None)] * 6 == [(list(page.entries), page.next_start) for page in pages]

    @promise("log-4")
    @queries
    async def test_a_long_log_is_read_in_slices_of_a_thousand(self, open_store: OpenStore) -> None:
        """A log of 2,000 checkpoints is read whole, in slices of up to 1,000."""
        async with open_store() as store:
            for start in range(0, 2000, 500):
                await asyncio.gather(*(store.save(checkpoint(state={"n": n})) for n in range(start, start + 500)))
            found: list[int] = []
            start_: int | None = 0
            sizes = []
            while start_ is not None:
                page = await store.get_log("t", start=start_, limit=1000)
                found += [entry.checkpoint.frozen_state["n"] for entry in page.entries]
                sizes.append(len(page.entries))
                start_ = page.next_start
            latest = await store.load("t")

        assert list(range(2000)) == found
        assert [1000, 1000] == sizes
        assert latest is not None
        assert 1999 == latest.sequence
