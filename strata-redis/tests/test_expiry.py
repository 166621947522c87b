"""Finished threads expire when they were asked to: whole, in the same step as the save, and without a trace."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from redis_support import DIGEST, HOUR, Place, erase, opened, save, with_backend

from strata_core import InMemoryBlobStore, Offload
from strata_core.capabilities import Capability
from strata_core.errors import UnsupportedError
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.rows import Commit, Committed, Drop, HeadQuery, Take
from strata_core.store import RowStore
from strata_redis import RedisBackend, _backend

SOON = timedelta(milliseconds=40)
LATE = timedelta(hours=1)


def expires_in(place: Place, thread_id: str) -> int:
    """Return how many milliseconds a thread still has; -1 for ever, -2 when it is gone."""
    (server,) = place.servers
    found: int = server.command("PTTL", place.thread_key(thread_id))
    return found


async def until_gone(backend: RedisBackend, thread_id: str) -> None:
    deadline = time.monotonic() + 20
    while await backend.read_head(thread_id) is not None:
        assert time.monotonic() < deadline, f"{thread_id} did not expire"
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("state", ["completed", "ended"])
def test_a_save_that_finishes_a_thread_lets_all_of_it_expire(place: Place, state: str) -> None:
    """Rows, values and head are one key, so they go together."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", blobs=[(DIGEST, b"x")])])
        assert -1 == expires_in(place, "t")
        await backend.commit([save("t", state)])

        assert 0 < expires_in(place, "t") <= 3_600_000
        assert [place.thread_key("t").decode()] == [name for name in place.names() if "t:t" in name]

    with_backend(place, check, finished_thread_ttl=LATE)


@pytest.mark.parametrize("state", ["running", "interrupted", "failed", "cancelled", "resumed"])
def test_any_other_save_clears_it(place: Place, state: str) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", "completed")])
        await backend.commit([save("t", state)])

        assert -1 == expires_in(place, "t")
        assert [] == [member for member in place.index() if member.startswith(b"x")]
        assert [] == [name for name in place.names() if name.endswith("}expiring")]

    with_backend(place, check, finished_thread_ttl=LATE)


@pytest.mark.parametrize("state", ["running", "completed"])
def test_a_save_of_a_store_without_the_option_clears_it_too(place: Place, state: str) -> None:
    with_backend(place, lambda backend: backend.commit([save("t", "completed")]), finished_thread_ttl=LATE)
    with_backend(place, lambda backend: backend.commit([save("t", state)]))

    assert -1 == expires_in(place, "t")
    assert [] == [member for member in place.index() if member.startswith(b"x")]


def test_without_the_option_nothing_expires(place: Place) -> None:
    with_backend(place, lambda backend: backend.commit([save("t", "completed"), save("u", "ended")]))

    assert [-1, -1] == [expires_in(place, "t"), expires_in(place, "u")]


async def by_a_purge(backend: RedisBackend) -> None:
    async with RowStore(backend) as store:
        assert 0 == await store.purge(datetime.now(UTC))


async def by_another_save(backend: RedisBackend) -> None:
    await backend.commit([save("another")])
    await backend.commit([erase("another")])


