"""In a cluster a master that is killed is replaced by its replica, and clients go on there."""

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import TypeVar

import attrs
import pytest
from redis_support import Place, opened, save

from strata_conformance.servers import RedisCluster, RedisServer, ValkeyServer
from strata_conformance.servers._redis import KeyValueServer
from strata_conformance.servers.fixtures import server_or_outcome
from strata_conformance.servers.lives import LONG, checkpoint
from strata_core.errors import ConflictError, LeaseHeldError, LeaseLostError, StoreUnavailableError
from strata_core.options import Setup
from strata_core.records import Lease
from strata_core.rows import Committed
from strata_core.store import RowStore
from strata_redis import RedisBackend, RedisOptions

T = TypeVar("T")
Kind = type[KeyValueServer]


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something has come about."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


async def at_last(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call again until the store is there."""
    for _ in range(3000):
        try:
            return await call()
        except StoreUnavailableError:
            await asyncio.sleep(0.01)
    raise AssertionError("it did not come back")


def facts(server: KeyValueServer, section: str) -> dict[str, str]:
    lines = server.command("INFO", section).decode().splitlines()
    return {name: value for name, colon, value in (line.partition(":") for line in lines) if colon}


@pytest.fixture(params=[ValkeyServer, RedisServer], ids=["valkey", "redis"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@attrs.define
class Writer:
    """Saves one thread again and again, in one of three ways, and repeats what was not acknowledged."""

    store: RowStore
    thread_id: str
    lease: Lease | None = None
    acknowledged: int = 0

    async def begin(self, way: int) -> None:
        if way == 0:
            self.lease = await self.store.acquire_lease(self.thread_id, owner="writer", ttl=LONG)
        self._is_conditional = way == 1

    _is_conditional: bool = False

    async def step(self) -> None:
        number, write_id = self.acknowledged, os.urandom(8)
        row = checkpoint(self.thread_id, number)

        async def attempt() -> int:
            if self.lease is not None:
                return await self.store.save_under_lease(row, self.lease, write_id=write_id)
            if self._is_conditional:
                return await self.store.save_if_latest(row, number - 1 if number else None, write_id=write_id)
            return await self.store.save(row, write_id=write_id)

        assert number == await at_last(attempt)
        self.acknowledged += 1

    async def go_on(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.step()


def test_a_master_that_is_killed_while_saves_go_on_loses_none_that_its_replica_was_asked_for(kind: Kind) -> None:
    """Each is there once; leases hold on the new master, which knew no script; the old one comes back as a replica."""

    async def check(cluster: RedisCluster) -> None:
        options = RedisOptions(replicas=1, timeout=timedelta(seconds=1))
        url = f"redis://127.0.0.1:{cluster.nodes[0].port}?cluster=true"
        old, new = cluster.nodes[1], cluster.replicas[1]
        async with RowStore(RedisBackend(url, options=options)) as store:
            writers = [Writer(store, f"t{number}") for number in range(24)]
            await asyncio.gather(*(writer.begin(number % 3) for number, writer in enumerate(writers)))
            stop = asyncio.Event()
            going = [asyncio.ensure_future(writer.go_on(stop)) for writer in writers]
            await until(lambda: all(writer.acknowledged >= 5 for writer in writers))
            owned = set(old.command("KEYS", "*"))
            old.kill()
            await until(lambda: facts(new, "replication")["role"] == "master")
            old.start()
            await until(lambda: facts(old, "replication").get("master_link_status") == "up")
            before = [writer.acknowledged for writer in writers]
            await until(lambda: all(w.acknowledged > n + 2 for w, n in zip(writers, before, strict=True)))
            stop.set()
            await asyncio.gather(*going)

            place = Place((), url, "strata")
            moved = [writer for writer in writers if place.thread_key(writer.thread_id) in owned]
            assert {True, False} == {writer.lease is None for writer in moved}
            for writer in writers:
                log = (await store.get_log(writer.thread_id, limit=1000)).entries
                steps = [entry.checkpoint.frozen_state["step"] for entry in log]
                assert list(range(writer.acknowledged)) == steps
            await check_conditions(store, moved)
            assert int(facts(new, "commandstats")["cmdstat_eval"].partition("calls=")[2].partition(",")[0]) >= 1
            assert "slave" == facts(old, "replication")["role"]

    with server_or_outcome(RedisCluster(3, replicas=1, node_timeout=500, kind=kind)) as cluster:
        asyncio.run(check(cluster))


async def check_conditions(store: RowStore, writers: list[Writer]) -> None:
    """What guards a thread on the old master guards it on the new one."""
    for writer in writers:
        row = checkpoint(writer.thread_id, writer.acknowledged)
        with pytest.raises(ConflictError):
            await store.save_if_latest(row, writer.acknowledged - 2)
        if writer.lease is None:
            continue
        assert await store.acquire_lease(writer.thread_id, owner="another", ttl=LONG) is None
        with pytest.raises(LeaseHeldError):
            await store.save_if_latest(row, writer.acknowledged - 1, unleased=True)
        await store.release_lease(writer.lease)
        with pytest.raises(LeaseLostError):
            await store.save_under_lease(row, writer.lease)
        taken = await store.acquire_lease(writer.thread_id, owner="another", ttl=LONG)
        assert taken is not None
        assert taken.token > writer.lease.token


@pytest.fixture
def pair(kind: Kind) -> Iterator[tuple[KeyValueServer, KeyValueServer]]:
    """A master and its replica."""
    with ExitStack() as stack:
        master, replica = (
            stack.enter_context(server_or_outcome(kind(own=True, settings={"repl-diskless-sync-delay": 0})))
            for _ in range(2)
        )
        replica.command("REPLICAOF", master.host, master.port)
        yield master, replica


def test_a_save_that_no_replica_received_may_be_there_and_is_done_once_when_one_has(
    pair: tuple[KeyValueServer, KeyValueServer],
) -> None:
    """Repeated, it is answered only when a replica has it, on whatever connection: it waits for what it found, too."""
    master, replica = pair
    place = Place((master,), master.url, "p")

    async def check() -> None:
        await until(lambda: facts(replica, "replication").get("master_link_status") == "up")
        step = save("t", write_id=os.urandom(8))
        first, second = (place.backend(replicas=1, timeout=timedelta(seconds=2)) for _ in range(2))
        for backend in (first, second):
            await at_last(functools.partial(backend.open, read_only=False, setup=Setup.AUTO))
        replica.pause()
        for backend in (first, second):  # whose connection has written nothing since the replica had all
            with pytest.raises(StoreUnavailableError, match="0 of 1 replicas have the write") as caught:
                await backend.commit([step])
            assert caught.value.maybe_written
        head = await first.read_head("t")
        assert head is not None
        assert 0 == head.sequence
        replica.resume()
        done = await at_last(lambda: second.commit([step]))
        rows = await second.read("t", 0, None)
        await first.close()
        await second.close()

        assert [True] == [outcome.repeated for outcome in done if isinstance(outcome, Committed)]
        assert 1 == len(rows)

    asyncio.run(check())


def test_a_store_whose_master_has_too_few_replicas_is_not_opened(valkey: Place) -> None:
    async def check() -> None:
        async with opened(valkey, replicas=1, timeout=timedelta(seconds=2)):
            pass

    with pytest.raises(StoreUnavailableError, match="0 of 1 replicas have the write"):
        asyncio.run(check())
