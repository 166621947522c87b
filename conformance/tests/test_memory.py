"""The in-memory backend passes the whole suite; so does one that makes its callers wait, as a database does."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

import pytest

from strata_conformance import OpenBackend, RowBackendTests
from strata_core.memory import MemoryBackend
from strata_core.rows import Batching, Commit, Committed, Head, HeadQuery, Refused, Row
from strata_core.testing import FakeClock

T = TypeVar("T")


class TestMemory(RowBackendTests):
    in_memory = True

    @pytest.fixture
    def open_backend(self, clock: FakeClock) -> OpenBackend:
        backend = MemoryBackend(clock)
        return lambda: backend


class SlowMemory(MemoryBackend):
    """Waits before and after each step, batches commits, and has two batches under way at once."""

    batching = Batching(max_items=8, in_flight=2)  # type: ignore[assignment]  # unlike its base, it suspends

    async def _slowly(self, step: Callable[[], Awaitable[T]]) -> T:
        await asyncio.sleep(0)
        result = await step()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return result

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        return await self._slowly(lambda: super(SlowMemory, self).commit(batch))

    async def read_head(self, thread_id: str) -> Head | None:
        return await self._slowly(lambda: super(SlowMemory, self).read_head(thread_id))

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await self._slowly(lambda: super(SlowMemory, self).read(thread_id, first, last))

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return await self._slowly(lambda: super(SlowMemory, self).read_blobs(thread_id, digests))

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        return await self._slowly(lambda: super(SlowMemory, self).list_heads(query))


class TestSlowMemory(RowBackendTests):
    in_memory = True

    @pytest.fixture
    def open_backend(self, clock: FakeClock) -> OpenBackend:
        backend = SlowMemory(clock)
        return lambda: backend