@pytest.mark.parametrize("clear_up", [by_a_purge, by_another_save])
def test_an_expired_thread_is_nowhere_and_leaves_nothing_behind(
    place: Place, clear_up: Callable[[RedisBackend], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never listed nor due; the next purge, or in time any save, takes what the index held for it."""

    async def check() -> None:
        async with opened(place, finished_thread_ttl=SOON) as backend:
            await backend.commit(
                [
                    save(
                        f"t{number}",
                        "completed",
                        due=5,
                        graph_id="g",
                        graph_version="1",
                        metadata={"a": "b"},
                        blobs=[(DIGEST, b"x")],
                        lease=Take("me", HOUR),
                    )
                    for number in range(300)
                ]
            )
            for number in range(300):
                await until_gone(backend, f"t{number}")
            for query in (
                HeadQuery(),
                HeadQuery(due_until=2**60),
                HeadQuery(states=frozenset({"completed"})),
                HeadQuery(metadata={"a": "b"}),
                HeadQuery(graph_id="g"),
                HeadQuery(leased=True),
            ):
                assert [] == await backend.list_heads(query)
            assert [] == await backend.read("t1", None, None)
            assert {} == await backend.read_blobs("t1", [DIGEST])
            assert 300 <= len(place.index())
            monkeypatch.setattr(_backend, "SWEEP_EVERY", 0.0)
            if clear_up is by_another_save:
                await clear_up(backend)
        if clear_up is by_a_purge:
            await clear_up(place.backend(finished_thread_ttl=SOON))

    asyncio.run(check())

    assert [] == place.index()
    assert {"meta"} == {name.rpartition(":")[2].rstrip("}") for name in place.names() if not name.endswith("}tokens")}


def test_a_reader_sweeps_nothing(place: Place) -> None:
    async def check() -> None:
        async with opened(place, finished_thread_ttl=SOON) as backend:
            await backend.commit([save("t", "completed")])
            await until_gone(backend, "t")
        async with opened(place, read_only=True) as reader:
            assert [] == await reader.list_heads(HeadQuery(rowless=True))
            assert [] == await reader.list_heads(HeadQuery())

    asyncio.run(check())

    assert 3 == len(place.index())


def test_the_id_of_an_expired_thread_starts_over_at_0_with_a_newer_token(place: Place) -> None:
    """What its first life left in the index does not list the second one twice."""

    async def check(backend: RedisBackend) -> None:
        (first,) = await backend.commit([save("t", "completed", updated=1, metadata={"life": "1"}, lease=Take("a", 1))])
        await until_gone(backend, "t")
        (second,) = await backend.commit([save("t", updated=2, metadata={"life": "2"}, lease=Take("b", HOUR))])
        assert isinstance(first, Committed)
        assert isinstance(second, Committed)
        heads = await backend.list_heads(HeadQuery())

        assert (0, 0) == (first.sequence, second.sequence)
        assert second.token > first.token
        assert [("t", 2)] == [(head.thread_id, head.updated) for head in heads]
        assert [] == await backend.list_heads(HeadQuery(metadata={"life": "1"}))
        assert 4 == len(place.index())
        assert -1 == expires_in(place, "t")

    with_backend(place, check, finished_thread_ttl=SOON)


def test_a_lease_on_a_thread_that_will_expire_neither_keeps_it_nor_outlives_it(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", "completed")])
        before = expires_in(place, "t")
        (taken,) = await backend.commit([Commit("t", os.urandom(8), lease=Take("me", HOUR))])
        assert isinstance(taken, Committed)
        assert 0 < expires_in(place, "t") <= before
        assert ["t"] == [head.thread_id for head in await backend.list_heads(HeadQuery(leased=True))]
        await backend.commit([Commit("t", os.urandom(8), token=taken.token, lease=Drop())])
        assert 0 < expires_in(place, "t") <= before
        await backend.commit([Commit("t", os.urandom(8), lease=Take("me", HOUR))])

    with_backend(place, check, finished_thread_ttl=LATE)
    (server,) = place.servers
    server.command("PEXPIRE", place.thread_key("t"), "1")

    async def swept(backend: RedisBackend) -> None:
        await until_gone(backend, "t")
        assert [] == await backend.list_heads(HeadQuery(leased=True))
        await backend.commit([save("t", "running")])
        assert 2 == len(place.index())

    with_backend(place, swept)


def test_an_erased_thread_that_would_have_expired_leaves_nothing(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", "completed")])
        await backend.commit([erase("t")])

        assert [f"{{{place.prefix}:meta}}"] == place.names()

    with_backend(place, check, finished_thread_ttl=LATE)


@pytest.mark.parametrize("forbidden", ["pexpireat", "hdel"])
def test_a_failing_expiry_never_loses_the_save(place: Place, forbidden: str, caplog: pytest.LogCaptureFixture) -> None:
    """Here the user may not let keys expire; the save is done, and the log says what it did not come to."""
    (server,) = place.servers
    with_backend(place, lambda backend: backend.commit([save("u")]))
    server.command("ACL", "SETUSER", "weak", "on", ">pw", "~*", "+@all", "-pexpireat")
    url = place.url.replace("redis://", "redis://weak:pw@")

    async def check(backend: RedisBackend) -> None:
        if forbidden == "hdel":
            server.command("ACL", "SETUSER", "weak", "-hdel")
        (done,) = await backend.commit([save("t", "completed")])

        assert isinstance(done, Committed)
        assert 0 == done.sequence
        assert [b'{"step":1}'] == [row.body for row in await backend.read("t", None, None)]
        assert ["t"] == [
            head.thread_id for head in await backend.list_heads(HeadQuery(states=frozenset({"completed"})))
        ]

    with caplog.at_level(logging.WARNING, logger="strata_redis"):
        with_backend(url, check, finished_thread_ttl=LATE)

    server.command("ACL", "DELUSER", "weak")
    assert -1 == expires_in(place, "t")
    assert ["thread 't' will not expire"] == [
        record.getMessage().partition(":")[0] for record in caplog.records if "expire" in record.getMessage()
    ]


def test_it_is_declared_and_external_blobs_are_refused(valkey: Place) -> None:
    """A store that lets keys expire cannot take along what another store holds for them."""
    plain, expiring = valkey.backend(), valkey.backend(finished_thread_ttl=LATE)

    assert {Capability.EXTERNAL_BLOBS} == plain.capabilities ^ expiring.capabilities
    assert Capability.EXPIRY in plain.capabilities
    with pytest.raises(UnsupportedError) as caught:
        RowStore(expiring, offload=Offload(blobs=InMemoryBlobStore()))
    assert Capability.EXTERNAL_BLOBS is caught.value.capability
    assert "finished_thread_ttl" in str(caught.value)
    assert "offload.blobs" in str(caught.value)

    async def check(backend: RedisBackend) -> None:
        with pytest.raises(UnsupportedError, match="finished_thread_ttl"):
            await backend.commit([save("t", external=True)])
        assert await backend.read_head("t") is None

    with_backend(valkey, check, finished_thread_ttl=LATE)


def test_a_thread_with_external_blobs_of_another_store_does_not_expire(place: Place) -> None:
    with_backend(place, lambda backend: backend.commit([save("t", external=True)]))
    with_backend(place, lambda backend: backend.commit([save("t", "completed")]), finished_thread_ttl=LATE)

    assert -1 == expires_in(place, "t")


def test_a_store_forgets_what_it_remembered_of_an_expired_thread(place: Place) -> None:
    """Deltas and offloaded values of the first life are never taken for there."""
    from strata_core import Deltas

    def checkpoint(status: CheckpointStatus, n: int) -> Checkpoint:
        return Checkpoint(
            thread_id="t", status=status, frozen_state={"big": "x" * 1000, "n": n}, created_at=datetime.now(UTC)
        )

    async def check() -> None:
        backend = place.backend(finished_thread_ttl=SOON)
        async with RowStore(backend, deltas=Deltas(), offload=Offload(threshold=100)) as store:
            await store.save(checkpoint(CheckpointStatus.RUNNING, 0))
            async with opened(place, finished_thread_ttl=SOON) as other:
                await other.commit([save("t", "completed")])
            await until_gone(backend, "t")
            got = [await store.save(checkpoint(CheckpointStatus.RUNNING, n)) for n in (1, 2)]
            entry = await store.load("t")

        assert [0, 1] == got
        assert entry is not None
        assert {"big": "x" * 1000, "n": 2} == entry.checkpoint.frozen_state

    asyncio.run(check())
