"""The four ports of a store, one small protocol each, and what an open store serves of them."""

from strata_core.ports._blobs import BlobListing, BlobReferences, BlobStore, StoredBlob
from strata_core.ports._query import CheckpointQuery
from strata_core.ports._retention import CheckpointRetention
from strata_core.ports._store import ANY, AnyRevision, CheckpointStore
from strata_core.ports._whole import StorePorts

__all__ = [
    "ANY",
    "AnyRevision",
    "BlobListing",
    "BlobReferences",
    "BlobStore",
    "CheckpointQuery",
    "CheckpointRetention",
    "CheckpointStore",
    "StorePorts",
    "StoredBlob",
]
