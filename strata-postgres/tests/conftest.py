"""A database for each run, a schema of it for each test.

Making a schema costs the server more than most tests do.  A test that is not about that takes `shared_url`: a schema
that was set up when the run began, and is emptied after each test.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata_conformance.servers import FaultProxy, PostgresClient, PostgresServer
from strata_conformance.servers.fixtures import postgres_database, postgres_server
from strata_core.options import Setup
from strata_postgres import PostgresBackend

__all__ = ["postgres_database", "postgres_server", "proxy", "schema", "server_url", "shared_url", "url"]

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


@pytest.fixture(scope="session")
def keeper(server_url: str) -> Iterator[PostgresClient]:
    """A connection that empties `shared_url`, whose schema it has set up."""

    async def set_up() -> None:
        backend = PostgresBackend(f"{server_url}?schema=shared")
        await backend.open(read_only=False, setup=Setup.AUTO)
        await backend.close()

    asyncio.run(set_up())
    with PostgresClient(server_url) as client:
        yield client


@pytest.fixture
def shared_url(server_url: str, keeper: PostgresClient) -> Iterator[str]:
    """The URL of a store that is set up and empty."""
    yield f"{server_url}?schema=shared"
    tables = keeper.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'shared' AND tablename <> 'strata_version'"
    )
    keeper.execute("; ".join(f"DELETE FROM shared.{table}" for (table,) in tables))
