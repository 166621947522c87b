"""Core's store makes good what a storage loses: a good part of the suite passes while every second answer is lost."""

import pytest

from strata_conformance import (
    CheckpointStoreTests,
    ConditionalSaveTests,
    DeltaTests,
    LeasedSaveTests,
    LeaseTests,
    LogTests,
    OffloadTests,
    OpenStore,
    RecordTests,
    RepeatTests,
)
from strata_conformance.stores import Fault, FaultyBackend
from strata_core.memory import MemoryBackend
from strata_core.rows import Batching
from strata_core.store import RowStore
from strata_core.testing import FakeClock


class Batched(MemoryBackend):
    """Goes through core's batcher, as a database does."""

    batching = Batching(max_items=4)  # type: ignore[assignment]  # a base that needs none says None


class EverySecond(
    CheckpointStoreTests,
    ConditionalSaveTests,
    RepeatTests,
    LeaseTests,
    LeasedSaveTests,
    RecordTests,
    DeltaTests,
    OffloadTests,
    LogTests,
):
    """Not every fault is reached, so the plan is not verified: what counts is that nobody notices one."""

    when: str

    @pytest.fixture
    def open_store(self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> OpenStore:
        monkeypatch.setattr("strata_core.store._batcher.PAUSE", 0.0)
        backend = Batched(clock)
        faults = [Fault("commit", nth, self.when) for nth in range(2, 6000, 2)]  # type: ignore[arg-type]  # a str
        return lambda **options: RowStore(FaultyBackend(backend, faults), **options)


class TestEverySecondAnswerIsLost(EverySecond):
    when = "after"


class TestEverySecondRequestIsLost(EverySecond):
    when = "before"
