"""The SQLite backend passes the whole suite; its own tests run it with the disk waited for, here it is not."""

import functools
from pathlib import Path

import pytest

from strata_conformance import OpenBackend, Reference, RowBackendTests
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend, SqliteOptions, Synchronous


class TestSqlite(RowBackendTests):
    @pytest.fixture
    def open_backend(self, tmp_path: Path, clock: FakeClock) -> OpenBackend:
        options = SqliteOptions(synchronous=Synchronous.NORMAL)
        return lambda: SqliteBackend(tmp_path / "threads.db", options=options, clock=clock)

    @pytest.fixture
    def reference(self, tmp_path: Path) -> Reference:
        options = SqliteOptions(synchronous=Synchronous.NORMAL)
        return functools.partial(SqliteBackend, tmp_path / "threads.db", options=options)
