"""The store that core puts around a row backend."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, Self, cast, final

from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError, UnsupportedError
from strata_core.options import Deltas, Offload, Setup
from strata_core.ports import ANY, AnyRevision
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
from strata_core.rows import Drop, RowBackend
from strata_core.store._closing import Closer
from strata_core.store._committing import Committer
from strata_core.store._leases import Leases, check_lease
from strata_core.store._link import Link
from strata_core.store._listing import Lister
from strata_core.store._pinning import Pinner
from strata_core.store._positions import position_of
from strata_core.store._purging import Purger
from strata_core.store._reading import Reader
from strata_core.store._saving import Saver

__all__ = ["RowStore"]

_DEFAULT_QUERY = ThreadQuery()


@final
class RowStore:
    """Serves every port on a row backend; the promises stand in `strata_core.ports`.

    Use it as an async context manager; `strata_core.open_store` gives one from a URL.  A store belongs to the event
    loop that opened it, and any number of tasks may use it at once.

    Args:
        backend: Keeps rows, heads and blobs.  The store opens and closes it.
        deltas: Store running checkpoints as differences; None stores each whole.
        offload: Store large values apart; None keeps them in their rows.  `blobs` must be a `BlobStore` or None here;
            URLs are for `open_store`.
        read_only: Refuse every write.
        setup: Whether opening may create or upgrade the storage.

    Raises:
        UnsupportedError: The backend lacks a capability that the options need.
    """

    def __init__(
        self,
        backend: RowBackend,
        *,
        deltas: Deltas | None = None,
        offload: Offload | None = None,
        read_only: bool = False,
        setup: Setup = Setup.AUTO,
    ) -> None:
        external = None if offload is None else offload.blobs
        if isinstance(external, str):
            raise InvalidInputError("offload.blobs", "must be a BlobStore here; URLs are for open_store")
        self._link = Link(backend, read_only=read_only, setup=setup)
        for needed, wanted in (
            (Capability.DELTAS, deltas is not None),
            (Capability.OFFLOAD, offload is not None),
            (Capability.OWN_BLOBS, offload is not None and external is None),
            (Capability.EXTERNAL_BLOBS, external is not None),
            (Capability.READ_ONLY, read_only),
        ):
            if wanted:
                self._link.require(needed)
        closer = Closer(self._link, external)
        pinner = None if external is None else Pinner(self._link, external, closer)
        threshold = None if offload is None else offload.threshold
        committer = Committer(self._link, closer, pinner)
        self._saver = Saver(committer, deltas, threshold)
        self._leases = Leases(self._link, self._saver, committer)
        self._reader = Reader(self._link, external)
        self._lister = Lister(self._link)
        self._purger = Purger(self._link, self._saver, closer)

    def __repr__(self) -> str:
        return f"<RowStore on {type(self._link.backend).__name__}>"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the backend declares."""
        return self._link.backend.capabilities

    @property
    def takes_text(self) -> bool:
        """Whether an `EncodedState` saves work: a state is stored as the text that it is."""
        return not self._saver.remembers

    async def __aenter__(self) -> Self:
        await self._link.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Refuse new calls, wait for those that were made, and let go of the storage.  Idempotent."""
        await self._link.close()

    async def setup(self) -> None:
        """Create or upgrade what the storage needs, in one idempotent step that many processes may run at once."""
        with self._link.writing:
            await self._link.backend.setup()

    # ------------------------------------------------------------------------------------------- CheckpointStore

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        with self._link.writing:
            return (await self._saver.save(checkpoint, write_id=write_id)).sequence

    async def save_if_latest(
        self,
        checkpoint: Checkpoint,
        expected: int | Revision | None,
        *,
        unleased: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        with self._link.writing:
            if isinstance(cast(object, expected), AnyRevision):
                raise InvalidInputError("expected", "must be a Revision, an int or None; to append to any, use save()")
            position = position_of(expected)
            return (await self._saver.save(checkpoint, position, write_id=write_id, free=unleased)).sequence

    async def save_under_lease(
        self,
        checkpoint: Checkpoint,
        lease: Lease,
        *,
        expected: int | Revision | Literal[AnyRevision.ANY] | None = ANY,
        release: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        with self._link.writing:
            check_lease(lease)
            if isinstance(checkpoint, Checkpoint) and checkpoint.thread_id != lease.thread_id:
                raise InvalidInputError("checkpoint.thread_id", f"must be the leased thread {lease.thread_id!r}")
            outcome = await self._saver.save(
                checkpoint,
                position_of(expected),
                write_id=write_id,
                token=lease.token,
                lease=Drop() if release else None,
            )
            return outcome.sequence

    async def load(self, thread_id: str, *, at: int | None = None) -> LogEntry | None:
        with self._link.reading:
            return await self._reader.load(thread_id, at)

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
        with self._link.writing:
            return await self._leases.acquire(thread_id, owner, ttl, save, expected, write_id)

    async def renew_lease(self, lease: Lease, *, ttl: timedelta) -> Lease:
        with self._link.writing:
            return await self._leases.renew(lease, ttl)

    async def release_lease(self, lease: Lease) -> None:
        with self._link.writing:
            await self._leases.release(lease)

    async def live_lease(self, thread_id: str) -> Lease | None:
        with self._link.reading:
            return await self._leases.live(thread_id)

    async def blob_references(self, thread_id: str) -> frozenset[str] | None:
        with self._link.reading:
            return await self._reader.blob_references(thread_id)

    # ------------------------------------------------------------------------------ CheckpointQuery, -Retention

    async def list_threads(self, query: ThreadQuery = _DEFAULT_QUERY, /) -> ThreadPage:
        self._link.require(Capability.QUERY)
        with self._link.reading:
            return await self._lister.page(query)

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        self._link.require(Capability.QUERY)
        with self._link.reading:
            return await self._reader.log(thread_id, start, limit)

    async def purge(
        self, older_than: datetime, *, states: Collection[ThreadState] = FINISHED, limit: int = 1000
    ) -> int:
        self._link.require(Capability.RETENTION)
        if Capability.QUERY not in self.capabilities:
            raise UnsupportedError(Capability.QUERY, "a purge lists threads, which this backend cannot")
        with self._link.writing:
            return await self._purger.purge(older_than, states, limit)
