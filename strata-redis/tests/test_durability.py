"""What was acknowledged is there after a crash, on a server that is set as the README says."""

import asyncio
import os
from collections.abc import Iterator

import pytest
from redis_support import Place, opened, save, start, with_backend

from strata_conformance.servers import RedisServer, ValkeyServer
from strata_conformance.servers.fixtures import server_or_outcome
from strata_core.errors import StoreUnavailableError
from strata_core.rows import Committed, HeadQuery
from strata_redis import RedisBackend


@pytest.fixture(params=[ValkeyServer, RedisServer], ids=["valkey", "redis"])
def durable(request: pytest.FixtureRequest) -> Iterator[ValkeyServer | RedisServer]:
    """A server with ``appendonly yes`` and ``appendfsync always``."""
    with server_or_outcome(request.param(durable=True)) as server:
        yield server


def test_nothing_acknowledged_is_lost_when_the_server_crashes(durable: ValkeyServer) -> None:
    """Saves go on until it is gone; each that was answered is there when it is back, any other is whole or not."""
    place = Place((durable,), durable.url, "p")
    acknowledged: dict[str, int] = {}

    async def worker(backend: RedisBackend, number: int, stop: asyncio.Event) -> None:
        while not stop.is_set():
            thread_id = f"t{number}"
            try:
                (outcome,) = await backend.commit([save(thread_id, body=b"%d" % acknowledged.get(thread_id, 0))])
            except StoreUnavailableError:
                return
            assert isinstance(outcome, Committed)
            acknowledged[thread_id] = outcome.sequence + 1

    async def check() -> None:
        stop = asyncio.Event()
        async with opened(place) as backend:
            workers = [asyncio.ensure_future(worker(backend, number, stop)) for number in range(20)]
            while sum(acknowledged.values()) < 300:
                await asyncio.sleep(0.002)
            durable.kill()
            stop.set()
            await asyncio.gather(*workers)
        durable.start()
        async with opened(place) as backend:
            rows = {f"t{number}": await backend.read(f"t{number}", 0, None) for number in range(20)}
            heads = {head.thread_id: head.sequence for head in await backend.list_heads(HeadQuery(limit=100))}

        assert 300 <= sum(acknowledged.values())
        for thread_id, count in acknowledged.items():
            assert count <= len(rows[thread_id]) <= count + 1
            assert heads[thread_id] == len(rows[thread_id]) - 1
            assert [b"%d" % n for n in range(len(rows[thread_id]))] == [row.body for row in rows[thread_id]]

    asyncio.run(check())


def test_expiry_and_tokens_survive_a_crash(durable: ValkeyServer) -> None:
    from datetime import timedelta

    from strata_core.rows import Take

    place = Place((durable,), durable.url, "p")
    hour = timedelta(hours=1)

    async def before(backend: RedisBackend) -> None:
        await backend.commit([save("t", "completed", lease=Take("me", 1))])

    with_backend(place, before, finished_thread_ttl=hour)
    durable.kill()
    durable.start()

    async def after(backend: RedisBackend) -> None:
        head = await backend.read_head("t")
        (done,) = await backend.commit([save("t", "completed", lease=Take("me", 1))])

        assert head is not None
        assert isinstance(done, Committed)
        assert done.token > head.token
        assert 0 < durable.command("PTTL", place.thread_key("t")) <= 3_600_000

    with_backend(place, after, finished_thread_ttl=hour)


def test_flushed_scripts_are_sent_again(place: Place) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        for flush in (True, False, True):
            if flush:
                server.command("SCRIPT", "FLUSH")
            await asyncio.gather(*(backend.commit([save(f"t{number}")]) for number in range(20)))
            await backend.commit([save(f"u{number}") for number in range(20)])
            if flush:
                server.command("SCRIPT", "FLUSH")
            assert await backend.read_head("t1") is not None
            assert await backend.read("t1", None, None)
            assert 40 == len(await backend.list_heads(HeadQuery()))
            await backend.setup()

        assert 3 == len(await backend.read("t7", 0, None))

    with_backend(place, check)


def test_a_process_that_is_killed_in_the_middle_of_saves_loses_nothing_it_had_acknowledged(valkey: Place) -> None:
    process = start("save_until_killed.py", valkey.url)
    assert process.stdout is not None
    told = 0
    while told < 200:
        told = int(process.stdout.readline())
    process.kill()
    rest, _ = process.communicate()
    told = max([told, *(int(line) for line in rest.splitlines() if line.isdigit())])

    async def check(backend: RedisBackend) -> None:
        rows = await backend.read("t", 0, None)

        assert told <= len(rows) <= told + 1
        assert list(range(len(rows))) == [row.sequence for row in rows]
        (done,) = await backend.commit([save("t", write_id=os.urandom(8))])
        assert isinstance(done, Committed)

    with_backend(valkey, check)
