"""Opening and closing while calls are under way."""

from __future__ import annotations

import asyncio

import pytest

from strata_core.blobs import InMemoryBlobStore
from strata_core.errors import StoreClosedError, UsageError
from strata_core.options import Deltas, Offload
from strata_core.rows import HeadQuery
from strata_core.store import RowStore


@pytest.mark.parametrize("options", [{}, {"deltas": Deltas()}, {"offload": Offload(threshold=5)}], ids=str)
def test_closing_waits_for_every_call_that_was_made_before_it(probe, checkpoint, options):
    async def scenario():
        store = RowStore(probe, **options)
        await store.__aenter__()
        tasks = [asyncio.create_task(store.save(checkpoint("t", {"n": n, "text": "long enough"}))) for n in range(5)]
        await asyncio.sleep(0)
        await store.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [0, 1, 2, 3, 4] == asyncio.run(scenario())


def test_closing_waits_for_a_first_save_with_external_blobs_and_leaves_no_reservation(probe, memory, checkpoint):
    async def scenario():
        store = RowStore(probe, offload=Offload(threshold=5, blobs=InMemoryBlobStore()))
        await store.__aenter__()
        task = asyncio.create_task(store.save(checkpoint("t", {"text": "long enough"})))
        await asyncio.sleep(0)
        await store.close()
        return await task, await memory.list_heads(HeadQuery(rowless=True)), (await memory.read_head("t")).token

    assert (0, [], 0) == asyncio.run(scenario())


def test_a_call_made_while_the_store_is_closing_is_refused(probe, checkpoint):
    async def scenario():
        probe.gate = asyncio.Event()
        store = RowStore(probe)
        await store.__aenter__()
        save = asyncio.create_task(store.save(checkpoint("t", {})))
        while not probe.batches:
            await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        for call in (store.save(checkpoint("t", {})), store.load("t"), store.list_threads()):
            with pytest.raises(StoreClosedError):
                await call
        probe.gate.set()
        await closing
        return await save, probe.closed

    assert (0, 1) == asyncio.run(scenario())


def test_a_cancelled_close_still_lets_go_of_the_backend(probe, checkpoint):
    async def scenario():
        probe.gate = asyncio.Event()
        store = RowStore(probe)
        await store.__aenter__()
        save = asyncio.create_task(store.save(checkpoint("t", {})))
        while not probe.batches:
            await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        probe.gate.set()
        await save
        return probe.closed

    assert 1 == asyncio.run(scenario())


def test_a_store_is_opened_once_at_a_time_and_can_be_opened_again(probe, checkpoint):
    async def scenario():
        store = RowStore(probe)
        first, second = await asyncio.gather(store.__aenter__(), store.__aenter__(), return_exceptions=True)
        assert first is store
        assert isinstance(second, UsageError)
        await store.close()
        async with store:
            return await store.save(checkpoint("t", {}))

    assert 0 == asyncio.run(scenario())
