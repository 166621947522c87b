"""Threads whose latest row is damaged, in logs and listings, when they go on and when they are purged."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, checkpoint
from strata_conformance.suite._backend import BackendTests, OpenBackend, row
from strata_core.capabilities import Capability
from strata_core.errors import CorruptCheckpointError
from strata_core.options import Deltas
from strata_core.records import ThreadState
from strata_core.rows import Commit
from strata_core.store import RowStore

__all__ = ["DamagedThreadTests"]

PICKLE: Final = b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01n\x94K\x01s."
CUT: Final = b'{"schema_version":"1.7.0","thread_id":"t","status":"runn'
damages = pytest.mark.parametrize("bad", [PICKLE, CUT, b"\xff\xfe", b""], ids=["pickle", "cut", "no text", "empty"])


@asynccontextmanager
async def _with_damage(open_backend: OpenBackend, bad: bytes, **options: Any) -> AsyncIterator[RowStore]:
    """Give a store in which the thread "t" has two good rows and a damaged one, and "sound" a good one."""
    backend = open_backend()
    async with RowStore(backend, **options) as store:
        await store.save(checkpoint("sound", state={"n": "sound"}))
        for n in range(2):
            await store.save(checkpoint(state={"n": n}))
        damaged = row(2, envelope=bad, body=bad, updated=2**50)
        await backend.commit([Commit("t", os.urandom(8), row=damaged)])
        yield store


class DamagedThreadTests(BackendTests):
    """Damage stays where it is, and is never passed over."""

    @promise("damage-1")
    @pytest.mark.requires(Capability.QUERY)
    @damages
    async def test_a_log_that_comes_to_a_damaged_row_says_so(self, open_backend: OpenBackend, bad: bytes) -> None:
        """A log that comes to a row which cannot be read raises CorruptCheckpointError that names the thread and the
        sequence; it never leaves the row out, and slices that end before it, or start behind it, are read.
        """
        async with _with_damage(open_backend, bad) as store:
            await store.save(checkpoint(state={"n": 3}))
            caught = []
            for start, limit in ((0, 100), (0, 3), (1, 2), (2, 1), (2, 100)):
                with pytest.raises(CorruptCheckpointError) as error:
                    await store.get_log("t", start=start, limit=limit)
                caught.append((error.value.thread_id, error.value.sequence))
            slices = [await store.get_log("t", start=start, limit=limit) for start, limit in ((0, 1), (0, 2), (1, 1))]
            behind = await store.get_log("t", start=3)
            sound = await store.get_log("sound")

        assert [("t", 2)] * 5 == caught
        assert [[0], [0, 1], [1]] == [[entry.sequence for entry in page.entries] for page in slices]
        assert [1, 2, 2] == [page.next_start for page in slices]
        assert [3] == [entry.sequence for entry in behind.entries]
        assert [0] == [entry.sequence for entry in sound.entries]

    @promise("damage-2")
    @pytest.mark.requires(Capability.QUERY)
    @damages
    async def test_a_listing_that_comes_to_a_damaged_row_says_so(self, open_backend: OpenBackend, bad: bytes) -> None:
        """A listing that comes to a thread whose latest record cannot be read raises CorruptCheckpointError that names
        the thread and the sequence; it never leaves the thread out, nor shows it as it was before.
        """
        async with _with_damage(open_backend, bad) as store:
            with pytest.raises(CorruptCheckpointError) as caught:
                await store.list_threads()

        assert ("t", 2) == (caught.value.thread_id, caught.value.sequence)

    @promise("damage-3")
    @damages
    async def test_a_thread_goes_on_behind_a_damaged_row(self, open_backend: OpenBackend, bad: bytes) -> None:
        """A save on a thread whose latest row cannot be read appends, with deltas too; the new checkpoint does not
        build on the damaged one, which stays as it is.
        """
        deltas = Deltas() if Capability.DELTAS in open_backend().capabilities else None
        async with _with_damage(open_backend, bad, deltas=deltas) as store:
            sequences = [await store.save(checkpoint(state={"n": n, "kept": "x" * 99})) for n in (3, 4)]
            with pytest.raises(CorruptCheckpointError):
                await store.load("t", at=2)
        async with RowStore(open_backend()) as store:
            entries = [await store.load("t", at=n) for n in (0, 1, 3, 4)]

        assert [3, 4] == sequences
        assert [0, 1, 3, 4] == [entry.checkpoint.frozen_state["n"] for entry in entries if entry is not None]

    @promise("damage-4")
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_damaged_thread_can_be_purged(self, open_backend: OpenBackend) -> None:
        """A purge takes a thread whose latest row cannot be read like any other, by what its head says."""
        async with _with_damage(open_backend, PICKLE) as store:
            purged = await store.purge(BASE.replace(year=2900) + timedelta(days=1), states={ThreadState.RUNNING})
            left = [await store.load(thread) for thread in ("t", "sound")]
            again = await store.save(checkpoint(state={"n": "new life"}))

        assert 2 == purged
        assert [None, None] == left
        assert 0 == again
