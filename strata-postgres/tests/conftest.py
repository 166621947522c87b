"""A database for each run, a schema of it for each test."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata_conformance.servers import FaultProxy, PostgresServer
from strata_conformance.servers.fixtures import postgres_database, postgres_server

__all__ = ["postgres_database", "postgres_server", "proxy", "schema", "server_url", "url"]

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def server_url(postgres_server: PostgresServer) -> Iterator[str]:  # the fixture of that name
    """The URL of a database of this run, as a superuser."""
    with postgres_server.fresh_database() as database:
        yield database.url


@pytest.fixture
def schema() -> str:
    """The name of a schema that does not exist yet."""
    return f"test_{os.urandom(6).hex()}"


@pytest.fixture
def url(server_url: str, schema: str) -> str:
    """The URL of a store that was never set up."""
    return f"{server_url}?schema={schema}"


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    """A proxy in front of the server: ``proxy.url(url)``."""
    with FaultProxy.before(postgres_server) as proxy:
        yield proxy
