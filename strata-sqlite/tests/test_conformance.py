"""The backend passes the suite that every store passes, with the disk waited for as in production."""

from pathlib import Path

import pytest

from strata_conformance import OpenBackend, RowBackendTests
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend


class TestSqliteBackend(RowBackendTests):
    @pytest.fixture
    def open_backend(self, tmp_path: Path, clock: FakeClock) -> OpenBackend:
        return lambda: SqliteBackend(tmp_path / "threads.db", clock=clock)
