"""Leases and erasing at the row boundary."""

from __future__ import annotations

import os
from datetime import timedelta

from strata_conformance._promise import promise
from strata_conformance.suite._backend import BackendTests, OpenBackend, opened, row
from strata_conformance.suite._rows import HOUR, append
from strata_core.capabilities import Capability
from strata_core.rows import (
    NOTHING,
    Commit,
    Committed,
    Drop,
    Extend,
    HeadQuery,
    Refusal,
    Refused,
    Take,
)
from strata_core.testing import FakeClock

__all__ = ["RowLeaseTests"]


class RowLeaseTests(BackendTests):
    """Leases and erasing, and the heads that are left of them."""

    @promise("row-8")
    async def test_tokens_grow_across_release_erase_and_reopening(self, open_backend: OpenBackend) -> None:
        """Each lease of a thread has a larger token than every one before it, across release, erase and reopening,
        though nothing of the thread is left.
        """
        tokens = []
        for _ in range(3):
            async with opened(open_backend()) as backend:
                for erase in (False, True):
                    taken = (await backend.commit([Commit("t", os.urandom(8), lease=Take("o", HOUR), row=row())]))[0]
                    assert isinstance(taken, Committed)
                    tokens.append(taken.token)
                    await backend.commit(
                        [Commit("t", os.urandom(8), token=taken.token, lease=None if erase else Drop(), erase=erase)]
                    )
                assert await backend.read_head("t") is None

        assert sorted(set(tokens)) == tokens

    @promise("row-9")
    async def test_a_lease_without_rows_leaves_nothing_behind(self, open_backend: OpenBackend) -> None:
        """A lease on a thread without rows makes a head with sequence -1 that reads and listings of threads do not
        show, and that is gone when the lease is dropped.
        """
        async with opened(open_backend()) as backend:
            taken = (await backend.commit([Commit("t", os.urandom(8), lease=Take("o", HOUR))]))[0]
            assert isinstance(taken, Committed)
            head = await backend.read_head("t")
            rows = list(await backend.read("t", None, None)) + list(await backend.read("t", 0, None))
            listed = list(await backend.list_heads(HeadQuery()))
            rowless = [h.thread_id for h in await backend.list_heads(HeadQuery(rowless=True))]
            await backend.commit([Commit("t", os.urandom(8), token=taken.token, lease=Drop())])
            left = await backend.read_head("t")
            rowless_left = list(await backend.list_heads(HeadQuery(rowless=True)))

        assert head is not None
        assert (NOTHING, "o", taken.token) == (head.sequence, head.owner, head.token)
        assert ([], []) == (rows, listed)
        assert ["t"] == rowless
        assert left is None
        assert [] == rowless_left

    @promise("row-10")
    async def test_an_erased_thread_leaves_nothing_behind(self, open_backend: OpenBackend) -> None:
        """An erase takes the rows, the blobs and the head, of this thread only; the thread starts over at 0 with
        nothing of its earlier life.
        """
        async with opened(open_backend()) as backend:
            blobs = [("sha256:" + "a" * 64, b"1")] if Capability.OWN_BLOBS in backend.capabilities else []
            for thread in ("t", "t2", "T"):
                for n in range(5):
                    await append(backend, thread, row=row(n, whole=n == 0, metadata={"k": "v"}), blobs=blobs)
            erased = (await backend.commit([Commit("t", os.urandom(8), after=4, free=True, erase=True)]))[0]
            left = (
                await backend.read_head("t"),
                list(await backend.read("t", 0, None)),
                dict(await backend.read_blobs("t", ["sha256:" + "a" * 64])),
                sorted(h.thread_id for h in await backend.list_heads(HeadQuery(metadata={"k": "v"}))),
                list(await backend.list_heads(HeadQuery(rowless=True))),
            )
            others = [len(await backend.read(thread, 0, None)) for thread in ("t2", "T")]
            same = [dict(await backend.read_blobs(thread, [digest for digest, _ in blobs])) for thread in ("t2", "T")]
            again = await append(backend, "t", row=row(7))
            rows = await backend.read("t", 0, None)
            blobs_again = dict(await backend.read_blobs("t", ["sha256:" + "a" * 64]))

        assert isinstance(erased, Committed)
        assert (None, [], {}, ["T", "t2"], []) == left
        assert [5, 5] == others
        assert [dict(blobs)] * 2 == same
        assert isinstance(again, Committed)
        assert [(0, b'{"n":7}')] == [(r.sequence, r.body) for r in rows]
        assert {} == blobs_again

    @promise("row-11")
    async def test_a_closing_head_refuses_everybody_else(self, open_backend: OpenBackend, clock: FakeClock) -> None:
        """An erase that takes the lease as closing leaves a head without rows that refuses every other write, also when
        that lease has expired, until its holder drops it; what it says of external blobs stays.
        """
        async with opened(open_backend()) as backend:
            await append(backend, "t", external=True)
            taken = (
                await backend.commit(
                    [Commit("t", os.urandom(8), after=0, free=True, lease=Take("purge", HOUR, True), erase=True)]
                )
            )[0]
            assert isinstance(taken, Committed)
            head = await backend.read_head("t")
            rows = list(await backend.read("t", 0, None))
            refused = [
                (await backend.commit([commit]))[0]
                for commit in (
                    Commit("t", os.urandom(8), row=row()),
                    Commit("t", os.urandom(8), after=NOTHING, row=row()),
                    Commit("t", os.urandom(8), lease=Take("o", HOUR)),
                    Commit("t", os.urandom(8), lease=Take("purge", HOUR, True)),
                    Commit("t", os.urandom(8), erase=True),
                )
            ]
            extended = (await backend.commit([Commit("t", os.urandom(8), token=taken.token, lease=Extend(HOUR))]))[0]
            await backend.commit([Commit("t", os.urandom(8), token=taken.token, erase=True)])
            left = await backend.read_head("t")
            again = await append(backend, "t")
            await backend.commit([Commit("t", os.urandom(8), after=0, lease=Take("purge", 1, True), erase=True)])
            clock.advance(timedelta(seconds=1))
            over = await backend.read_head("t")  # a microsecond has passed on a server's clock too
            assert over is not None
            assert not over.is_leased(over.now)
            refused += [
                (await backend.commit([commit]))[0]
                for commit in (
                    Commit("t", os.urandom(8), row=row()),
                    Commit("t", os.urandom(8), lease=Take("o", HOUR)),
                    Commit("t", os.urandom(8), erase=True),
                )
            ]

        assert head is not None
        assert (NOTHING, True, True, "purge") == (head.sequence, head.closing, head.external, head.owner)
        assert [] == rows
        assert [Refusal.CLOSING] * 8 == [outcome.why for outcome in refused if isinstance(outcome, Refused)]
        assert isinstance(extended, Committed)
        assert left is None
        assert isinstance(again, Committed)
