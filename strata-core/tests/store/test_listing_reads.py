"""A page of several states is one read of the backend: one snapshot, in which a thread stands once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest

from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, ThreadQuery, ThreadState
from strata_core.rows import Head, HeadQuery, RowBackend
from strata_core.store import RowStore


@pytest.fixture
def reads(probe: RowBackend, monkeypatch: pytest.MonkeyPatch) -> list[HeadQuery]:
    """The listings that the backend was asked for."""
    asked: list[HeadQuery] = []
    list_heads = probe.list_heads

    async def record(query: HeadQuery) -> Sequence[Head]:
        asked.append(query)
        return await list_heads(query)

    monkeypatch.setattr(probe, "list_heads", record)
    return asked


def test_several_states_are_listed_in_one_read(
    probe: RowBackend, reads: list[HeadQuery], checkpoint: Callable[..., Checkpoint]
) -> None:
    """With one read a state, a thread that completes between two of them would be listed twice, or not at all."""

    async def run() -> list[str]:
        async with RowStore(probe) as store:
            for status in ("running", "completed", "failed"):
                await store.save(checkpoint(status, {}, status))
            page = await store.list_threads(ThreadQuery(states={ThreadState.RUNNING, ThreadState.COMPLETED}, limit=9))
        return sorted(thread.thread_id for thread in page.threads)

    listed = asyncio.run(run())

    assert ["completed", "running"] == listed
    assert [(frozenset({"running", "completed"}), 10)] == [(query.states, query.limit) for query in reads]


def test_a_purge_of_several_states_finds_its_threads_in_one_read(
    probe: RowBackend,
    memory: MemoryBackend,
    reads: list[HeadQuery],
    checkpoint: Callable[..., Checkpoint],
    later: datetime,
) -> None:
    async def run() -> tuple[int, list[str]]:
        async with RowStore(probe) as store:
            for status in ("running", "completed", "failed"):
                await store.save(checkpoint(status, {}, status))
            gone = await store.purge(later, states={ThreadState.FAILED, ThreadState.COMPLETED})
        return gone, [head.thread_id for head in await memory.list_heads(HeadQuery())]

    gone, left = asyncio.run(run())

    assert (2, ["running"]) == (gone, left)
    assert [frozenset({"failed", "completed"})] * 2 == [query.states for query in reads if not query.rowless]
