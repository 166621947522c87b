from __future__ import annotations

from typing import Protocol

__all__ = ["BlobStore"]


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
        """
        ...

    async def delete_thread(self, thread_id: str) -> None:
        """Delete every blob of the thread.  Idempotent; a thread without blobs is no error.

        Raises:
            StoreUnavailableError: Not everything is known to be deleted; deleting again is safe.
        """
        ...
