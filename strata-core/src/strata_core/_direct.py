"""A whole store of a plugin, served like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, Literal, final

from strata_core.capabilities import Capability
from strata_core.errors import ReadOnlyError, StoreClosedError, UnsupportedError, UsageError
from strata_core.ports import ANY, AnyRevision, CheckpointQuery, CheckpointRetention, CheckpointStore
from strata_core.records import (
    FINISHED,
    Checkpoint,
    Lease,
    LogEntry,
    LogPage,
    Revision,
    ThreadPage,
    ThreadQuery,
    ThreadState,
)

__all__ = ["DirectStore"]

_DEFAULT_QUERY: Final = ThreadQuery()


@final
class DirectStore:
    """Puts the ports of a direct store together; one that nobody serves says so.

    Args:
        name: The store's name, for errors.
        store: The open store.
        query: Its query; None for none.
        retention: Its retention; None for none.
        read_only: Refuse every write.
    """

    def __init__(
        self,
        name: str,
        store: CheckpointStore,
        query: CheckpointQuery | None,
        retention: CheckpointRetention | None,
        *,
        read_only: bool,
    ) -> None:
        self._name = name
        self._store = store
        self._query = query
        self._retention = retention
        self._read_only = read_only
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def __repr__(self) -> str:
        return f"<store {self._name!r} on {type(self._store).__name__}>"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the store declares, with exactly those of query and retention that somebody serves."""
        served = set(self._store.capabilities) - {Capability.QUERY, Capability.RETENTION}
        if self._query is not None:
            served.add(Capability.QUERY)
        if self._retention is not None:
            served.add(Capability.RETENTION)
        return frozenset(served)

    async def close(self) -> None:
        """Refuse every further call; what was opened is closed by whoever opened it."""
        self._closed = True

    async def setup(self) -> None:
        store = self._writable()
        prepare = getattr(store, "setup", None)
        if prepare is not None:
            await prepare()

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        return await self._writable().save(checkpoint, write_id=write_id)

    async def save_if_latest(
        self,
        checkpoint: Checkpoint,
        expected: int | Revision | None,
        *,
        unleased: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        return await self._writable().save_if_latest(checkpoint, expected, unleased=unleased, write_id=write_id)

    async def save_under_lease(
        self,
        checkpoint: Checkpoint,
        lease: Lease,
        *,
        expected: int | Revision | Literal[AnyRevision.ANY] | None = ANY,
        release: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        return await self._writable().save_under_lease(
            checkpoint, lease, expected=expected, release=release, write_id=write_id
        )

    async def load(self, thread_id: str, *, at: int | None = None) -> LogEntry | None:
        return await self._readable().load(thread_id, at=at)

    async def acquire_lease(
        self,
        thread_id: str,
        *,
        owner: str,
        ttl: timedelta,
        save: Checkpoint | None = None,
        expected: int | Revision | Literal[AnyRevision.ANY] | None = ANY,
        write_id: bytes | None = None,
    ) -> Lease | None:
        return await self._writable().acquire_lease(
            thread_id, owner=owner, ttl=ttl, save=save, expected=expected, write_id=write_id
        )

    async def renew_lease(self, lease: Lease, *, ttl: timedelta) -> Lease:
        return await self._writable().renew_lease(lease, ttl=ttl)

    async def release_lease(self, lease: Lease) -> None:
        await self._writable().release_lease(lease)

    async def live_lease(self, thread_id: str) -> Lease | None:
        return await self._readable().live_lease(thread_id)

    async def list_threads(self, query: ThreadQuery = _DEFAULT_QUERY, /) -> ThreadPage:
        self._readable()
        if self._query is None:
            raise self._unsupported(Capability.QUERY, "list threads")
        return await self._query.list_threads(query)

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        self._readable()
        if self._query is None:
            raise self._unsupported(Capability.QUERY, "read logs")
        return await self._query.get_log(thread_id, start=start, limit=limit)

    async def purge(
        self, older_than: datetime, *, states: Collection[ThreadState] = FINISHED, limit: int = 1000
    ) -> int:
        if self._retention is None:
            self._readable()
            raise self._unsupported(Capability.RETENTION, "purge")
        self._writable()
        return await self._retention.purge(older_than, states=states, limit=limit)

    def _readable(self) -> CheckpointStore:
        if self._closed:
            raise StoreClosedError("the store is closed")
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError("the store belongs to the event loop that opened it; open another one here")
        return self._store

    def _writable(self) -> CheckpointStore:
        store = self._readable()
        if self._read_only:
            raise ReadOnlyError("the store was opened read-only")
        return store

    def _unsupported(self, capability: Capability, verb: str) -> UnsupportedError:
        return UnsupportedError(
            capability, f"{self._name!r} stores do not {verb}: no plugin serves {capability.value!r} for them"
        )
