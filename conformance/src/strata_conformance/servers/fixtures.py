"""Servers and proxies as pytest fixtures: ``pytest -p strata_conformance.servers.fixtures``.

A server is started once a session, when the first test wants it, and shared: a test that stops, crashes or freezes one
starts its own.  Where a server is missing the test fails and says what to install; with
``STRATA_ALLOW_MISSING_SERVERS=1`` it is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

import pytest

from strata_conformance.servers import (
    Database,
    FaultProxy,
    MissingServerError,
    MotoServer,
    PgBouncer,
    PostgresServer,
    RedisCluster,
    RedisServer,
    SwiftServer,
    ValkeyServer,
)
from strata_conformance.servers._binaries import ALLOW_MISSING

__all__ = [
    "moto_server",
    "pgbouncer",
    "postgres_database",
    "postgres_proxy",
    "postgres_server",
    "redis_cluster",
    "redis_proxy",
    "redis_server",
    "server_or_outcome",
    "swift_server",
    "valkey_proxy",
    "valkey_server",
]

T = TypeVar("T")


@contextmanager
def server_or_outcome(server: AbstractContextManager[T]) -> Iterator[T]:
    """Start a server for a test; where it is not installed, fail the test with what to do, or skip it.

    For tests that start a server of their own: ``with server_or_outcome(PostgresServer(durable=True)) as server``.
    """
    with ExitStack() as stack:
        try:
            started = stack.enter_context(server)
        except MissingServerError as missing:
            if os.environ.get(ALLOW_MISSING) == "1":
                pytest.skip(str(missing).partition("\n")[0])
            pytest.fail(str(missing), pytrace=False)
        yield started


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL, for the session."""
    with server_or_outcome(PostgresServer()) as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[Database]:
    """A database that only this test knows; its ``url`` is that of a superuser."""
    with postgres_server.fresh_database() as database:
        yield database


@pytest.fixture
def postgres_proxy(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    """A proxy in front of the session's PostgreSQL: ``postgres_proxy.url(postgres_database.url)``."""
    with FaultProxy.before(postgres_server) as proxy:
        yield proxy


@pytest.fixture
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """A PgBouncer in front of the session's PostgreSQL.

    No wheel has one, so the test is skipped where it is missing.
    """
    with ExitStack() as stack:
        try:
            bouncer = stack.enter_context(PgBouncer(postgres_server))
        except MissingServerError as missing:
            pytest.skip(str(missing))
        yield bouncer


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """A Valkey, for the session; what a test leaves in it, the next one finds, unless it uses ``flush``."""
    with server_or_outcome(ValkeyServer()) as server:
        yield server


@pytest.fixture
def valkey_proxy(valkey_server: ValkeyServer) -> Iterator[FaultProxy]:
    """A proxy in front of the session's Valkey."""
    with FaultProxy.before(valkey_server) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis, for the session; what a test leaves in it, the next one finds, unless it uses ``flush``."""
    with server_or_outcome(RedisServer()) as server:
        yield server


@pytest.fixture
def redis_proxy(redis_server: RedisServer) -> Iterator[FaultProxy]:
    """A proxy in front of the session's Redis."""
    with FaultProxy.before(redis_server) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[RedisCluster]:
    """A cluster of three nodes, Valkey or Redis, for the session."""
    with server_or_outcome(RedisCluster(3)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def moto_server() -> Iterator[MotoServer]:
    """The S3 of moto, for the session; each test makes a bucket of its own."""
    with server_or_outcome(MotoServer()) as server:
        yield server


@pytest.fixture(scope="session")
def swift_server() -> Iterator[SwiftServer]:
    """The S3 of Swift, for the session; each test makes a bucket of its own."""
    with server_or_outcome(SwiftServer()) as server:
        yield server
