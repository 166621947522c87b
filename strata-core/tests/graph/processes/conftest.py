"""The store of tests with several processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from storages import STORES, Storage, storages

SHARED = [store for store in STORES if store != "memory"]
"""The stores that other processes can see."""

if not SHARED:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(params=SHARED)
def fresh_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AbstractContextManager[Storage]]:
    """What makes fresh storages, in each store that is tested and that processes can share."""
    return storages(request, tmp_path)


@pytest.fixture
def url(storage: Storage) -> str:
    """The URL of a fresh storage that other processes can open too."""
    return storage.url
