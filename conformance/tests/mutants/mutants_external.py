"""Separate blob stores that are used wrongly, one promise each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from mutant_kit import ForeignBlobs, Refusing, Wrapper, breaks

from strata_core.capabilities import Capability
from strata_core.clock import from_micros
from strata_core.errors import CorruptCheckpointError
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, Lease, LogEntry


@breaks(
    "external-1",
    also={
        "external-5": "one handle loads what another has put",
    },
)
class ReadsOnlyWhatItPut(ForeignBlobs):
    """Looks for a blob among those that this handle has put."""

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        self.__dict__.setdefault("mine", set()).add((thread_id, digest))
        await super().put(thread_id, digest, content)

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        is_mine = (thread_id, digest) in self.__dict__.setdefault("mine", set())
        return await super().get(thread_id, digest) if is_mine else None


@breaks("external-2")
class StepsBackFromAMissingBlob(Wrapper):
    """Loads the checkpoint before one whose blob is missing."""

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        try:
            return await self._store.load(thread_id, **options)
        except CorruptCheckpointError as error:
            if "doesn't have" not in str(error) or not error.sequence:
                raise
            return await self.load(thread_id, at=error.sequence - 1)


@breaks("external-3")
class TakesAFalseBlobForNoThread(Wrapper):
    """Loads nothing when a blob does not match its digest."""

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        try:
            return await self._store.load(thread_id, **options)
        except CorruptCheckpointError as error:
            if "does not match" not in str(error):
                raise
            return None


@breaks(
    "external-4",
    also={
        "external-5 external-8 external-9": "it ends with a purge that must leave no blob",
    },
)
class LeavesForeignBlobs(ForeignBlobs):
    """Purges threads, and leaves their blobs in the blob store."""

    async def delete_thread(self, thread_id: str) -> None:
        pass


@breaks(
    "external-5",
    also={
        "external-4": "a purged thread is saved again by the same handle",
    },
)
class NeverPutsABlobTwice(ForeignBlobs):
    """Takes a blob that it has put once for still there."""

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        put: set[tuple[str, str]] = self.__dict__.setdefault("done", set())
        if (thread_id, digest) not in put:
            await super().put(thread_id, digest, content)
            put.add((thread_id, digest))


@breaks("external-6")
class SendsSavesWithBlobsLater(Wrapper):
    """With a blob store, sends saves of large states after those of small ones."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        offload = self._options.get("offload")
        if offload is not None and offload.blobs is not None:
            checkpoint = self.taken(checkpoint)
            if len(json.dumps(checkpoint.frozen_state)) > offload.threshold:
                await asyncio.sleep(0)
        return await self._store.save(checkpoint, **options)


@breaks("external-7")
class ShowsItsReservations(Wrapper):
    """Shows the lease under which a save waits for the blob store."""

    async def live_lease(self, thread_id: str) -> Lease | None:
        live = await self._store.live_lease(thread_id)
        head = self._backend._heads.get(thread_id)
        if live is None and head is not None and head.is_leased(self.now()) and not head.closing:
            return Lease(thread_id, head.token, head.owner, from_micros(head.expires))
        return live


@breaks("external-8")
class NeverGivesAReservationBack(Wrapper):
    """Leaves a thread reserved for a save with blobs that was cancelled."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._store._link.in_background = Coroutine.close  # type: ignore[method-assign, assignment]  # drops the work


@breaks("external-9")
class LeavesAPurgeHalfwayWhenItIsCancelled(Wrapper):
    """Leaves a thread reserved for a purge that was cancelled."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._store._link.to_its_end = _awaited  # type: ignore[method-assign]  # stops with its caller


@breaks("external-10")
class TakesABlobStoreUndeclared(Refusing):
    """Does not declare external blobs, and opens with a blob store."""

    lacking = Capability.EXTERNAL_BLOBS


async def _awaited(work: Coroutine[Any, Any, Any]) -> Any:
    return await work
