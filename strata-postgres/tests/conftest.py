"""A database for each run, a schema of it for each test."""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def server_url() -> str:
    return os.environ["STRATA_TEST_POSTGRES_URL"]


@pytest.fixture
def schema(server_url: str) -> Generator[str]:
    """The name of a schema that does not exist yet, and is gone afterwards."""
    name = f"test_{os.urandom(6).hex()}"
    yield name
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())


@pytest.fixture
def url(server_url: str, schema: str) -> str:
    """The URL of a store that was never set up."""
    return f"{server_url}?schema={schema}"
