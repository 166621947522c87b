"""The journal that writes after every node, under a lease."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Awaitable, Coroutine, Mapping
from functools import cache
from typing import Any, Final, TypeVar

from strata_core.errors import ConflictError, LeaseLostError
from strata_core.graph._journal import Position, RefusedError, StoreJournal, SupersededError, Writing
from strata_core.graph._keeper import LeaseKeeper
from strata_core.graph._plan import Plan
from strata_core.graph._results import CancelReason
from strata_core.graph._stop import Stop
from strata_core.ports import ANY, AnyRevision, CheckpointStore
from strata_core.records import CheckpointStatus, Lease, Revision
from strata_core.rows import new_write_id

__all__ = ["EveryNodeJournal"]

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")


@cache
def _host() -> str:
    return socket.gethostname() or "localhost"


class EveryNodeJournal(StoreJournal[S]):
    """Writes a row before the first node and after every node, under the thread's lease.

    The lease is taken in the same step as the first row and given back in the same step as the last one.  Every row is
    saved only under the lease, and only after the row before it.
    """

    every_node = True
    records_completion = True

    def __init__(
        self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], store: CheckpointStore, stop: Stop
    ) -> None:
        super().__init__(plan, thread_id, metadata, store)
        self._stop = stop
        self._keeper: LeaseKeeper | None = None
        self._sent = 0.0

    @property
    def owner(self) -> str:
        """Under which name it takes leases."""
        return self._plan.owner or f"{_host()}:{os.getpid()}"

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
        checkpoint = self.record(status, at, extra)
        write_id = new_write_id()

        def write() -> Awaitable[Lease | None]:
            return self._store.acquire_lease(
                self._thread_id,
                owner=self.owner,
                ttl=plan.lease_ttl,
                save=checkpoint,
                expected=expected,
                write_id=write_id,
            )

        self._sent = plan.clock.monotonic()
        try:
            await self._write(Writing.FIRST, write_id, write)
        except LeaseLostError:
            self._stop.why_lost = lambda: "it was lost before the store's answer to taking it had come"
            self._stop.fire(CancelReason.LEASE_LOST)
            raise SupersededError from None
        except ConflictError:
            raise RefusedError from None
        await self._begin_keeping()

    async def settle(self) -> Writing | None:
        what = await super().settle()
        if what is Writing.FIRST:
            await self._begin_keeping()
        return what

    async def _begin_keeping(self) -> None:
        keeper = self._keeper
        if keeper is not None:
            await keeper.start()
            if keeper.is_lost:
                raise SupersededError

    def _written(self, what: Writing, write_id: bytes, answer: Any) -> None:
        if what is Writing.FIRST:
            if answer is None or answer.saved is None:
                raise RefusedError(held=True)
            self._revision = Revision(answer.saved, write_id)
            self.trail.follow(*(self.carried or (write_id, 0)))
            self._hold(answer)
        else:
            self._revision = Revision(answer, write_id)
            self.trail.follow(write_id, 0)

    def _hold(self, lease: Lease) -> None:
        self._keeper = LeaseKeeper(
            self._store,
            lease,
            self._plan.lease_ttl,
            self._sent,
            self._plan.clock,
            lambda: self._stop.fire(CancelReason.LEASE_LOST),
        )
        # A process that was frozen must not begin the next node before the loop has told that the lease is lost.
        self._stop.is_overdue = self._keeper.is_overdue
        self._stop.why_lost = self._keeper.why_lost

    def commit(self, at: Position[S]) -> Coroutine[Any, Any, None]:
        return self._append(CheckpointStatus.RUNNING, at, None, Writing.STEP)

    def halt(
        self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None
    ) -> Coroutine[Any, Any, None]:
        return self._append(status, at, extra, Writing.LAST)

    async def _append(
        self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None, what: Writing
    ) -> None:
        checkpoint = self.record(status, at, extra)
        keeper = self._keeper
        if keeper is None or not (keeper.is_fresh() or await keeper.ensure()):
            raise SupersededError
        release = what is Writing.LAST
        if release:
            await keeper.close()  # a renewal after the release would look as if the lease had been lost
        store, lease, expected, write_id = self._store, keeper.lease, self._revision, new_write_id()

        def write() -> Awaitable[int]:
            return store.save_under_lease(checkpoint, lease, expected=expected, release=release, write_id=write_id)

        try:
            await self._write(what, write_id, write)
        except ConflictError as error:
            keeper.was_refused(by_lease=isinstance(error, LeaseLostError))
            self._stop.fire(CancelReason.LEASE_LOST)
            if not isinstance(error, LeaseLostError):
                _logger.warning("thread %r was written by somebody without its lease", self._thread_id)
                await self._store.release_lease(keeper.lease)
            raise SupersededError from None

    async def release(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()
            await self._store.release_lease(self._keeper.lease)

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()
