"""Opening and closing that go wrong, one promise each."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from mutant_kit import Refusing, Wrapper, breaks

from strata_core.capabilities import Capability
from strata_core.errors import (
    ReadOnlyError,
    StoreClosedError,
    UsageError,
)
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, Lease, LogEntry


@breaks("open-1")
class AnswersAfterItWasClosed(Wrapper):
    """Says that nobody holds a thread, when it is closed."""

    async def live_lease(self, thread_id: str) -> Lease | None:
        try:
            return await self._store.live_lease(thread_id)
        except StoreClosedError:
            if not self._was_opened:
                raise
            return None


@breaks("open-2")
class AnswersBeforeItWasOpened(Wrapper):
    """Says that nobody holds a thread, when it is not open yet."""

    async def live_lease(self, thread_id: str) -> Lease | None:
        try:
            return await self._store.live_lease(thread_id)
        except StoreClosedError:
            if self._was_opened:
                raise
            return None


@breaks("open-3")
class SwallowsWhatTheBodyRaises(Wrapper):
    """Leaves its context as if nothing had happened."""

    async def __aexit__(self, *error: object) -> bool:
        await self._store.close()
        return True


@breaks("open-4")
class ClosesTheStorageForAll(Wrapper):
    """Lets go of what all handles share."""

    async def __aenter__(self) -> Self:
        vars(self._backend).setdefault("handles", set()).add(id(self))
        return await super().__aenter__()

    async def __aexit__(self, *error: object) -> None:
        vars(self._backend)["handles"].clear()
        await self._store.close()

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        entry = await self._store.load(thread_id, **options)
        if id(self) not in vars(self._backend)["handles"]:
            raise StoreClosedError("the connection was closed")
        return entry


@breaks(
    "open-5",
    also={
        "save-7": "the save waits a moment, in which the state is changed",
    },
)
class DropsWhatIsUnderWayWhenItCloses(Wrapper):
    """Answers a save that is under way while it closes, without making it."""

    _is_closing = False

    async def __aexit__(self, *error: object) -> None:
        self._is_closing = True
        for _ in range(3):
            await asyncio.sleep(0)
        self._is_closing = False
        await self._store.close()

    close = __aexit__

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        await asyncio.sleep(0)
        return 0 if self._is_closing else await self._store.save(checkpoint, **options)


@breaks("open-6")
class AnswersInAnyLoop(Wrapper):
    """Says that nobody holds a thread, in whatever event loop."""

    async def live_lease(self, thread_id: str) -> Lease | None:
        try:
            return await self._store.live_lease(thread_id)
        except StoreClosedError:
            raise
        except UsageError:
            return None


@breaks("open-7")
class DeclaresAListOfTexts(Wrapper):
    """Declares its capabilities as a set that can be changed."""

    @property
    def capabilities(self) -> Any:
        return set(self._store.capabilities)


@breaks("readonly-1")
class ReleasesWhenReadOnly(Wrapper):
    """Finds nothing to do in a release when it was opened read-only."""

    async def release_lease(self, lease: Lease) -> None:
        try:
            await self._store.release_lease(lease)
        except ReadOnlyError:
            return


@breaks("readonly-2")
class ReadsACopyWhenReadOnly(Wrapper):
    """Reads what was there when it was opened read-only."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        self._original = backend
        if options.get("read_only"):
            backend = type(backend)(backend._clock)
        super().__init__(backend, **options)

    async def __aenter__(self) -> Self:
        if self._original is not self._backend:
            self._backend._heads = dict(self._original._heads)
            self._backend._rows = {thread: list(rows) for thread, rows in self._original._rows.items()}
            self._backend._blobs = {thread: dict(blobs) for thread, blobs in self._original._blobs.items()}
        return await super().__aenter__()


@breaks("readonly-3")
class OpensReadOnlyUndeclared(Refusing):
    """Does not declare read-only opening, and opens so."""

    lacking = Capability.READ_ONLY
