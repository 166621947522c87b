"""What a run writes, and under which condition: one journal for each way of checkpointing."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, Generic, TypeVar

import attrs

from strata_core.errors import (
    ConflictError,
    InvalidInputError,
    LeaseLostError,
    StoreUnavailableError,
)
from strata_core.graph._keeper import LeaseKeeper
from strata_core.graph._plan import Plan
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._results import CancelReason
from strata_core.graph._stop import Stop
from strata_core.ports import ANY, CheckpointStore
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision, Lease, Revision

__all__ = ["Journal", "Position", "RefusedError", "SupersededError", "UnsavableStateError", "Writing", "open_journal"]

S = TypeVar("S")
T = TypeVar("T")

_log: Final = logging.getLogger("strata_core.graph")


class Writing(Enum):
    """Which row a write appends."""

    FIRST = "first"
    STEP = "step"
    LAST = "last"


class UnsavableStateError(Exception):
    """A state has no JSON form; nothing was written."""

    def __init__(self, cause: InvalidInputError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class SupersededError(Exception):
    """Another writer went on with the thread; nothing was written."""


class RefusedError(Exception):
    """The thread could not be taken: a live lease, or another row, was in the way."""


@attrs.define(eq=False)
class Position(Generic[S]):
    """Where a thread stands: where it stopped or last committed, where it goes on, and its state there."""

    suspended: str | None
    next: str | None
    state: S


@cache
def _host() -> str:
    return socket.gethostname() or "localhost"


def open_journal(
    plan: Plan[S], thread_id: str, store: CheckpointStore | None, metadata: Mapping[str, str], stop: Stop
) -> Journal[S]:
    """Return the journal of a run by its graph's policy."""
    if store is None:
        return Journal(plan, thread_id, metadata)
    if plan.checkpointing is CheckpointPolicy.EVERY_NODE:
        return EveryNodeJournal(plan, thread_id, metadata, store, stop)
    return BoundariesJournal(plan, thread_id, metadata, store)


class Journal(Generic[S]):
    """The journal of a run without a store, which keeps nothing, and the base of the others.

    Attributes:
        every_node: Whether `commit` writes.
        decision: The human decision that every row carries.
        anchor: Names the row that the thread stood at when it came here; with `visit_key`, this names visits.
        step: How many nodes have committed since that row.
        carried: The anchor and step of a thread that failed or was cancelled, set before it is resumed: they go on
            naming its visit until a node commits.
    """

    every_node = False

    def __init__(self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str]) -> None:
        self._plan = plan
        self._thread_id = thread_id
        self._metadata = metadata
        self.decision: HumanDecision | None = None
        self.anchor = os.urandom(8) if plan.uses_context else b""
        self.step = 0
        self.carried: tuple[bytes, int] | None = None

    async def start(self, at: Position[S]) -> None:
        """Begin a run of a new execution."""

    async def commit(self, at: Position[S]) -> None:
        """Note that a node has committed and another one follows."""

    async def halt(self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None) -> None:
        """Note where the run stops, and let go of the thread.

        Raises:
            UnsavableStateError: The state has no JSON form.
            SupersededError: Another writer went on with the thread.
        """

    async def complete(self, at: Position[S]) -> None:
        """Note that the run completed."""

    async def settle(self) -> Writing | None:
        """Finish a write that a cancellation interrupted, and tell which row that was; None when there was none.

        Repeated with its write ID, it is done exactly once, whatever had become of it.

        Raises:
            ConflictError: Another writer was first.
            RefusedError: Another writer has the thread.
        """
        return None

    async def overtaken(self) -> Checkpoint | None:
        """Return what another writer has made the thread's latest checkpoint."""
        return None

    async def close(self) -> None:
        """Stop whatever works in the background."""


class _StoreJournal(Journal[S]):
    """What journals with a store share."""

    def __init__(self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], store: CheckpointStore) -> None:
        super().__init__(plan, thread_id, metadata)
        self._store = store
        self._pending: tuple[Callable[[], Awaitable[None]], Writing] | None = None

    def _checkpoint(
        self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None
    ) -> Checkpoint:
        plan = self._plan
        try:
            content = plan.codec.dump(at.state)
        except InvalidInputError as error:
            raise UnsavableStateError(error) from error
        metadata = self._metadata
        return Checkpoint(
            self._thread_id,
            status,
            content,
            plan.clock.now(),
            at.suspended,
            at.next,
            {**metadata, **extra} if extra else metadata,
            None,
            self.decision,
            None,
            plan.identity,
        )

    async def _write(self, write: Callable[[], Awaitable[None]], what: Writing) -> None:
        """Do a write, and remember it until its outcome is known."""
        self._pending = write, what
        try:
            try:
                await write()
            except StoreUnavailableError as error:
                if not error.maybe_written:
                    raise
                await write()
        except asyncio.CancelledError:
            raise
        except InvalidInputError as error:
            self._pending = None
            raise UnsavableStateError(error) from error
        except BaseException:
            self._pending = None
            raise
        self._pending = None

    async def settle(self) -> Writing | None:
        pending, self._pending = self._pending, None
        if pending is None:
            return None
        write, what = pending
        await write()
        return what

    async def overtaken(self) -> Checkpoint | None:
        entry = await self._store.load(self._thread_id)
        return None if entry is None else entry.checkpoint


class BoundariesJournal(_StoreJournal[S]):
    """Writes where a run stops.

    The stop of a resumed thread is saved only if the row of the resume is still the latest, so that nothing ever
    follows what another writer has written meanwhile, such as its end.
    """

    def __init__(self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], store: CheckpointStore) -> None:
        super().__init__(plan, thread_id, metadata, store)
        self._revision: Revision | None = None

    async def stamp(self, checkpoint: Checkpoint, expected: Revision) -> None:
        """Append the copy of a checkpoint that says that a resume began from it.

        Raises:
            RefusedError: Another writer was first.
        """
        write_id = os.urandom(8)

        async def write() -> None:
            sequence = await self._store.save_if_latest(checkpoint, expected, unleased=True, write_id=write_id)
            self._revision = Revision(sequence, write_id)
            self.anchor, self.step = self.carried or (write_id, 0)

        try:
            await self._write(write, Writing.FIRST)
        except ConflictError:
            raise RefusedError from None

    async def halt(self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None) -> None:
        checkpoint = self._checkpoint(status, at, extra)
        write_id = os.urandom(8)
        revision = self._revision

        async def write() -> None:
            if revision is None:
                await self._store.save(checkpoint, write_id=write_id)
            else:
                await self._store.save_if_latest(checkpoint, revision, write_id=write_id)

        try:
            await self._write(write, Writing.LAST)
        except ConflictError:
            raise SupersededError from None


class EveryNodeJournal(_StoreJournal[S]):
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
        await self.take(CheckpointStatus.RUNNING, at, ANY)

    async def take(
        self,
        status: CheckpointStatus,
        at: Position[S],
        expected: Revision | Any,
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
                raise RefusedError
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
