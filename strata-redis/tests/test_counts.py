"""Messages and commands do not vary from machine to machine, so they are pinned."""

import asyncio
import os
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from redis_support import DIGEST, EXAMPLE_TIME, HOUR, Place, erase, opened, save, with_backend

from strata_conformance.servers import FaultProxy
from strata_core.rows import Commit, Committed, Drop, Extend, HeadQuery, Take
from strata_redis import RedisBackend
from strata_redis._heads import RECORD

# Everything that a script does to the data; TIME and reads of what is judged aside.
WRITES = {"hset", "hdel", "zadd", "zrem", "incr", "unlink", "persist", "pexpireat", "del", "set"}


def commands_of(place: Place, use: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Counter[str]]]:
    """Return what counts the commands that the server did meanwhile, those of scripts too."""
    (server,) = place.servers

    async def count() -> Counter[str]:
        server.command("CONFIG", "RESETSTAT")
        await use()
        found: Counter[str] = Counter()
        for line in server.command("INFO", "commandstats").decode().splitlines():
            if line.startswith("cmdstat_"):
                name, _, values = line.removeprefix("cmdstat_").partition(":calls=")
                found[name] = int(values.partition(",")[0])
        for name in ("config|resetstat", "config", "select"):  # those of this very look
            found.pop(name, None)
        return found

    return count


def saves(threads: list[str], updated: int, state: str = "running") -> list[Commit]:
    """Saves as the engine makes them, each of which has other marks."""
    metadata = {"tenant": "acme", "strata.visit": os.urandom(4).hex()}
    return [save(each, state, updated=updated, metadata=metadata) for each in threads]


def test_a_save_is_one_script_of_three_commands(place: Place) -> None:
    """A batch is one script, which asks for the time once."""
    threads = [f"t{number}" for number in range(50)]

    async def check(backend: RedisBackend) -> None:
        await backend.commit(saves(threads, EXAMPLE_TIME))
        one = commands_of(place, lambda: backend.commit(saves(["t1"], EXAMPLE_TIME + 1)))
        many = commands_of(place, lambda: backend.commit(saves(threads, EXAMPLE_TIME + 2)))

        assert {"evalsha": 1, "time": 1, "hmget": 1, "hset": 1} == await one()
        assert {"evalsha": 1, "time": 1, "hmget": 50, "hset": 50} == await many()

    with_backend(place, check)


@pytest.mark.parametrize(
    ("state", "later", "moves"),
    [
        ("running", 900_000, 0),
        ("running", 1_100_000, 1),
        ("running", -200_000, 1),
        ("resumed", 1, 1),
        ("resumed", 0, 0),
    ],
)
def test_a_running_thread_moves_in_the_index_once_in_a_second(place: Place, state: str, later: int, moves: int) -> None:
    start = EXAMPLE_TIME - EXAMPLE_TIME % (1 << 20) + 100_000

    async def check(backend: RedisBackend) -> None:
        await backend.commit(saves(["t"], start, state))
        counts = await commands_of(place, lambda: backend.commit(saves(["t"], start + later, state)))()

        assert {"hset": 1, "zrem": moves, "zadd": moves} == {name: counts[name] for name in ("hset", "zrem", "zadd")}

    with_backend(place, check)


@pytest.mark.parametrize(
    ("step", "writes"),
    [
        (lambda token: save("t", token=token), {"hset": 1, "zadd": 1, "zrem": 1}),
        (lambda token: Commit("t", os.urandom(8), token=token, lease=Extend(HOUR)), {"hset": 1, "zadd": 1, "zrem": 1}),
        (lambda token: Commit("t", os.urandom(8), token=token, lease=Drop()), {"hset": 1, "zrem": 1}),
        (lambda token: save("t", "completed", token=token, lease=Drop()), {"hset": 1, "zadd": 1, "zrem": 1}),
        (lambda token: save("t", token=token, blobs=[(DIGEST, b"x")]), {"hset": 2, "zadd": 1, "zrem": 1}),
        (lambda token: erase("t", token=token), {"unlink": 1, "zrem": 1}),
        (lambda _: save("u", lease=Take("me", HOUR)), {"incr": 1, "hset": 1, "zadd": 1}),
        (lambda _: Commit("u", os.urandom(8), lease=Take("me", HOUR)), {"incr": 1, "hset": 1, "zadd": 1}),
        (lambda token: save("t", token=token + 1), {}),
        (lambda _: save("t", after=7), {}),
        (lambda _: Commit("t", os.urandom(8), lease=Take("me", HOUR)), {}),
    ],
    ids=["save", "renew", "release", "last row", "blob", "erase", "first row", "acquire", "lost", "changed", "held"],
)
def test_each_step_writes_what_it_changes_and_no_more(
    place: Place, step: Callable[[int], Commit], writes: dict[str, int]
) -> None:
    async def check(backend: RedisBackend) -> None:
        (taken,) = await backend.commit([save("t", updated=1, lease=Take("me", HOUR))])
        assert isinstance(taken, Committed)
        count = commands_of(place, lambda: backend.commit([step(taken.token)]))
        counts = await count()

        assert 1 == counts["evalsha"]
        assert writes == {name: calls for name, calls in counts.items() if name in WRITES}

    with_backend(place, check)


