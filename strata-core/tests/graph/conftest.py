"""The store for the engine's tests."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from strata_core.store import RowStore

sys.path.append(str(Path(__file__).parent / "world"))

from storages import SERVERS, STORES, Storage, fresh_storage

if SERVERS & set(STORES):
    from strata_conformance.servers.fixtures import (  # noqa: F401  # fixtures are known by their names
        postgres_server,
        redis_server,
        valkey_server,
    )


class World:
    """One storage, its clock, and as many stores on it as a test wants."""

    def __init__(self, storage: Storage) -> None:
        self.clock = storage.clock
        self.open: Callable[[], AbstractAsyncContextManager[RowStore]] = storage.open
        self.left = storage.left

    @asynccontextmanager
    async def pair(self) -> AsyncIterator[tuple[RowStore, RowStore]]:
        """Open two stores on the storage, as two processes would."""
        async with self.open() as one, self.open() as other:
            yield one, other

    async def log(self, store: RowStore, thread_id: str) -> list[Any]:
        """Return the thread's checkpoints, oldest first."""
        return [entry.checkpoint for entry in (await store.get_log(thread_id, limit=1000)).entries]

    async def rows(self, store: RowStore, thread_id: str) -> list[tuple[str, str | None, str | None]]:
        """Return the thread's rows as (state, where it stopped or last committed, where it goes on)."""
        return [
            (checkpoint.state.value, checkpoint.suspended_node, checkpoint.next_node)
            for checkpoint in await self.log(store, thread_id)
        ]


@pytest.fixture(params=STORES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """A fresh storage, in each store that is tested."""
    name = request.param
    server = request.getfixturevalue(f"{name}_server") if name in SERVERS else None
    with fresh_storage(name, tmp_path, server) as storage:
        yield storage


@pytest.fixture
def world(storage: Storage) -> World:
    """A fresh storage with a clock that stands still."""
    return World(storage)
