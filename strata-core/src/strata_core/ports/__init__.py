"""The four ports of a store, one small protocol each, and what an open store serves of them."""

from strata_core.ports._blobs import BlobStore
from strata_core.ports._query import CheckpointQuery
from strata_core.ports._retention import CheckpointRetention
from strata_core.ports._store import ANY, AnyRevision, CheckpointStore
from strata_core.ports._whole import StorePorts

__all__ = ["ANY", "AnyRevision", "BlobStore", "CheckpointQuery", "CheckpointRetention", "CheckpointStore", "StorePorts"]
