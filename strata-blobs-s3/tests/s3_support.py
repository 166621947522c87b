"""What the tests share."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote

import attrs
import pytest
from boto3.session import Session
from botocore.config import Config
from small_service import SmallService

from strata_blobs_s3 import S3BlobStore, S3Options
from strata_core.errors import StoreUnavailableError

__all__ = ["CONTENT", "DIGEST", "SMALL", "Place", "digest_of", "failure", "raw_client", "store_at"]

CONTENT = b'"' + b"x" * 100_000 + b'"'
SMALL = b'"small"'


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


DIGEST = digest_of(CONTENT)


def store_at(endpoint_url: str, **options: Any) -> S3BlobStore:
    """A store in the one bucket of a small service."""
    return S3BlobStore("bucket", "strata", options=S3Options(endpoint_url=endpoint_url, **options))


def failure(
    service: SmallService, call: Callable[[S3BlobStore], Awaitable[Any]], *, attempts: int = 1
) -> StoreUnavailableError:
    """Return the error of a call of an open store."""

    async def scenario() -> StoreUnavailableError:
        before, service.before = service.before, lambda _: None
        async with store_at(service.endpoint_url, max_attempts=attempts) as blobs:
            service.before = before
            service.requests.clear()
            with pytest.raises(StoreUnavailableError) as caught:
                await call(blobs)
        return caught.value

    return asyncio.run(scenario())


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