def test_a_finished_thread_that_expires_costs_two_commands_more(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", updated=1)])
        count = commands_of(place, lambda: backend.commit([save("t", "completed")]))
        first = await count()
        again = await commands_of(place, lambda: backend.commit([save("t", updated=2)]))()

        assert {"hset": 2, "pexpireat": 1, "zadd": 1, "zrem": 1} == {n: c for n, c in first.items() if n in WRITES}
        assert {"hset": 1, "hdel": 1, "persist": 1, "zadd": 1, "zrem": 1} == {
            n: c for n, c in again.items() if n in WRITES
        }

    with_backend(place, check, finished_thread_ttl=timedelta(hours=1))


def test_a_thread_of_ten_thousand_rows_costs_what_a_thread_of_ten_costs(place: Place) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("long"), save("short")])
        key = place.thread_key("long")
        record, body = server.command("HMGET", key, "r0", "s0")
        for first in range(0, 10_000, 1000):
            rows = range(first, first + 1000)
            fields = [
                part for n in rows for part in (f"r{n}", RECORD.pack(n, record[8:16]) + record[16:], f"s{n}", body)
            ]
            server.command("HSET", key, *fields)
        head = server.command("HGET", key, "head")
        server.command("HSET", key, "head", struct.pack(">qq", 9999, 9999) + head[16:])
        await backend.read("long", None, None)  # the server knows the script from now on

        async def cost(thread_id: str) -> tuple[Counter[str], Counter[str]]:
            saved = await commands_of(place, lambda: backend.commit([save(thread_id, updated=1)]))()
            return saved, await commands_of(place, lambda: backend.read(thread_id, None, None))()

        costs = [await cost("long"), await cost("short")]
        (done,) = await backend.commit([save("long", updated=2)])

        assert isinstance(done, Committed)
        assert 10_001 == done.sequence
        assert costs[0] == costs[1]

    with_backend(place, check)


def test_messages_of_each_operation(valkey: Place, valkey_proxy: FaultProxy) -> None:
    """Sixty-four saves wait for the server once, and send one script; every read is one script."""
    url = valkey_proxy.url(valkey.url)

    async def check() -> None:
        async with opened(url) as backend:
            threads = [f"t{number}" for number in range(64)]
            await backend.commit([save(each) for each in threads])
            await backend.list_heads(HeadQuery(limit=1))
            await backend.read("t1", None, None)
            for use, trips, messages in (
                (backend.commit([save("t1")]), 1, {"EVALSHA": 1}),
                (backend.commit([save(each) for each in threads]), 1, {"EVALSHA": 1}),
                (backend.read_head("t1"), 1, {"EVALSHA": 1}),
                (backend.read("t1", None, None), 1, {"EVALSHA": 1}),
                (backend.read_blobs("t1", [DIGEST]), 1, {"HMGET": 1}),
                (backend.list_heads(HeadQuery(limit=1000)), 2, {"EVALSHA": 32}),
                (backend.ping(), 1, {"HMGET": 1}),
            ):
                with valkey_proxy.recording() as recording:
                    await use

                assert (trips, messages) == (recording.round_trips, dict(recording.messages))

    asyncio.run(check())


def test_opening_waits_once_and_closing_not_at_all(valkey: Place, valkey_proxy: FaultProxy) -> None:
    url = valkey_proxy.url(valkey.url)

    async def check() -> None:
        async with opened(url):
            pass
        with valkey_proxy.recording() as recording:
            async with opened(url):
                pass

        assert {"EVALSHA": 1, "INFO": 2} == dict(recording.messages)
        assert 1 == recording.connections

    asyncio.run(check())


def test_fifty_stores_share_no_more_connections_than_they_may(valkey: Place, valkey_proxy: FaultProxy) -> None:
    url = valkey_proxy.url(valkey.url)

    async def check() -> None:
        async with opened(url, pool_size=3) as backend:
            await asyncio.gather(*(backend.commit([save(f"t{number}")]) for number in range(50)))
            heads = await asyncio.gather(*(backend.read_head(f"t{number}") for number in range(50)))

        assert [0] * 50 == [head.sequence for head in heads if head is not None]

    asyncio.run(check())

    assert 3 == valkey_proxy.connections
