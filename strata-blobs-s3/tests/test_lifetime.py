"""Opening, closing and cancelling: nothing goes on behind anybody's back."""

from __future__ import annotations

import asyncio
import threading

import pytest
from s3_support import SMALL, digest_of, store_at
from small_service import SmallService

from strata_core.errors import StoreClosedError, UsageError


def test_a_cancelled_get_returns_at_once_and_close_waits_for_its_thread(service: SmallService) -> None:
    async def scenario() -> list[str]:
        async with store_at(service.endpoint_url) as blobs:
            await blobs.put("t", digest_of(SMALL), SMALL)
            service.gate = threading.Event()
            service.requests.clear()
            get = asyncio.create_task(blobs.get("t", digest_of(SMALL)))
            while not service.requests:
                await asyncio.sleep(0.001)
            get.cancel()
            with pytest.raises(asyncio.CancelledError):
                await get
            service.gate.set()
        with pytest.raises(StoreClosedError, match="use it inside 'async with'"):
            await blobs.get("t", digest_of(SMALL))
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("strata-blobs-s3")]

    assert [] == asyncio.run(scenario())


def test_a_cancelled_put_returns_when_it_is_known_whether_it_was_done(service: SmallService) -> None:
    async def scenario() -> bool:
        async with store_at(service.endpoint_url, max_connections=1) as blobs:
            service.gate = threading.Event()
            service.requests.clear()
            puts = [asyncio.create_task(blobs.put(thread, digest_of(SMALL), SMALL)) for thread in ("one", "two")]
            while not service.requests:
                await asyncio.sleep(0.001)
            for put in puts:
                put.cancel()
            await asyncio.wait([puts[1]])
            waits = not puts[0].done()
            service.gate.set()
            await asyncio.wait(puts)
        return waits

    assert asyncio.run(scenario())
    assert [f"strata/{b'one'.hex()}/{digest_of(SMALL)[7:]}"] == list(service.objects)


def test_a_store_is_opened_once_at_a_time_and_can_be_opened_again(service: SmallService) -> None:
    async def scenario() -> None:
        blobs = store_at(service.endpoint_url)
        with pytest.raises(StoreClosedError):
            await blobs.ping()
        for _ in range(2):
            async with blobs:
                with pytest.raises(UsageError, match="is open already"):
                    await blobs.__aenter__()
                await blobs.ping()
        await blobs.close()

    asyncio.run(scenario())
