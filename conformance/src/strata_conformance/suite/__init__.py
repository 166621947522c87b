"""The tests themselves, one file a subject."""

from typing import Final

from strata_conformance.suite._arguments import ArgumentRuleTests
from strata_conformance.suite._backend import OpenBackend
from strata_conformance.suite._base import Footprint, OpenStore, Reference, Store
from strata_conformance.suite._blobs import BlobStoreTests, OpenBlobs
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
    "CheckpointStoreTests",
    "DeltaTests",
    "ExternalBlobTests",
    "Footprint",
    "InputRuleTests",
    "LeaseTests",
    "LifecycleTests",
    "LogTests",
    "ModelTests",
    "OffloadTests",
    "OpenBackend",
    "OpenBlobs",
    "OpenStore",
    "QueryTests",
    "RecordTests",
    "Reference",
    "RepeatTests",
    "RetentionTests",
    "RowBackendTests",
    "RowPrimitiveTests",
    "RuleBookTests",
    "SetupTests",
    "Store",
    "StoreTests",
    "StoredRowTests",
]

CLASSES: Final = (
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
    BlobStoreTests,
    RowPrimitiveTests,
    RuleBookTests,
    StoredRowTests,
    DamagedThreadTests,
    LostCommitTests,
)
"""Every class that proves promises, in the order of the contract."""
