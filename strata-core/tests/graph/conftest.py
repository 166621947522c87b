"""The store for the engine's tests."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from strata_core import open_store
from strata_core.memory import MemoryBackend
from strata_core.store import RowStore
from strata_core.testing import FakeClock

sys.path.append(str(Path(__file__).parent / "support"))  # what tests and the programs they start share

STORE = os.environ.get("STRATA_TEST_STORE", "memory://")
"""The URL of the store that the engine is tested on; FOLDER stands for a fresh folder.  Each backend's own environment
runs these tests once more, on itself."""


def opener(clock: FakeClock, folder: Path) -> Callable[[], AbstractAsyncContextManager[Any]]:
    """Return a function that opens one more store on the same storage."""
    if STORE == "memory://":
        backend = MemoryBackend(clock)
        return lambda: RowStore(backend)
    return lambda: open_store(STORE.replace("FOLDER", str(folder)), clock=clock)


class Mortal:
    """A store as one process has it: once the process is dead, nothing reaches the store any more."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        if self.is_dead:
            raise ConnectionAbortedError("this process is dead")
        return getattr(self._store, name)


class World:
    """One storage, its clock, and as many stores on it as a test wants."""

    def __init__(self, clock: FakeClock, opener: Callable[[], AbstractAsyncContextManager[RowStore]]) -> None:
        self.clock = clock
        self._opener = opener

    def open(self) -> AbstractAsyncContextManager[RowStore]:
        return self._opener()

    async def die(self, start: Callable[[Any], Coroutine[Any, Any, Any]], store: RowStore, when: asyncio.Event) -> None:
        """Start a run, and let its process die once `when` is set: it writes nothing more, and its lease stays."""
        process = Mortal(store)
        task = asyncio.create_task(start(process))
        await when.wait()
        process.is_dead = True
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    @asynccontextmanager
    async def pair(self) -> AsyncIterator[tuple[RowStore, RowStore]]:
        """Open two stores on the storage, as two processes would."""
        async with self.open() as one, self.open() as other:
            yield one, other

    async def lapse(self, store: RowStore, thread_id: str, ttl: timedelta) -> None:
        """Let a lease run out: the injected clock is moved; a server's own is waited for."""
        self.clock.advance(ttl)
        until = asyncio.get_running_loop().time() + ttl.total_seconds() + 10
        while await store.live_lease(thread_id) is not None:
            assert asyncio.get_running_loop().time() < until, "a lease outlived its ttl"
            await asyncio.sleep(0.01)

    async def log(self, store: RowStore, thread_id: str) -> list[Any]:
        """Return the thread's checkpoints, oldest first."""
        return [entry.checkpoint for entry in (await store.get_log(thread_id, limit=1000)).entries]

    async def rows(self, store: RowStore, thread_id: str) -> list[tuple[str, str | None, str | None]]:
        """Return the thread's rows as (state, where it stopped or last committed, where it goes on)."""
        return [
            (checkpoint.state.value, checkpoint.suspended_node, checkpoint.next_node)
            for checkpoint in await self.log(store, thread_id)
        ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A fresh storage with a clock that stands still."""
    clock = FakeClock()
    return World(clock, opener(clock, tmp_path))
