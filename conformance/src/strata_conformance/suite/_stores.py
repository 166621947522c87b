"""The classes that authors subclass: everything a store, or a row backend, must pass."""

from __future__ import annotations

import pytest

from strata_conformance.suite._arguments import ArgumentRuleTests
from strata_conformance.suite._backend import OpenBackend, OpenExpiringBackend
from strata_conformance.suite._base import OpenExpiringStore, OpenStore
from strata_conformance.suite._cancellation import CancellationTests
from strata_conformance.suite._cancelled_saves import CancelledSaveTests
from strata_conformance.suite._conditional import ConditionalSaveTests
from strata_conformance.suite._damaged import DamagedThreadTests
from strata_conformance.suite._encoding import DeltaTests, OffloadTests
from strata_conformance.suite._expired_rows import ExpiredRowTests
from strata_conformance.suite._expiry import ExpiryTests
from strata_conformance.suite._external import ExternalBlobTests
from strata_conformance.suite._faults import LostCommitTests
from strata_conformance.suite._filters import FilterTests
from strata_conformance.suite._inputs import InputRuleTests
from strata_conformance.suite._leased_saves import LeasedSaveTests
from strata_conformance.suite._leases import LeaseTests
from strata_conformance.suite._lifecycle import LifecycleTests
from strata_conformance.suite._listing import QueryTests
from strata_conformance.suite._log import LogTests
from strata_conformance.suite._lost import LostCallTests
from strata_conformance.suite._machine import ModelTests
from strata_conformance.suite._paging import PagingTests
from strata_conformance.suite._processes import ProcessTests
from strata_conformance.suite._records import RecordTests
from strata_conformance.suite._repeats import RepeatTests
from strata_conformance.suite._retention import RetentionTests
from strata_conformance.suite._row_leases import RowLeaseTests
from strata_conformance.suite._row_lifecycle import RowLifecycleTests
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
    ConditionalSaveTests,
    RepeatTests,
    LeaseTests,
    LeasedSaveTests,
    RecordTests,
    DeltaTests,
    OffloadTests,
    ExternalBlobTests,
    QueryTests,
    FilterTests,
    PagingTests,
    LogTests,
    RetentionTests,
    ExpiryTests,
    InputRuleTests,
    ArgumentRuleTests,
    LifecycleTests,
    SetupTests,
    CancellationTests,
    CancelledSaveTests,
    LostCallTests,
    SizeTests,
    ProcessTests,
    ModelTests,
):
    """Everything that a store must pass through its ports: define the fixture ``open_store``."""


class RowBackendTests(
    RowPrimitiveTests,
    RowLeaseTests,
    RowLifecycleTests,
    RuleBookTests,
    StoredRowTests,
    ExpiredRowTests,
    DamagedThreadTests,
    LostCommitTests,
    StoreTests,
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

    @pytest.fixture
    def open_expiring_store(self, open_expiring_backend: OpenExpiringBackend | None) -> OpenExpiringStore | None:
        """Core's store on a backend whose finished threads expire."""
        if open_expiring_backend is None:
            return None
        return lambda ttl, **options: RowStore(open_expiring_backend(ttl), **options)
