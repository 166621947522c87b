"""What the tests share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import attrs
from boto3.session import Session
from botocore.config import Config

from strata_blobs_s3 import S3BlobStore, S3Options

__all__ = ["Place", "digest_of", "raw_client"]


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def raw_client(endpoint_url: str) -> Any:
    """A client that is not ours, to look into a bucket."""
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1, "mode": "standard"})
    return Session().client("s3", endpoint_url=endpoint_url, config=config)


@attrs.frozen
class Place:
    """A bucket of a running service."""

    endpoint_url: str
    bucket: str
    client: Any = attrs.field(repr=False)

    def store(self, prefix: str = "", **options: Any) -> S3BlobStore:
        return S3BlobStore(self.bucket, prefix, options=S3Options(endpoint_url=self.endpoint_url, **options))

    def url(self, prefix: str = "", query: str = "") -> str:
        return f"s3://{self.bucket}/{prefix}?endpoint_url={quote(self.endpoint_url, safe='')}{query}"

    def keys(self, prefix: str = "") -> Sequence[str]:
        """Every key, at most 1,000."""
        return [it["Key"] for it in self.client.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", ())]
