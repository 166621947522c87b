"""The store of tests with several processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

STORE = os.environ.get("STRATA_TEST_STORE", "memory://")

if STORE == "memory://":  # only this process can see it
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a fresh storage that other processes can open too."""
    return STORE.replace("FOLDER", str(tmp_path))
