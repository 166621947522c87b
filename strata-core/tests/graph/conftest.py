"""The store for the engine's tests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from strata_core.store import RowStore

sys.path.append(str(Path(__file__).parent / "support"))  # what tests and the programs they start share

from storages import SERVERS, STORES, Storage, storages

if SERVERS & set(STORES):
    from strata_conformance.servers.fixtures import (  # noqa: F401  # fixtures are known by their names
        postgres_server,
        redis_server,
        valkey_server,
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what another store cannot change: it runs once, on memory, in the environment of core.

    That is a test that asks for no storage, and one that is marked `once`, with the reason.
    """
    here = Path(__file__).parent
    left_out = [item for item in items if here in item.path.parents and not _is_due(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _is_due(item: pytest.Item) -> bool:
    callspec: Any = getattr(item, "callspec", None)
    store = "memory" if callspec is None else callspec.params.get("fresh_storage", "memory")
    if store == "memory":
        return "memory" in STORES
    return item.get_closest_marker("once") is None


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

    def __init__(self, storage: Storage) -> None:
        self.clock = storage.clock
        self.open: Callable[[], AbstractAsyncContextManager[RowStore]] = storage.open
        self.left = storage.left

    async def die(self, start: Callable[[Any], Coroutine[Any, Any, Any]], store: RowStore, when: asyncio.Event) -> None:
        """Start a run, and let its process die once `when` is set: it writes nothing more, and its lease stays."""
        process = Mortal(store)
        task = asyncio.create_task(start(process))
        reached = asyncio.create_task(when.wait())
        await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        assert not task.done(), "it was through before it came to die"
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
        """Let a lease run out; a store whose clock the test's clock does not move is waited for."""
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


@pytest.fixture(scope="session")
def postgres_client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A connection that looks after the storages in PostgreSQL."""
    from strata_conformance.servers import PostgresClient

    with PostgresClient(request.getfixturevalue("postgres_server").url) as client:
        yield client


@pytest.fixture(params=STORES)
def fresh_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AbstractContextManager[Storage]]:
    """What makes fresh storages, in each store that is tested."""
    return storages(request, tmp_path)


@pytest.fixture
def storage(fresh_storage: Callable[[], AbstractContextManager[Storage]]) -> Iterator[Storage]:
    """A fresh storage."""
    with fresh_storage() as storage:
        yield storage


@pytest.fixture
def world(storage: Storage) -> World:
    """A fresh storage with a clock that stands still."""
    return World(storage)
