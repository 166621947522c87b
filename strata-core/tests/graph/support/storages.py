"""Where the engine's tests keep their threads: a fresh storage for each test, in every store that is installed.

The variable STRATA_TEST_STORE names the stores, separated by commas: ``memory``, ``sqlite``, ``postgres``, ``valkey``,
``redis``, or the URL of another one, in which FOLDER stands for a fresh folder.  Where it is not set, all of them are
tested that are installed.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from strata_core import open_store
from strata_core.memory import MemoryBackend
from strata_core.records import Lease
from strata_core.store import RowStore
from strata_core.testing import FakeClock

SCHEMES = {"memory": "memory", "sqlite": "sqlite", "postgres": "postgres", "valkey": "redis", "redis": "redis"}
"""The stores by the schemes that are served where they are installed."""
SERVERS = {"postgres", "valkey", "redis"}
"""The stores whose server is started for the session, by the fixture of that name and ``_server``."""
_served = {"memory"} | entry_points(group="strata_core.stores").names
STORES = os.environ.get("STRATA_TEST_STORE", ",".join(name for name in SCHEMES if SCHEMES[name] in _served)).split(",")
_numbers = itertools.count()


class Storage(ABC):
    """A storage that was empty when the test began.

    Attributes:
        clock: Moves time for the engine and the store; it stands still by itself.
        url: Where another process opens it; memory has none.
    """

    def __init__(self, clock: FakeClock, url: str = "") -> None:
        self.clock = clock
        self.url = url

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[Any]:
        """Return one more store on it."""

    def left(self, lease: Lease) -> timedelta:
        """Return how long a lease still lives."""
        return lease.expires_at - self.clock.now()


class MemoryStorage(Storage):
    def __init__(self) -> None:
        super().__init__(FakeClock())
        self._backend = MemoryBackend(self.clock)

    def open(self) -> AbstractAsyncContextManager[Any]:
        return RowStore(self._backend)


class UrlStorage(Storage):
    def open(self) -> AbstractAsyncContextManager[Any]:
        return open_store(self.url, clock=self.clock)


class ServerStorage(UrlStorage):
    """A storage whose leases go by the clock of its server, which no test can move.

    When the test's clock moves on, what the server has stored is moved back by as much instead.
    """

    def __init__(self, url: str, move_leases: Callable[[int], object], options: Any = None) -> None:
        super().__init__(_MovingClock(move_leases), url)
        self._options = options

    def open(self) -> AbstractAsyncContextManager[Any]:
        return open_store(self.url, clock=self.clock, options=self._options)

    def left(self, lease: Lease) -> timedelta:
        """Return how long a lease still lives, to the second: the server's clock goes on meanwhile."""
        return timedelta(seconds=round((lease.expires_at - datetime.now(UTC)).total_seconds()))


class _MovingClock(FakeClock):
    def __init__(self, move_leases: Callable[[int], object]) -> None:
        super().__init__()
        self._move_leases = move_leases

    def advance(self, by: timedelta | float) -> None:
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        self._move_leases(step // timedelta(microseconds=1))
        super().advance(step)


def storages(request: pytest.FixtureRequest, folder: Path) -> Callable[[], AbstractContextManager[Storage]]:
    """Return what makes fresh storages in one of STORES, the parameter of a fixture; leaving one removes it.

    Args:
        request: Of that fixture.
        folder: Where files can be kept.
    """
    store: str = request.param
    if store == "memory":
        return lambda: nullcontext(MemoryStorage())
    if store in SERVERS:
        server = request.getfixturevalue(f"{store}_server")
        if store != "postgres":
            return lambda: _redis(server)
        client = request.getfixturevalue("postgres_client")
        return lambda: _postgres(client, server.url)
    url = "sqlite:///FOLDER/threads.db" if store == "sqlite" else store
    return lambda: nullcontext(UrlStorage(FakeClock(), url.replace("FOLDER", mkdtemp(dir=folder))))


@contextmanager
def _postgres(client: Any, url: str) -> Iterator[Storage]:
    """A schema of this process, emptied after each test, which takes a tenth of the time of making one."""
    from strata_postgres import PostgresOptions

    schema = f"engine_{os.getpid()}"
    tables = f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' AND tablename <> 'strata_version'"

    def move_leases(micros: int) -> None:
        if client.execute(tables):
            client.execute(f"UPDATE {schema}.strata_heads SET expires = expires - {micros} WHERE token <> 0")

    # Every connection is a process of the server: a store opens none that it does not need at once.
    yield ServerStorage(f"{url}?schema={schema}", move_leases, PostgresOptions(min_connections=0))
    if found := client.execute(tables):
        client.execute("; ".join(f"DELETE FROM {schema}.{table}" for (table,) in found))


# Every lease stands in the head of its thread and, by its expiry, in the index of its bucket.
_MOVE_LEASES = r"""
for bucket = 0, 15 do
  local tag = '{' .. ARGV[1] .. ':' .. bucket .. '}'
  for _, member in ipairs(redis.call('ZRANGEBYLEX', tag .. 'index', '[l', '(m')) do
    local expires, thread = string.match(member, '^l(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(.*)$')
    local after = tonumber(expires) - tonumber(ARGV[2])
    local key = tag .. 't:' .. thread
    local head = redis.call('HGET', key, 'head')
    -- Its fourth number.
    head = string.sub(head, 1, 24) .. struct.pack('>i8', after) .. string.sub(head, 33)
    redis.call('HSET', key, 'head', head)
    redis.call('ZREM', tag .. 'index', member)
    redis.call('ZADD', tag .. 'index', 0, 'l' .. string.format('%017.0f', after) .. thread)
  end
end
"""


@contextmanager
def _redis(server: Any) -> Iterator[Storage]:
    """A prefix of its own."""
    prefix = f"engine.{os.getpid()}.{next(_numbers)}"
    try:
        yield ServerStorage(
            f"{server.url}?prefix={prefix}", lambda micros: server.command("EVAL", _MOVE_LEASES, 0, prefix, micros)
        )
    finally:
        if keys := server.command("KEYS", f"{{{prefix}:*"):
            server.command("DEL", *keys)
