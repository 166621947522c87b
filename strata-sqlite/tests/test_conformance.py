"""SQLite keeps every promise of the contract; this is all that a backend of a third party needs, too."""

import functools
from pathlib import Path

import pytest

from strata_conformance import OpenBackend, Reference, RowBackendTests
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend


class TestConformance(RowBackendTests):
    @pytest.fixture
    def open_backend(self, tmp_path: Path, clock: FakeClock) -> OpenBackend:
        return lambda: SqliteBackend(tmp_path / "threads.db", clock=clock)

    @pytest.fixture
    def reference(self, tmp_path: Path) -> Reference:
        return functools.partial(SqliteBackend, tmp_path / "threads.db")
