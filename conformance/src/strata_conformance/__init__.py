"""The conformance suite of Strata: subclass a class, define one fixture, and pytest proves your store.

See ``README.md`` for the ten lines that it takes, and ``CONTRACT.md`` for what is promised.
"""

import pytest

pytest.register_assert_rewrite("strata_conformance.suite")  # before anything imports it: failures show their values

from strata_conformance._contract import CONTRACT  # noqa: E402  # see above
from strata_conformance._promise import Promise, promise, promises_of  # noqa: E402
from strata_conformance.suite import (  # noqa: E402
    ArgumentRuleTests,
    BlobStoreTests,
    CancellationTests,
    CheckpointStoreTests,
    DamagedThreadTests,
    DeltaTests,
    ExternalBlobTests,
    InputRuleTests,
    LeaseTests,
    LifecycleTests,
    LogTests,
    LostCallTests,
    LostCommitTests,
    ModelTests,
    OffloadTests,
    OpenBackend,
    OpenBlobs,
    OpenStore,
    ProcessTests,
    QueryTests,
    RecordTests,
    Reference,
    RepeatTests,
    RetentionTests,
    RowBackendTests,
    RowPrimitiveTests,
    RuleBookTests,
    SizeTests,
    Store,
    StoredRowTests,
    StoreTests,
)

__all__ = [
    "CONTRACT",
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
    "InputRuleTests",
    "LeaseTests",
    "LifecycleTests",
    "LogTests",
    "ModelTests",
    "OffloadTests",
    "OpenBackend",
    "OpenBlobs",
    "OpenStore",
    "Promise",
    "QueryTests",
    "RecordTests",
    "Reference",
    "RepeatTests",
    "RetentionTests",
    "RowBackendTests",
    "RowPrimitiveTests",
    "RuleBookTests",
    "Store",
    "StoreTests",
    "StoredRowTests",
    "promise",
    "promises_of",
]
