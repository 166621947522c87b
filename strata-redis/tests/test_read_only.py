"""Reading without the right to write."""

import asyncio
import os
from datetime import timedelta
from typing import Any

import pytest
from redis_support import DIGEST, HOUR, Place, opened, save, with_backend

from strata_conformance.servers import FaultProxy, RedisServer, ValkeyServer
from strata_conformance.servers.fixtures import server_or_outcome
from strata_core.errors import ReadOnlyError, StoreUnavailableError
from strata_core.options import Setup
from strata_core.rows import Commit, HeadQuery, Take
from strata_redis import RedisBackend

WRITER = ("+@read", "+@write", "+@scripting", "+@connection", "+time")
READER = ("~*", "+@read", "+@connection", "+time", "+evalsha_ro", "+eval_ro")
"""What the README says a reader needs."""


async def read_everything(backend: RedisBackend) -> None:
    head = await backend.read_head("t")
    assert head is not None
    assert (1, "me") == (head.sequence, head.owner)
    assert 2 == len(await backend.read("t", 0, None))
    assert {DIGEST: b"x"} == await backend.read_blobs("t", [DIGEST])
    for query in (
        HeadQuery(),
        HeadQuery(leased=True),
        HeadQuery(due_until=9, metadata={"a": "b"}, states=frozenset({"running"})),
        HeadQuery(metadata={"a": "b"}, graph_id="g", oldest_first=True),
    ):
        assert ["t"] == [found.thread_id for found in await backend.list_heads(query)]
    assert [] == await backend.list_heads(HeadQuery(rowless=True))
    await backend.ping()


async def fill(backend: RedisBackend) -> None:
    more: dict[str, Any] = {"metadata": {"a": "b"}, "due": 5, "graph_id": "g"}
    await backend.commit([save("t", blobs=[(DIGEST, b"x")], **more)])
    await backend.commit([save("t", lease=Take("me", HOUR), **more)])


def test_writes_are_refused_and_nothing_changes(place: Place) -> None:
    with_backend(place, fill)
    before = place.footprint()

    async def check(backend: RedisBackend) -> None:
        await read_everything(backend)
        for write in (lambda: backend.commit([save("t")]), lambda: backend.commit([]), backend.setup):
            with pytest.raises(ReadOnlyError, match="was opened read-only"):
                await write()

    for setup in Setup:
        with_backend(place, check, read_only=True, setup=setup)

    assert before == place.footprint()


def test_a_user_who_may_only_read_is_enough(place: Place) -> None:
    (server,) = place.servers
    with_backend(place, fill)
    server.command("ACL", "SETUSER", "reader", "reset", "on", ">pw", *READER)
    try:
        with_backend(place.url.replace("redis://", "redis://reader:pw@"), read_everything, read_only=True)
    finally:
        server.command("ACL", "DELUSER", "reader")


def test_in_a_cluster_a_reader_must_ask_for_the_slots_too(small_cluster: Place) -> None:
    (server,) = small_cluster.servers
    with_backend(small_cluster, fill)
    url = small_cluster.url.replace("redis://", "redis://reader:pw@")
    server.command("ACL", "SETUSER", "reader", "reset", "on", ">pw", *READER)
    try:
        with pytest.raises(StoreUnavailableError, match="tells its slots"):
            with_backend(url, read_everything, read_only=True)
        server.command("ACL", "SETUSER", "reader", "+cluster|slots")
        with_backend(url, read_everything, read_only=True)
    finally:
        server.command("ACL", "DELUSER", "reader")


def test_what_the_readme_says_a_writer_needs_is_enough(place: Place) -> None:
    (server,) = place.servers
    server.command("ACL", "SETUSER", "writer", "reset", "on", ">pw", f"~{{{place.prefix}:*", *WRITER)

    async def check(backend: RedisBackend) -> None:
        await fill(backend)
        await read_everything(backend)
        await backend.commit([save("t", "completed")])
        await backend.list_heads(HeadQuery(rowless=True))
        await backend.commit([Commit("t", os.urandom(8), erase=True)])
        assert await backend.read_head("t") is None

    try:
        with_backend(place.url.replace("redis://", "redis://writer:pw@"), check, finished_thread_ttl=timedelta(hours=1))
    finally:
        server.command("ACL", "DELUSER", "writer")


def test_a_server_that_knows_no_read_only_scripts_is_read_all_the_same(place: Place) -> None:
    """Redis 6.2 has neither EVAL_RO nor EVALSHA_RO; here a user may not use them, which the server tells alike."""
    with_backend(place, fill)

    async def check(backend: RedisBackend) -> None:
        server = backend._server
        assert server is not None
        route = server._route
        ask, sent = route.ask, list[bytes]()

        async def like_6_2(commands: Any, *, writes: bool = False) -> Any:
            sent.extend(words[0] for _, words in commands)
            return await ask([(tag, (words[0].replace(b"_RO", b"_NO"), *words[1:])) for tag, words in commands])

        route.ask = like_6_2  # type: ignore[method-assign]  # an older server
        await read_everything(backend)

        assert b"EVALSHA_RO" == sent[0]
        assert 1 == sent.count(b"EVALSHA_RO")
        assert b"EVALSHA" in sent

    with_backend(place, check, read_only=True)


@pytest.mark.parametrize("kind", [ValkeyServer, RedisServer])
def test_a_replica_is_read_and_takes_no_writes(kind: type[ValkeyServer] | type[RedisServer]) -> None:
    with (
        server_or_outcome(kind(own=True, settings={"repl-diskless-sync-delay": 0})) as master,
        server_or_outcome(kind(own=True)) as replica,
    ):
        there = Place((replica,), replica.url, "r")
        with_backend(Place((master,), master.url, "r"), fill)
        replica.command("REPLICAOF", master.host, master.port)

        async def check() -> None:
            for _ in range(1000):
                if b"master_link_status:up" in replica.command("INFO", "replication"):
                    break
                await asyncio.sleep(0.01)
            async with opened(there, read_only=True) as reader:
                await read_everything(reader)
            with pytest.raises(StoreUnavailableError, match="it is a replica") as caught:
                async with opened(there):
                    pass
            assert not caught.value.maybe_written

        asyncio.run(check())


def test_a_writer_that_finds_itself_on_a_replica_has_written_nothing(place: Place) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        before = place.footprint()
        server.command("REPLICAOF", "127.0.0.1", "1")
        try:
            with pytest.raises(StoreUnavailableError, match="it is a replica") as caught:
                await backend.commit([save("t")])
        finally:
            server.command("REPLICAOF", "NO", "ONE")

        assert not caught.value.maybe_written
        assert before == place.footprint()

    with_backend(place, check)


def test_a_reader_sends_nothing_that_could_write(valkey: Place, valkey_proxy: FaultProxy) -> None:
    with_backend(valkey, fill)
    with valkey_proxy.recording() as recording:
        with_backend(valkey_proxy.url(valkey.url), read_everything, read_only=True)

    assert {"EVALSHA_RO", "EVAL_RO", "HMGET", "ZLEXCOUNT", "TIME"} >= set(recording.messages)
