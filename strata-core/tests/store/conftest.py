"""What the store tests share: a clock, checkpoints, and a backend that can be made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from strata_core.errors import StoreUnavailableError
from strata_core.memory import MemoryBackend
from strata_core.options import Setup
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.rows import Batching, Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend
from strata_core.testing import FakeClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Probe(RowBackend):
    """Passes everything on to another backend, suspends like a real one, records batches, and fails on demand.

    `faults` maps the number of a batch (from 1) to what happens: "before" loses the request, "after" the answer, a
    coroutine function runs after the batch and then loses the answer, an exception is raised instead.
    """

    def __init__(self, inner: RowBackend, batching: Batching | None = Batching()) -> None:  # noqa: B008  # frozen
        self.inner = inner
        self.capabilities = inner.capabilities
        self.batching = batching
        self.batches: list[Sequence[Commit]] = []
        self.faults: dict[int, str | Exception | Callable[[], Awaitable[None]]] = {}
        self.gate: asyncio.Event | None = None
        self.closed = 0

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        await self.inner.open(read_only=read_only, setup=setup)

    async def close(self) -> None:
        self.closed += 1
        await self.inner.close()

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        self.batches.append(list(batch))
        fault = self.faults.pop(len(self.batches), None)
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if fault == "before":
            raise StoreUnavailableError("the request was lost", maybe_written=True)
        if isinstance(fault, Exception):
            raise fault
        outcomes = await self.inner.commit(batch)
        if fault is not None:
            if callable(fault):
                await fault()
            raise StoreUnavailableError("the answer was lost", maybe_written=True)
        return outcomes

    async def read_head(self, thread_id: str) -> Head | None:
        await asyncio.sleep(0)
        return await self.inner.read_head(thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        await asyncio.sleep(0)
        return await self.inner.read(thread_id, first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        await asyncio.sleep(0)
        return await self.inner.read_blobs(thread_id, digests)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        await asyncio.sleep(0)
        return await self.inner.list_heads(query)


def make_checkpoint(thread_id: str, state: dict[str, Any], status: str = "running", **fields: Any) -> Checkpoint:
    fields.setdefault("created_at", NOW)
    return Checkpoint(thread_id, CheckpointStatus(status), state, **fields)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def memory(clock: FakeClock) -> MemoryBackend:
    return MemoryBackend(clock)


@pytest.fixture
def probe(memory: MemoryBackend) -> Probe:
    return Probe(memory)


@pytest.fixture
def checkpoint() -> Callable[..., Checkpoint]:
    return make_checkpoint


@pytest.fixture
def new_probe() -> type[Probe]:
    return Probe


@pytest.fixture
def later() -> datetime:
    """A cutoff that every checkpoint of these tests is older than."""
    return NOW + timedelta(days=1)
