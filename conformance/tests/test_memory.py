"""The in-memory backend passes the whole suite."""

import pytest

from strata_conformance import OpenBackend, RowBackendTests
from strata_core.memory import MemoryBackend
from strata_core.testing import FakeClock


class TestMemory(RowBackendTests):
    @pytest.fixture
    def open_backend(self, clock: FakeClock) -> OpenBackend:
        backend = MemoryBackend(clock)
        return lambda: backend
