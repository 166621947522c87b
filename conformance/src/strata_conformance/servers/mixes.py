"""Random calls of several callers while random faults strike the wire.

For the tests of a store that a server keeps, beside `strata_conformance.servers.lives`, whose faults strike one by one.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import attrs

from strata_conformance.servers.lives import COMPLETED, LATER, LONG, checkpoint
from strata_conformance.servers.proxy import FaultProxy, Request
from strata_core.errors import ConflictError, StoreUnavailableError
from strata_core.records import Lease
from strata_core.store import RowStore

__all__ = ["Mix", "Told"]

THREADS: Final = "abcd"
CALLERS: Final = 5
"""At most so many rows pass a write between two attempts, which is below the eight that a head remembers."""


@attrs.define
class Told:
    """What the callers were told of their writes, each of which has a number of its own.

    Attributes:
        done: The number by thread and sequence.
        undone: The numbers of those that were refused, or did not reach the server.
        unknown: The numbers of those whose outcome nobody was told.
        finished: Threads of one completed checkpoint.
        purged: How many threads purges counted.
    """

    done: dict[tuple[str, int], int] = attrs.Factory(dict)
    undone: set[int] = attrs.Factory(set)
    unknown: set[int] = attrs.Factory(set)
    finished: set[str] = attrs.Factory(set)
    purged: int = 0


class Mix:
    """Five callers that save, load, list, lease and purge at random until so many faults have struck.

    About one request of twelve comes to harm: it is lost or cut short, or its answer is, or it hangs; and now and then
    all connections are reset at once.

    Args:
        proxy: In front of the server; the store must connect through it.
        faults: How many must strike.
        seed: Of all randomness but the timing.

    Attributes:
        told: What the callers were told.
        struck: How many faults have struck.
    """

    def __init__(self, proxy: FaultProxy, faults: int, seed: int) -> None:
        self.told = Told()
        self.struck = 0
        self._proxy = proxy
        self._faults = faults
        self._seed = seed

    async def run(self, store: RowStore) -> None:
        """Plan the faults and make the calls."""
        self._plan()
        await asyncio.gather(*(self._work(_Caller(store, number, self.told)) for number in range(CALLERS)))

    async def _work(self, caller: _Caller) -> None:
        calls = 0
        while self.struck < self._faults:
            calls += 1
            if calls % 97 == 0:
                self._proxy.reset_all()
                self.struck += 1
            with suppress(StoreUnavailableError):  # of a read, or of a call that the caller does not repeat
                await caller.call()

    def _plan(self) -> None:
        choose = random.Random(self._seed)

        def one_of(share: float) -> Callable[[Request], bool]:
            def strikes(request: Request) -> bool:
                # Of a pipeline only the first: what is sent as a hundred commands would never get through.
                struck = request.starts_round_trip and choose.random() < share
                self.struck += struck
                return struck

            return strikes

        proxy = self._proxy
        proxy.reset("request", match=one_of(0.02), times=None)
        proxy.reset("reply", match=one_of(0.03), times=None)
        proxy.cut("request", 9, match=one_of(0.01), times=None)
        proxy.cut("reply", 9, match=one_of(0.01), times=None)
        proxy.hang("reply", match=one_of(0.01), times=max(3, self._faults // 100))
        proxy.delay(replies=0.001)

    async def check(self, store: RowStore) -> None:
        """Compare what is stored with what the callers were told.

        Args:
            store: Connected without the proxy.

        Raises:
            AssertionError: Something acknowledged is lost, something is there twice, or something refused is there.
        """
        told = self.told
        await store.purge(LATER)
        stored: dict[tuple[str, int], int] = {}
        for thread_id in THREADS:
            start: int | None = 0
            while start is not None:
                page = await store.get_log(thread_id, start=start, limit=1000)
                for entry in page.entries:
                    stored[thread_id, entry.sequence] = entry.checkpoint.frozen_state["step"]
                start = page.next_start
        listed = [thread.thread_id for thread in (await store.list_threads()).threads]

        assert told.done.items() <= stored.items(), "something acknowledged is lost"
        assert len(stored) == len(set(stored.values())), "something was written twice"
        assert set(stored.values()) <= set(told.done.values()) | told.unknown
        assert not told.undone & set(stored.values()), "something refused was written"
        assert len(told.done) > self._faults // 2
        # Of two purges whose answers were lost, both may count a thread: neither can tell whose erasure it was.
        assert 0 < told.purged < 2 * len(told.finished)
        assert sorted(THREADS) == sorted(listed)


class _Caller:
    """Makes random calls, and repeats some of those whose outcome it was not told."""

    def __init__(self, store: RowStore, seed: int, told: Told) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.told = told
        self._numbers = iter(range(seed * 1_000_000, (seed + 1) * 1_000_000))
        self._leases: dict[str, Lease] = {}

    async def call(self) -> None:
        store, thread_id = self.store, self.random.choice(THREADS)
        kind = self.random.randrange(8)
        if kind < 3:
            await self._write(thread_id, store.save)
        elif kind == 3:
            entry = await store.load(thread_id)
            expected = None if entry is None else entry.revision
            await self._write(thread_id, lambda row, **more: store.save_if_latest(row, expected, **more))
        elif kind == 4:
            await self._under_lease(thread_id)
        elif kind == 5:
            await store.list_threads()
        elif kind == 6:
            await store.get_log(thread_id, limit=5)
        else:
            await self._finish()

    async def _under_lease(self, thread_id: str) -> None:
        lease = self._leases.pop(thread_id, None)
        if lease is None:
            taken = await self.store.acquire_lease(thread_id, owner="o", ttl=LONG)
            if taken is not None:
                self._leases[thread_id] = taken
            return
        release = self.random.random() < 0.5
        await self._write(
            thread_id, lambda row, **more: self.store.save_under_lease(row, lease, release=release, **more)
        )
        if not release:
            self._leases[thread_id] = lease

    async def _write(self, thread_id: str, write: Any) -> None:
        number, write_id = next(self._numbers), os.urandom(8)
        while True:
            try:
                sequence = await write(checkpoint(thread_id, number), write_id=write_id)
            except StoreUnavailableError as error:
                if error.maybe_written and self.random.random() < 0.7:
                    continue
                (self.told.unknown if error.maybe_written else self.told.undone).add(number)
            except ConflictError:
                self.told.undone.add(number)
            else:
                self.told.done[thread_id, sequence] = number
            return

    async def _finish(self) -> None:
        thread_id = f"finished {next(self._numbers)}"
        self.told.finished.add(thread_id)
        await self.store.save(checkpoint(thread_id, 0, COMPLETED))
        if self.random.random() < 0.5:
            gone = await self.store.purge(LATER)
            self.told.purged += gone
