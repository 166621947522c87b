"""Blobs in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from strata_core.blobs._names import blob_file, check_content, thread_folder
from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.ports import StoredBlob

__all__ = ["InMemoryBlobStore"]


class InMemoryBlobStore:
    """Keeps blobs for as long as this object lives; for tests and examples.

    Nothing suspends, so every call is one step.

    Args:
        clock: Tells when a blob was put.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._threads: dict[str, dict[str, tuple[bytes, datetime]]] = {}

    def __repr__(self) -> str:
        return f"<InMemoryBlobStore of {sum(map(len, self._threads.values()))} blobs>"

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        folder, name = thread_folder(thread_id), blob_file(digest)
        self._threads.setdefault(folder, {})[name] = check_content(content), self._clock.now()

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        folder, name = thread_folder(thread_id), blob_file(digest)
        found = self._threads.get(folder, {}).get(name)
        return None if found is None else found[0]

    async def delete_thread(self, thread_id: str) -> None:
        self._threads.pop(thread_folder(thread_id), None)

    async def list_blobs(self) -> AsyncIterator[StoredBlob]:
        for folder, blobs in sorted(self._threads.items()):
            for name, (content, stored_at) in sorted(blobs.items()):
                yield StoredBlob(folder, f"sha256:{name}", len(content), stored_at)
