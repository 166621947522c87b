"""The folder store keeps every promise of the contract."""

from pathlib import Path

import pytest

from strata_conformance import OpenBackend, RowBackendTests
from strata_core.testing import FakeClock
from strata_folder import FolderBackend


class TestFolder(RowBackendTests):
    @pytest.fixture
    def open_backend(self, tmp_path: Path, clock: FakeClock) -> OpenBackend:
        return lambda: FolderBackend(tmp_path / "store", clock=clock)
