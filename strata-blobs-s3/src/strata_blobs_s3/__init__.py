"""Offloaded values of Strata in S3, or in any service that speaks its protocol.

Most users only install it: ``Offload(blobs="s3://bucket/prefix")`` of `strata_core` finds it.
"""

from strata_blobs_s3._options import S3Options
from strata_blobs_s3._store import S3BlobStore

__all__ = ["S3BlobStore", "S3Options"]
