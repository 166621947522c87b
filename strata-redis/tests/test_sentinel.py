"""With Sentinels the master is found by its name, and found again after a failover."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack

import attrs
import pytest
from redis_support import opened, save

from strata_conformance.servers import RedisServer, ValkeyServer
from strata_conformance.servers._redis import KeyValueServer
from strata_conformance.servers.fixtures import server_or_outcome
from strata_core.errors import StoreUnavailableError
from strata_redis import RedisBackend

WHO = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "orders")


@attrs.frozen
class Watched:
    """A master, its replica, and a Sentinel that watches them."""

    master: KeyValueServer
    replica: KeyValueServer
    sentinel: KeyValueServer

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:1,127.0.0.1:{self.sentinel.port}/0?sentinel=orders"


class Sentinel(KeyValueServer):
    """A server that watches others."""

    def _command(self):  # type: ignore[no-untyped-def]  # as its base
        program, *_ = super()._command()
        config = self.folder / "sentinel.conf"
        if not config.exists():
            config.write_text(f"dir {self.folder}\n")
        return [program, str(config), "--sentinel", "--port", str(self.port), "--bind", self.host]


class ValkeySentinel(Sentinel, ValkeyServer):
    pass


class RedisSentinel(Sentinel, RedisServer):
    pass


@pytest.fixture(params=[(ValkeyServer, ValkeySentinel), (RedisServer, RedisSentinel)], ids=["valkey", "redis"])
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    kind, kind_of_sentinel = request.param
    with ExitStack() as stack:
        master, replica = (
            stack.enter_context(server_or_outcome(kind(own=True, settings={"repl-diskless-sync-delay": 0})))
            for _ in range(2)
        )
        sentinel = stack.enter_context(server_or_outcome(kind_of_sentinel(own=True)))
        replica.command("REPLICAOF", master.host, master.port)
        sentinel.command("SENTINEL", "MONITOR", "orders", master.host, master.port, 1)
        sentinel.command("SENTINEL", "SET", "orders", "down-after-milliseconds", 300)
        yield Watched(master, replica, sentinel)


async def until(condition) -> None:  # type: ignore[no-untyped-def]  # any condition
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


def test_a_master_that_is_killed_is_replaced_by_its_replica(watched: Watched) -> None:
    """The Sentinel promotes it; scripts are not known there, and what had reached the replica is there."""

    async def check() -> None:
        await until(lambda: b"slave0:" in watched.master.command("INFO", "replication"))
        async with opened(watched.url) as backend:
            await backend.commit([save("t")])
            await until(lambda: b"slaves=1" in watched.sentinel.command("INFO", "sentinel"))
            await until(lambda: watched.replica.command("DBSIZE") == watched.master.command("DBSIZE"))
            watched.master.kill()
            with pytest.raises(StoreUnavailableError) as caught:
                await backend.read_head("t")
            assert not caught.value.maybe_written
            sequence = await saved(backend)
            assert watched.sentinel.command(*WHO)[1] == b"%d" % watched.replica.port
            rows = await backend.read("t", 0, None)

        assert sequence == len(rows) - 1
        assert 2 == len(rows)
        assert b"t:t" in b"".join(watched.replica.command("KEYS", "*"))

    asyncio.run(check())


async def saved(backend: RedisBackend) -> int:
    """Save as core does: the same step again, until the store is there."""
    commit = save("t", write_id=os.urandom(8))
    for _ in range(3000):
        try:
            (outcome,) = await backend.commit([commit])
        except StoreUnavailableError:
            await asyncio.sleep(0.01)
        else:
            return outcome.sequence  # type: ignore[union-attr]  # nothing refuses it
    raise AssertionError("it did not come back")


def test_a_name_that_no_sentinel_knows_is_told(watched: Watched) -> None:
    async def check() -> None:
        async with opened(watched.url.replace("orders", "invoices")):
            pass

    with pytest.raises(StoreUnavailableError, match="no Sentinel names a master 'invoices'") as caught:
        asyncio.run(check())
    assert "knows no such master" in str(caught.value)
    assert not caught.value.maybe_written
