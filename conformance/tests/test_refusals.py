"""A store that declares nothing is tested for its refusals, and for all that is required."""

import pytest

from strata_conformance import OpenBackend, RowBackendTests
from strata_core.memory import MemoryBackend
from strata_core.testing import FakeClock


class BareMemory(MemoryBackend):
    capabilities = frozenset()


class TestBareMemory(RowBackendTests):
    @pytest.fixture
    def open_backend(self, clock: FakeClock) -> OpenBackend:
        backend = BareMemory(clock)
        return lambda: backend
