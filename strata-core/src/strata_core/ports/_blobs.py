from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

import attrs

__all__ = ["BlobListing", "BlobReferences", "BlobStore", "StoredBlob"]


class BlobStore(Protocol):
    """Keeps offloaded values, content-addressed, per thread.

    A digest is ``sha256:`` and 64 lower-case hex digits.  Whoever calls `put` gives the digest of the content; whoever
    reads verifies it.  A blob belongs to one thread and is never shared.  An implementation may be an async context
    manager; whoever opened it closes it.
    """

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        """Store `content`, durably before it returns.

        Idempotent: the same blob may be put any number of times, also at once.  Atomic: no reader ever sees a part.

        Raises:
            StoreUnavailableError: The storage did not take it; putting it again is safe.
        """
        ...

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        """Return the content; None when the thread has no such blob.

        Raises:
            StoreUnavailableError: The storage did not answer.
            CorruptCheckpointError: From a store that verifies what it reads: the content is not that of the digest.
        """
        ...

    async def delete_thread(self, thread_id: str) -> None:
        """Delete every blob of the thread.  Idempotent; a thread without blobs is no error.

        Raises:
            StoreUnavailableError: Not everything is known to be deleted; deleting again is safe.
        """
        ...


@attrs.frozen
class StoredBlob:
    """A blob as a storage lists it.

    Attributes:
        folder: The folder of its thread: `strata_core.blobs.thread_folder` of the thread's ID.
        digest: Its digest.
        size: Bytes of its content.
        stored_at: When it was put; aware, by the storage's clock.  Putting it again may leave that as it was.
    """

    folder: str
    digest: str
    size: int
    stored_at: datetime


class BlobListing(Protocol):
    """A blob store that can also tell what it keeps; optional."""

    def list_blobs(self) -> AsyncIterator[StoredBlob]:
        """Yield every blob, those of one thread one after another.

        What is put or deleted meanwhile may be there or not.  What is no blob is passed over.  Nothing is held between
        two blobs, and nothing is read of their content.

        Raises:
            StoreUnavailableError: The storage did not answer.
        """
        ...


class BlobReferences(Protocol):
    """A store that can tell which blobs its checkpoints refer to; optional."""

    async def blob_references(self, thread_id: str) -> frozenset[str] | None:
        """Return the digests that any checkpoint of the thread refers to; None when it has no checkpoint.

        Reads rows, and no blob.

        Raises:
            CorruptCheckpointError: A row cannot be read.
            SchemaVersionError: A row is of a newer format.
            StoreUnavailableError: The storage did not answer.
        """
        ...
