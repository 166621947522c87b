"""Idle recording and faulty stores cannot be told from what they wrap: the whole suite passes through them.

Through one inside the other, as README.md has them: what either of them changed would show, at half of the cost.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from strata_conformance import OpenBackend, OpenStore, RowBackendTests, Store, StoreTests
from strata_conformance.stores import FaultyBackend, FaultyStore, RecordingBackend, RecordingStore
from strata_core.capabilities import Capability
from strata_core.memory import MemoryBackend
from strata_core.rows import Batching
from strata_core.store import RowStore
from strata_core.testing import FakeClock


class TestBothStores(StoreTests):
    in_memory = True

    @pytest.fixture
    def open_store(self, clock: FakeClock) -> OpenStore:
        backend = MemoryBackend(clock)

        @asynccontextmanager
        async def opened(**options: Any) -> AsyncIterator[Store]:
            async with RowStore(backend, **options) as inner, FaultyStore(inner) as store:
                yield RecordingStore(store)

        return opened


class TestBothBackends(RowBackendTests):
    in_memory = True

    @pytest.fixture
    def open_backend(self, clock: FakeClock) -> OpenBackend:
        backend = MemoryBackend(clock)
        return lambda: RecordingBackend(FaultyBackend(backend))


@pytest.mark.parametrize("wrapper", [RecordingBackend, FaultyBackend])
def test_capabilities_and_batching_are_those_of_the_moment(wrapper: Any) -> None:
    """Some servers tell what they can do only when they are open."""
    backend: Any = MemoryBackend()
    wrapped = wrapper(backend)
    before = (wrapped.capabilities, wrapped.batching)
    backend.capabilities, backend.batching = frozenset({Capability.QUERY}), Batching(max_items=3)

    assert (MemoryBackend.capabilities, None) == before
    assert (frozenset({Capability.QUERY}), Batching(max_items=3)) == (wrapped.capabilities, wrapped.batching)
