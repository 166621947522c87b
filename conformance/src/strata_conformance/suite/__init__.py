"""The tests themselves, one file a subject."""

from typing import Final

from strata_conformance.suite._arguments import ArgumentRuleTests
from strata_conformance.suite._backend import OpenBackend, OpenExpiringBackend
from strata_conformance.suite._base import Footprint, OpenExpiringStore, OpenStore, Reference, Store
from strata_conformance.suite._blobs import BlobStoreTests, OpenBlobs
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
from strata_conformance.suite._stores import RowBackendTests, StoreTests

__all__ = [
    "CLASSES",
    "SizeTests",
    "ProcessTests",
    "LostCallTests",
    "LostCommitTests",
    "DamagedThreadTests",
    "ArgumentRuleTests",
    "BlobStoreTests",
    "CancellationTests",
    "CancelledSaveTests",
    "CheckpointStoreTests",
    "ConditionalSaveTests",
    "DeltaTests",
    "ExpiredRowTests",
    "ExpiryTests",
    "ExternalBlobTests",
    "Footprint",
    "InputRuleTests",
    "LeaseTests",
    "LeasedSaveTests",
    "LifecycleTests",
    "LogTests",
    "ModelTests",
    "OffloadTests",
    "OpenBackend",
    "OpenBlobs",
    "OpenExpiringBackend",
    "OpenExpiringStore",
    "OpenStore",
    "QueryTests",
    "FilterTests",
    "PagingTests",
    "RecordTests",
    "Reference",
    "RepeatTests",
    "RetentionTests",
    "RowBackendTests",
    "RowPrimitiveTests",
    "RowLeaseTests",
    "RowLifecycleTests",
    "RuleBookTests",
    "SetupTests",
    "Store",
    "StoreTests",
    "StoredRowTests",
]

CLASSES: Final = (
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
    BlobStoreTests,
    RowPrimitiveTests,
    RowLeaseTests,
    RowLifecycleTests,
    RuleBookTests,
    StoredRowTests,
    ExpiredRowTests,
    DamagedThreadTests,
    LostCommitTests,
)
"""Every class that proves promises, in the order of the contract."""
