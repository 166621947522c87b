"""Setting a store up, once, by however many processes; and opening what nobody has set up, or somebody newer has."""

import asyncio
import logging

import pytest
from redis_support import Place, finish, opened, save, start, with_backend

from strata_core.errors import InvalidInputError, SchemaVersionError, StoreUnavailableError, UsageError
from strata_core.options import Setup
from strata_core.rows import HeadQuery
from strata_redis import RedisBackend, _setup


def meta(place: Place) -> bytes:
    return f"{{{place.prefix}:meta}}".encode()


async def nothing(backend: RedisBackend) -> None:
    pass


def test_a_store_keeps_its_format_and_how_many_buckets_it_has(place: Place) -> None:
    with_backend(place, nothing)

    assert {meta(place).decode(): ({b"format": b"1", b"buckets": b"16"}, False)} == place.footprint()


def test_a_store_is_opened_with_the_buckets_it_has(place: Place) -> None:
    with_backend(place, lambda backend: backend.commit([save("t")]), buckets=3)

    async def check(backend: RedisBackend) -> None:
        assert await backend.read_head("t") is not None
        assert backend._keys is not None
        assert 3 == len(backend._keys.tags)

    with_backend(place, check)
    with_backend(place, check, buckets=3)
    with pytest.raises(InvalidInputError, match=r"buckets: is 4, and the store with the prefix .* has 3"):
        with_backend(place, nothing, buckets=4)


def test_a_store_of_one_bucket_works(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save(f"t{number}", updated=number) for number in range(40)])

        heads = await backend.list_heads(HeadQuery(limit=30))
        assert [f"t{number}" for number in range(39, 9, -1)] == [head.thread_id for head in heads]

    with_backend(place, check, buckets=1)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("setup", list(Setup))
def test_a_store_of_a_newer_format_is_refused_by_name_and_left_alone(
    place: Place, read_only: bool, setup: Setup
) -> None:
    (server,) = place.servers
    server.command("HSET", meta(place), "format", "2", "buckets", "16")
    before = place.footprint()
    with pytest.raises(SchemaVersionError, match="has format '2', and this release reads 1") as caught:
        with_backend(place, nothing, read_only=read_only, setup=setup)

    assert ("2", "1") == (caught.value.found, caught.value.supported)
    assert before == place.footprint()


@pytest.mark.parametrize("buckets", ["0", "many", "-1"])
def test_a_store_that_does_not_know_its_buckets_is_refused(place: Place, buckets: str) -> None:
    (server,) = place.servers
    server.command("HSET", meta(place), "format", "1", "buckets", buckets)
    with pytest.raises(StoreUnavailableError, match="does not say its buckets"):
        with_backend(place, nothing)


def test_twenty_processes_at_once_set_one_store_up(valkey: Place) -> None:
    told = finish(start("set_up.py", valkey.url, 20))

    async def check(backend: RedisBackend) -> None:
        heads = await backend.list_heads(HeadQuery())
        assert {f"t{number}" for number in range(20)} == {head.thread_id for head in heads}

    assert "20\n" == told
    with_backend(valkey, check)


def test_without_setup_nothing_is_created_until_somebody_sets_it_up(place: Place) -> None:
    async def check() -> None:
        async with opened(place, setup=Setup.NEVER) as one, opened(place, setup=Setup.NEVER) as other:
            for call in (
                lambda: one.commit([save("t")]),
                lambda: one.read_head("t"),
                lambda: one.read("t", None, None),
                lambda: one.read_blobs("t", ["sha256:0"]),
                lambda: one.list_heads(HeadQuery()),
                lambda: one.list_heads(HeadQuery(rowless=True)),
                one.ping,
            ):
                with pytest.raises(SchemaVersionError, match=r"call store\.setup\(\)") as caught:
                    await call()
                assert "none" == caught.value.found
            assert [] == place.names()
            await other.setup()
            await one.commit([save("t")])
            assert await other.read_head("t") is not None

    asyncio.run(check())


def test_a_reader_of_a_store_that_nobody_set_up_says_so(place: Place) -> None:
    with pytest.raises(SchemaVersionError, match=r"was never set up; call store\.setup\(\)") as caught:
        with_backend(place, nothing, read_only=True)

    assert "none" == caught.value.found
    assert [] == place.names()


def test_a_user_who_may_not_do_everything_is_told_when_the_store_is_opened(place: Place) -> None:
    """Not in the middle of a save: rows without their place in the index would be half a save."""
    (server,) = place.servers
    with_backend(place, nothing)
    for command in ("zadd", "hset", "incr", "zrem", "unlink", "hdel", "persist"):
        server.command("ACL", "SETUSER", "weak", "reset", "on", ">pw", "~*", "+@all", f"-{command}")
        for setup in Setup:
            with pytest.raises(StoreUnavailableError) as caught:
                with_backend(place.url.replace("redis://", "redis://weak:pw@"), nothing, setup=setup)
            assert "pw" not in str(caught.value)
    server.command("ACL", "DELUSER", "weak")

    assert [meta(place).decode()] == place.names()


def test_a_store_is_opened_once_at_a_time(valkey: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        with pytest.raises(UsageError, match="open already"):
            await backend.open(read_only=False, setup=Setup.AUTO)

    with_backend(valkey, check)


def test_a_health_check_tells_that_a_store_is_gone(place: Place) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        await backend.ping()
        server.command("DEL", meta(place))
        with pytest.raises(SchemaVersionError):
            await backend.ping()

    with_backend(place, check)


def test_a_server_that_drops_keys_or_keeps_no_log_is_warned_of(
    place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a process and store; one set as the README says is not."""
    (server,) = place.servers
    monkeypatch.setattr(_setup, "_said", set())
    before = server.command("CONFIG", "GET", "appendonly")[1]
    said = []
    for settings in (
        {"maxmemory-policy": "allkeys-lru", "maxmemory": "1gb", "appendonly": "no"},
        {"maxmemory-policy": "noeviction", "maxmemory": "0", "appendonly": "yes"},
    ):
        for name, value in settings.items():
            server.command("CONFIG", "SET", name, value)
        with caplog.at_level(logging.WARNING, logger="strata_redis"):
            with_backend(place, nothing)
            with_backend(place, nothing)
        said.append([record.getMessage() for record in caplog.records])
        caplog.clear()
        monkeypatch.setattr(_setup, "_said", set())
    server.command("CONFIG", "SET", "appendonly", before)

    (dropping, losing), none = said
    assert "maxmemory-policy allkeys-lru" in dropping
    assert "appendonly no" in losing
    assert [] == none
