"""The target's side of a copy."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from strata_core.clock import Clock
from strata_core.errors import ConflictError, LeaseHeldError
from strata_core.ports import StorePorts
from strata_core.records import Checkpoint, Lease, LogEntry

__all__ = ["OWNER", "TargetWriter"]

OWNER: Final = "strata copy"
"""Whose leases they are."""


class TargetWriter:
    """Appends to the target's thread under a lease, which it takes with the first checkpoint and keeps alive."""

    def __init__(self, target: StorePorts, there: LogEntry | None, ttl: timedelta, clock: Clock) -> None:
        self._target = target
        self._expected = None if there is None else there.revision
        self._ttl = ttl
        self._clock = clock
        self._lease: Lease | None = None
        self._renew_at = 0.0

    async def write(self, entry: LogEntry) -> None:
        checkpoint = entry.checkpoint
        if self._lease is None:
            got = await self._take(checkpoint)
        else:
            await self._keep(self._lease)
            got = await self._target.save_under_lease(checkpoint, self._lease)
        if got != entry.sequence:
            raise ConflictError(checkpoint.thread_id, got, "was written to in the target while it was copied")

    async def _take(self, checkpoint: Checkpoint) -> int | None:
        thread_id = checkpoint.thread_id
        self._count()
        lease = await self._target.acquire_lease(
            thread_id, owner=OWNER, ttl=self._ttl, save=checkpoint, expected=self._expected
        )
        if lease is None:
            held = await self._target.live_lease(thread_id)
            latest = None if self._expected is None else self._expected.sequence
            raise LeaseHeldError(thread_id, latest, "somebody" if held is None else held.owner)
        self._lease = lease
        return lease.saved

    async def _keep(self, lease: Lease) -> None:
        if self._clock.monotonic() >= self._renew_at:
            self._count()
            self._lease = await self._target.renew_lease(lease, ttl=self._ttl)

    def _count(self) -> None:
        self._renew_at = self._clock.monotonic() + self._ttl.total_seconds() / 3

    async def close(self) -> None:
        if self._lease is not None:
            await self._target.release_lease(self._lease)
