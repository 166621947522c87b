"""The classes that authors subclass: everything a store, or a row backend, must pass."""

from __future__ import annotations

import pytest

from strata_conformance.suite._arguments import ArgumentRuleTests
from strata_conformance.suite._backend import OpenBackend
from strata_conformance.suite._base import OpenStore
from strata_conformance.suite._cancellation import CancellationTests
from strata_conformance.suite._damaged import DamagedThreadTests
from strata_conformance.suite._encoding import DeltaTests, OffloadTests
from strata_conformance.suite._external import ExternalBlobTests
from strata_conformance.suite._faults import LostCommitTests
from strata_conformance.suite._inputs import InputRuleTests
from strata_conformance.suite._leases import LeaseTests
from strata_conformance.suite._lifecycle import LifecycleTests
from strata_conformance.suite._listing import QueryTests
from strata_conformance.suite._log import LogTests
from strata_conformance.suite._lost import LostCallTests
from strata_conformance.suite._machine import ModelTests
from strata_conformance.suite._processes import ProcessTests
from strata_conformance.suite._records import RecordTests
from strata_conformance.suite._repeats import RepeatTests
from strata_conformance.suite._retention import RetentionTests
from strata_conformance.suite._rows import RowPrimitiveTests
from strata_conformance.suite._rulebook import RuleBookTests
from strata_conformance.suite._saves import CheckpointStoreTests
from strata_conformance.suite._setup import SetupTests
from strata_conformance.suite._size import SizeTests
from strata_conformance.suite._stored import StoredRowTests
from strata_core.store import RowStore

__all__ = ["RowBackendTests", "StoreTests"]


class StoreTests(
    CheckpointStoreTests,
    RepeatTests,
    LeaseTests,
    RecordTests,
    DeltaTests,
    OffloadTests,
    ExternalBlobTests,
    QueryTests,
    LogTests,
    RetentionTests,
    InputRuleTests,
    ArgumentRuleTests,
    LifecycleTests,
    SetupTests,
    CancellationTests,
    LostCallTests,
    SizeTests,
    ProcessTests,
    ModelTests,
):
    """Everything that a store must pass through its ports: define the fixture ``open_store``."""


class RowBackendTests(
    RowPrimitiveTests, RuleBookTests, StoredRowTests, DamagedThreadTests, LostCommitTests, StoreTests
):
    """Everything that a row backend must pass, alone and under core's store: define the fixture ``open_backend``."""

    @pytest.fixture
    def open_store(self, open_backend: OpenBackend) -> OpenStore:
        """Core's store on the backend."""
        return lambda **options: RowStore(open_backend(), **options)

    @pytest.fixture
    def open_blank_store(self, open_blank_backend: OpenBackend | None) -> OpenStore | None:
        """Core's store on a backend of a place where no store was ever set up."""
        if open_blank_backend is None:
            return None
        return lambda **options: RowStore(open_blank_backend(), **options)
