"""The plugin behind the scheme ``s3``."""

from __future__ import annotations

from strata_blobs_s3._store import S3BlobStore
from strata_core.errors import InvalidInputError
from strata_core.hookspecs import BlobProvider, hookimpl

__all__ = ["strata_blob_store"]


def _open(url: str) -> S3BlobStore:
    try:
        return S3BlobStore.from_url(url)
    except InvalidInputError as error:
        raise InvalidInputError("blobs", error.problem) from None  # whose argument the URL is


@hookimpl
def strata_blob_store() -> BlobProvider:
    """Offer ``s3:``."""
    return BlobProvider(name="s3", schemes=("s3",), port_version=1, open=_open)
