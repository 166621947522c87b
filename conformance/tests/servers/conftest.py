"""The servers, and two clients that do the same by different protocols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from strata_conformance.servers import Database, FaultProxy, PostgresServer, ValkeyServer
from strata_conformance.servers.fixtures import (  # noqa: F401  # fixtures are known by their names
    pgbouncer,
    postgres_database,
    postgres_proxy,
    postgres_server,
    redis_cluster,
    redis_proxy,
    redis_server,
    valkey_proxy,
    valkey_server,
)


class Counter(Protocol):
    """A number in a server that a client counts up, through a proxy."""

    lost: type[Exception]
    """What the client raises when its connection is lost."""
    proxy: FaultProxy
    add: str
    """The kind of the request that counts up."""

    def connect(self) -> Any: ...
    def count_up(self, client: Any) -> int: ...
    def value(self) -> int:
        """The number, read past the proxy."""
        ...


class PostgresCounter:
    lost = psycopg.OperationalError
    add = "Sync"

    def __init__(self, database: Database, proxy: FaultProxy) -> None:
        self._database = database
        self.proxy = proxy
        self._clients: list[Any] = []
        database.execute("CREATE TABLE counters (n int); INSERT INTO counters VALUES (0)")

    def connect(self) -> Any:
        self._clients.append(psycopg.connect(self.proxy.url(self._database.url), autocommit=True))
        return self._clients[-1]

    def count_up(self, client: Any) -> int:
        (n,) = client.execute("UPDATE counters SET n = n + %s RETURNING n", (1,)).fetchone()
        return int(n)

    def value(self) -> int:
        return int(self._database.execute("SELECT n FROM counters")[0][0] or 0)

    def close(self) -> None:
        for client in self._clients:
            client.close()


class RedisCounter:
    lost = redis.ConnectionError
    add = "INCRBY"

    def __init__(self, server: ValkeyServer, proxy: FaultProxy) -> None:
        self._server = server
        self.proxy = proxy
        self._clients: list[Any] = []
        server.flush()

    def connect(self) -> Any:
        client = redis.Redis.from_url(
            self.proxy.url(self._server.url), retry=Retry(NoBackoff(), 0), single_connection_client=True
        )
        self._clients.append(client)
        return client

    def count_up(self, client: Any) -> int:
        return int(client.incrby("n", 1))

    def value(self) -> int:
        return int(self._server.command("GET", "n") or 0)

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture(params=["postgres", "redis"])
def counter(request: pytest.FixtureRequest) -> Iterator[Counter]:
    """The same number in PostgreSQL and in Valkey, with a proxy in between."""
    counter: Any
    if request.param == "postgres":
        database, proxy = (request.getfixturevalue(name) for name in ("postgres_database", "postgres_proxy"))
        counter = PostgresCounter(database, proxy)
    else:
        server, proxy = (request.getfixturevalue(name) for name in ("valkey_server", "valkey_proxy"))
        counter = RedisCounter(server, proxy)
    yield counter
    counter.close()


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """A durable PostgreSQL that the tests of one module may stop and crash."""
    with PostgresServer(durable=True) as server:
        yield server
