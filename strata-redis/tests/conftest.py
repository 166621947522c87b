"""Servers for the session, and a prefix of its own for each test."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata_conformance.servers import RedisCluster, RedisServer, ValkeyServer
from strata_conformance.servers.fixtures import (
    redis_cluster,
    redis_proxy,
    redis_server,
    server_or_outcome,
    valkey_proxy,
    valkey_server,
)

sys.path.append(str(Path(__file__).parent))

from redis_support import Place  # beside this file

__all__ = ["redis_cluster", "redis_proxy", "redis_server", "valkey_proxy", "valkey_server"]


@pytest.fixture
def prefix() -> str:
    """A prefix under which nothing was ever kept."""
    return f"test.{os.urandom(5).hex()}"


@pytest.fixture(scope="session")
def one_node_cluster() -> Iterator[RedisCluster]:
    """A cluster of one node: it refuses a command on keys of several slots, as a larger one does."""
    with server_or_outcome(RedisCluster(1)) as cluster:
        yield cluster


@pytest.fixture
def valkey(valkey_server: ValkeyServer, prefix: str) -> Place:
    """A place for a store in Valkey."""
    return Place((valkey_server,), valkey_server.url, prefix)


@pytest.fixture
def redis(redis_server: RedisServer, prefix: str) -> Place:
    """A place for a store in Redis."""
    return Place((redis_server,), redis_server.url, prefix)


@pytest.fixture(params=["valkey", "redis"])
def place(request: pytest.FixtureRequest) -> Place:
    """A place for a store, in both."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def cluster(redis_cluster: RedisCluster, prefix: str) -> Place:
    """A place for a store in a cluster of three nodes."""
    return Place(tuple(redis_cluster.nodes), f"redis://127.0.0.1:{redis_cluster.nodes[0].port}?cluster=true", prefix)


@pytest.fixture
def small_cluster(one_node_cluster: RedisCluster, prefix: str) -> Place:
    """A place for a store in a cluster of one node."""
    (node,) = one_node_cluster.nodes
    return Place((node,), f"redis://127.0.0.1:{node.port}?cluster=true", prefix)
