"""The journal that writes after every node, under a lease."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from functools import cache
from typing import Final, TypeVar

from strata_core.errors import ConflictError, LeaseLostError
from strata_core.graph._journal import Position, RefusedError, StoreJournal, SupersededError, Writing
from strata_core.graph._keeper import LeaseKeeper
from strata_core.graph._plan import Plan
from strata_core.graph._results import CancelReason
from strata_core.graph._stop import Stop
from strata_core.ports import ANY, AnyRevision, CheckpointStore
from strata_core.records import Checkpoint, CheckpointStatus, Lease, Revision

__all__ = ["EveryNodeJournal"]

S = TypeVar("S")

_log: Final = logging.getLogger("strata_core.graph")


@cache
def _host() -> str:
    return socket.gethostname() or "localhost"


class EveryNodeJournal(StoreJournal[S]):
    """Writes a row before the first node and after every node, under the thread's lease.

    The lease is taken in the same step as the first row and given back in the same step as the last one.  Every row is
    saved only under the lease, and only after the row before it.
    """

    every_node = True

    def __init__(
        self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], store: CheckpointStore, stop: Stop
    ) -> None:
        super().__init__(plan, thread_id, metadata, store)
        self._stop = stop
        self._keeper: LeaseKeeper | None = None
        self._revision: Revision | None = None

    async def start(self, at: Position[S]) -> None:
        await self.take(CheckpointStatus.RUNNING, at, None if self.fresh else ANY)

    async def take(
        self,
        status: CheckpointStatus,
        at: Position[S],
        expected: Revision | AnyRevision | None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """Take the lease together with the first row.

        Raises:
            RefusedError: Another writer has the thread, or was first.
            SupersededError: The lease was taken, and lost before that was known.
            UnsavableStateError: The state has no JSON form.
        """
        plan = self._plan
        checkpoint = self._checkpoint(status, at, extra)
        write_id = os.urandom(8)
        owner = plan.owner or f"{_host()}:{os.getpid()}"
        sent = plan.clock.monotonic()

        async def write() -> None:
            lease = await self._store.acquire_lease(
                self._thread_id, owner=owner, ttl=plan.lease_ttl, save=checkpoint, expected=expected, write_id=write_id
            )
            if lease is None or lease.saved is None:
                raise RefusedError(held=True)
            self._revision = Revision(lease.saved, write_id)
            self.anchor, self.step = self.carried or (write_id, 0)
            self._hold(lease, sent)

        try:
            await self._write(write, Writing.FIRST)
        except LeaseLostError:
            self._stop.fire(CancelReason.LEASE_LOST)
            raise SupersededError from None
        except ConflictError:
            raise RefusedError from None

    def _hold(self, lease: Lease, sent: float) -> None:
        self._keeper = LeaseKeeper(
            self._store,
            lease,
            self._plan.lease_ttl,
            sent,
            self._plan.clock,
            lambda: self._stop.fire(CancelReason.LEASE_LOST),
        )

    async def commit(self, at: Position[S]) -> None:
        await self._append(self._checkpoint(CheckpointStatus.RUNNING, at), release=False)

    async def halt(self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None) -> None:
        await self._append(self._checkpoint(status, at, extra), release=True)

    async def complete(self, at: Position[S]) -> None:
        await self._append(self._checkpoint(CheckpointStatus.COMPLETED, at), release=True)

    async def _append(self, checkpoint: Checkpoint, *, release: bool) -> None:
        keeper = self._keeper
        if keeper is None or not await keeper.ensure():
            raise SupersededError
        if release:
            await keeper.close()  # a renewal after the release would look as if the lease had been lost
        write_id = os.urandom(8)
        revision = self._revision

        async def write() -> None:
            sequence = await self._store.save_under_lease(
                checkpoint, keeper.lease, expected=revision, release=release, write_id=write_id
            )
            self._revision = Revision(sequence, write_id)
            self.anchor, self.step = write_id, 0

        try:
            await self._write(write, Writing.LAST if release else Writing.STEP)
        except ConflictError as error:
            self._stop.fire(CancelReason.LEASE_LOST)
            if not isinstance(error, LeaseLostError):
                _log.warning("thread %r was written by somebody without its lease", self._thread_id)
                await self._store.release_lease(keeper.lease)
            raise SupersededError from None

    async def release(self) -> None:
        """Give the lease back without a row."""
        if self._keeper is not None:
            await self._store.release_lease(self._keeper.lease)

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()
