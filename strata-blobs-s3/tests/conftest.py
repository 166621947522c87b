"""Services for the session, and a bucket of its own for each test."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import botocore.loaders
import botocore.session
import pytest

from strata_conformance.servers import MotoServer, S3Server, SwiftServer
from strata_conformance.servers.fixtures import moto_server, swift_server

sys.path.append(str(Path(__file__).parent))

from s3_support import Place, raw_client  # beside this file
from small_service import SmallService

__all__ = ["moto_server", "swift_server"]

_NUMBERS = itertools.count()
_SLOW_ON_SWIFT = "TestOnSwift::test_threads_of_any_id_are_kept_apart"
_MORE_OF_THE_SAME = tuple(f"values_in_a_blob_store_reload_equal[{seed}]" for seed in (0, 1, 2))
_SLOW_WITH_ROWS = (
    "saves_loads_and_purges_with_a_blob_store_can_race",
    "in_nobodys_way[early]",
    "in_nobodys_way[between]",
)
"""Promises of rows and blobs together that take thousands of requests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.endswith((_SLOW_ON_SWIFT, *_MORE_OF_THE_SAME, *_SLOW_WITH_ROWS)):
            item.add_marker(pytest.mark.soak)
        if item.get_closest_marker("soak") and not os.environ.get("STRATA_SOAK"):
            item.add_marker(pytest.mark.skip(reason="takes long; STRATA_SOAK=1 runs it"))


@pytest.fixture(autouse=True, scope="session")
def one_loader() -> Iterator[None]:
    """Making a client reads a megabyte of descriptions; here all clients share them."""
    loader = botocore.loaders.create_loader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", lambda _: loader)
        yield


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine has is no part of a test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in (
        ("AWS_CONFIG_FILE", os.devnull),
        ("AWS_SHARED_CREDENTIALS_FILE", os.devnull),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):
        monkeypatch.setenv(name, value)


def _place(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    client = raw_client(server.url)
    place = Place(server.url, f"bucket-{os.getpid()}-{next(_NUMBERS)}", client)
    client.create_bucket(Bucket=place.bucket)
    yield place
    client.close()


@pytest.fixture
def moto(moto_server: MotoServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty bucket of moto, whose credentials stand in the environment."""
    yield from _place(moto_server, monkeypatch)


@pytest.fixture
def swift(swift_server: SwiftServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty bucket of Swift, whose credentials stand in the environment."""
    yield from _place(swift_server, monkeypatch)


@pytest.fixture(params=["moto", "swift"])
def place(request: pytest.FixtureRequest) -> Place:
    """An empty bucket of each service."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallService]:
    """A service of our own that goes wrong as a test tells it; credentials stand in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    with SmallService() as service:
        yield service
