"""Blob stores that go wrong, one promise each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Self

import attrs
from mutant_kit import Blobs, breaks

from strata_core.blobs import thread_folder
from strata_core.clock import SYSTEM_CLOCK
from strata_core.ports import StoredBlob


@breaks("blob-1")
class TranslatesNewlines(Blobs):
    """Reads and writes as if blobs were text."""

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        content = await super().get(thread_id, digest)
        return None if content is None else content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


@breaks(
    "blob-2",
    also={
        "blob-5": "what was deleted is asked for again",
        "blob-6": "each thread is asked for the blobs of the others",
        "blob-7": "what was refused is asked for again",
        "blob-8": "a cancelled put is told by None",
    },
)
class ReturnsNothingAsEmpty(Blobs):
    """Returns an empty blob where there is none."""

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        return await super().get(thread_id, digest) or b""


@breaks("blob-3")
class ForgetsWhatItHeld(Blobs):
    """Keeps blobs as long as somebody has it open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._threads.clear()


@breaks("blob-4")
class PutsByDeletingFirst(Blobs):
    """Takes a blob away before it puts it again."""

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        await super().put(thread_id, digest, content)
        blobs = self._threads[thread_folder(thread_id)]
        name = next(reversed(blobs)) if len(blobs) == 1 else digest.removeprefix("sha256:")
        put = blobs.pop(name, (content, SYSTEM_CLOCK.now()))
        try:
            await asyncio.sleep(0)
        finally:
            blobs[name] = put


@breaks("blob-5")
class CannotDeleteNothing(Blobs):
    """Fails to delete the blobs of a thread that has none."""

    async def delete_thread(self, thread_id: str) -> None:
        if len(self._threads) and thread_folder(thread_id) not in self._threads:
            raise KeyError(thread_id)
        await super().delete_thread(thread_id)


@breaks(
    "blob-6",
    also={
        "blob-5": "the thread next to the deleted one differs in case alone",
        "blob-7": "an ID that is no text has no lower case",
        "blob-9": "blobs of IDs that differ in case alone are listed as those of one thread",
    },
)
class FoldsIds(Blobs):
    """Knows threads as a case-insensitive file system does."""

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        await super().put(_folded(thread_id), digest, content)

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        return await super().get(_folded(thread_id), digest)

    async def delete_thread(self, thread_id: str) -> None:
        await super().delete_thread(_folded(thread_id))


def _folded(thread_id: Any) -> Any:
    return thread_id.lower() if isinstance(thread_id, str) else thread_id


@breaks("blob-7")
class TakesDigestsInCapitals(Blobs):
    """Takes a digest that is spelled with capitals."""

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        return await super().get(thread_id, digest.lower() if isinstance(digest, str) else digest)


@breaks("blob-8")
class LeavesHalfABlob(Blobs):
    """Leaves half a blob behind when a put is cancelled."""

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await super().put(thread_id, digest, content[: len(content) // 2])
            raise
        await super().put(thread_id, digest, content)


@breaks("blob-9")
class ListsWhatWasDeleted(Blobs):
    """Goes on listing the blobs of a thread that was deleted."""

    gone: ClassVar[list[StoredBlob]] = []

    async def delete_thread(self, thread_id: str) -> None:
        kept = [blob async for blob in super().list_blobs()]
        await super().delete_thread(thread_id)
        self.gone[:] = [blob for blob in kept if blob.folder == thread_folder(thread_id)]

    async def list_blobs(self) -> AsyncIterator[StoredBlob]:
        async for blob in super().list_blobs():
            yield blob
        for blob in self.gone:
            yield blob


@breaks("blob-9")
class ListsByDigest(Blobs):
    """Lists blobs in the order of their digests, so that those of a thread lie apart."""

    async def list_blobs(self) -> AsyncIterator[StoredBlob]:
        found = [blob async for blob in super().list_blobs()]
        for blob in sorted(found, key=lambda blob: blob.digest):
            yield blob


@breaks("blob-9")
class ListsTimesWithoutAZone(Blobs):
    """Tells the local time of a machine, and not where that is."""

    async def list_blobs(self) -> AsyncIterator[StoredBlob]:
        async for blob in super().list_blobs():
            yield attrs.evolve(blob, stored_at=blob.stored_at.replace(tzinfo=None))
