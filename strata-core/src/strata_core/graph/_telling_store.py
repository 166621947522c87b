"""The store of a run that is streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strata_core.ports import CheckpointStore
from strata_core.records import Checkpoint, Lease

if TYPE_CHECKING:
    from strata_core.graph._emitter import Emitter

__all__ = ["TellingStore"]


class TellingStore:
    """A store that tells which rows it has saved, and is the run's own store in all else."""

    __slots__ = ("_emitter", "_store")

    def __init__(self, store: CheckpointStore, emitter: Emitter) -> None:
        self._store = store
        self._emitter = emitter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def save(self, checkpoint: Checkpoint, **more: Any) -> int:
        """Save a row."""
        sequence = await self._store.save(checkpoint, **more)
        self._emitter.save(sequence, checkpoint.state)
        return sequence

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **more: Any) -> int:
        """Save a row behind the one that is expected."""
        sequence = await self._store.save_if_latest(checkpoint, expected, **more)
        self._emitter.save(sequence, checkpoint.state)
        return sequence

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **more: Any) -> int:
        """Save a row under a lease."""
        sequence = await self._store.save_under_lease(checkpoint, lease, **more)
        self._emitter.save(sequence, checkpoint.state)
        return sequence

    async def acquire_lease(self, thread_id: str, *, save: Checkpoint | None = None, **more: Any) -> Lease | None:
        """Take a lease, and save a row with it."""
        lease = await self._store.acquire_lease(thread_id, save=save, **more)
        if lease is not None and lease.saved is not None and save is not None:
            self._emitter.save(lease.saved, save.state)
        return lease
