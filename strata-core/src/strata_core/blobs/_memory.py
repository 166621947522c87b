"""Blobs in memory."""

from __future__ import annotations

from strata_core.blobs._names import blob_file, check_content, thread_folder

__all__ = ["InMemoryBlobStore"]


class InMemoryBlobStore:
    """Keeps blobs for as long as this object lives; for tests and examples.

    Nothing suspends, so every call is one step.
    """

    def __init__(self) -> None:
        self._threads: dict[str, dict[str, bytes]] = {}

    def __repr__(self) -> str:
        return f"<InMemoryBlobStore of {sum(map(len, self._threads.values()))} blobs>"

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        folder, name = thread_folder(thread_id), blob_file(digest)
        self._threads.setdefault(folder, {})[name] = check_content(content)

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        folder, name = thread_folder(thread_id), blob_file(digest)
        return self._threads.get(folder, {}).get(name)

    async def delete_thread(self, thread_id: str) -> None:
        self._threads.pop(thread_folder(thread_id), None)
