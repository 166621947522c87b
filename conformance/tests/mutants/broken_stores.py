"""Whole stores that break one promise each, on purpose, written from CONTRACT.md."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import attrs

from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, Lease, LogEntry, Revision, ThreadPage, ThreadQuery
from strata_core.store import RowStore


class Wrapper:
    """Passes everything on to a good store."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        self._store = RowStore(backend, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def __aenter__(self) -> Self:
        await self._store.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._store.close()


class ReadsTheStateLate(Wrapper):
    """Begins a save with a wait, and stores what the state has become by then."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        await asyncio.sleep(0)
        return await self._store.save(checkpoint, **options)


class SharesWhatItLoads(Wrapper):
    """Returns the same objects to everybody."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        super().__init__(backend, **options)
        self._loaded: dict[tuple[str, Revision], LogEntry] = {}

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        entry = await self._store.load(thread_id, **options)
        if entry is None:
            return None
        return self._loaded.setdefault((thread_id, entry.revision), entry)


class CoercesThreadIds(Wrapper):
    """Takes whatever it is given for text."""

    async def load(self, thread_id: Any, **options: Any) -> LogEntry | None:
        return await self._store.load(str(thread_id), **options)


class DropsTheDecision(Wrapper):
    """Saves a checkpoint without the decision of a person."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        if isinstance(checkpoint, Checkpoint):
            checkpoint = attrs.evolve(checkpoint, decision=None)
        return await self._store.save(checkpoint, **options)


class IgnoresTheGraphVersion(Wrapper):
    """Leaves out a filter that it does not know."""

    async def list_threads(self, query: ThreadQuery = ThreadQuery()) -> ThreadPage:  # noqa: B008  # frozen
        if isinstance(query, ThreadQuery) and query.graph_version in ("1", "2"):
            query = attrs.evolve(query, graph_version=None)
        return await self._store.list_threads(query)


class NeverReleasesWithASave(Wrapper):
    """Saves under the lease, and keeps it whatever was asked for."""

    async def save_under_lease(self, checkpoint: Checkpoint, lease: Lease, **options: Any) -> int:
        options.pop("release", None)
        return await self._store.save_under_lease(checkpoint, lease, **options)
