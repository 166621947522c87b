"""Opening, closing and cancelling: nothing goes on behind anybody's back."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

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


def test_a_close_that_is_cancelled_before_it_began_leaves_no_thread_behind(service: SmallService) -> None:
    """It waits for a thread of the event loop, all of which others may keep busy."""

    async def scenario() -> list[str]:
        loop, gate = asyncio.get_running_loop(), threading.Event()
        blobs = await store_at(service.endpoint_url).__aenter__()
        mine = [thread for thread in threading.enumerate() if thread.name.startswith("strata-blobs-s3")]
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, gate.wait)
        close = asyncio.create_task(blobs.close())
        await asyncio.sleep(0)
        close.cancel()
        with pytest.raises(asyncio.CancelledError):
            await close
        gate.set()
        await busy
        for thread in mine:
            await asyncio.to_thread(thread.join, 30)
        return [thread.name for thread in mine if thread.is_alive()]

    assert [] == asyncio.run(scenario())


def test_two_hundred_puts_share_ten_connections_and_those_that_close_finds_are_done(service: SmallService) -> None:
    async def scenario() -> list[BaseException | None]:
        blobs = await store_at(service.endpoint_url).__aenter__()
        puts = [asyncio.create_task(blobs.put(f"t{n}", digest_of(SMALL), SMALL)) for n in range(200)]
        while not service.objects:
            await asyncio.sleep(0)
        await blobs.close()
        return list(await asyncio.gather(*puts, return_exceptions=True))

    assert [None] * 200 == asyncio.run(scenario())
    assert 200 == len(service.objects)


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
