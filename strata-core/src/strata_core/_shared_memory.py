"""Memory stores by URL: ``memory://`` is private, ``memory://name`` is shared by the process."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.errors import InvalidInputError
from strata_core.memory import MemoryBackend
from strata_core.options import Setup
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend
from strata_core.urls import redact

__all__ = ["SharedMemoryBackend", "memory_backend"]

_lock: Final = threading.Lock()
_shared: Final[dict[str, SharedMemoryBackend]] = {}


def memory_backend(url: str, clock: Clock) -> RowBackend:
    """Return the backend of a ``memory:`` URL: a new one without a name, else the one of that name.

    What has a name lives as long as the process, whoever closes it, and serves any number of event loops, one after the
    other or in several threads.  It keeps the clock it was first opened with; the system's clock, the default, joins
    any other.

    Raises:
        InvalidInputError: The URL has a query or fragment, or the name was opened with another clock.
    """
    if "?" in url or "#" in url:
        raise InvalidInputError("url", f"{redact(url)!r} has a query or fragment, and memory stores take none")
    name = unquote(url.partition(":")[2].removeprefix("//"))
    if not name:
        return MemoryBackend(clock)
    with _lock:
        backend = _shared.get(name)
        if backend is None:
            backend = _shared[name] = SharedMemoryBackend(clock)
    if clock is not backend.clock and clock is not SYSTEM_CLOCK:
        raise InvalidInputError("clock", f"must be the clock that {redact(url)!r} was first opened with")
    return backend


class SharedMemoryBackend(RowBackend):
    """A memory backend for several stores, also in several threads.

    Memory never suspends, so the lock is held for one primitive only, and never across an await that waits.

    Args:
        clock: Judges leases.
    """

    capabilities = MemoryBackend.capabilities
    batching = None

    def __init__(self, clock: Clock) -> None:
        self.clock: Final = clock
        self._backend: Final = MemoryBackend(clock)
        self._lock: Final = threading.Lock()

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        pass

    async def close(self) -> None:
        pass

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        with self._lock:
            return await self._backend.commit(batch)

    async def read_head(self, thread_id: str) -> Head | None:
        with self._lock:
            return await self._backend.read_head(thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        with self._lock:
            return await self._backend.read(thread_id, first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        with self._lock:
            return await self._backend.read_blobs(thread_id, digests)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        with self._lock:
            return await self._backend.list_heads(query)
