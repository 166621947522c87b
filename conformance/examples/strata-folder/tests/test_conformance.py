"""The folder store keeps every promise of the contract."""

import functools
from pathlib import Path

import pytest

from strata_conformance import OpenBackend, Reference, RowBackendTests
from strata_core.testing import FakeClock
from strata_folder import FolderBackend


class TestFolder(RowBackendTests):
    @pytest.fixture
    def open_backend(self, tmp_path: Path, clock: FakeClock) -> OpenBackend:
        return lambda: FolderBackend(tmp_path / "store", clock=clock)

    @pytest.fixture
    def reference(self, tmp_path: Path) -> Reference:
        return functools.partial(FolderBackend, tmp_path / "store")
