"""Taking, renewing and giving back leases."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import Literal

import attrs

from strata_core._validation import check_owner, check_thread_id, check_ttl, check_write_id
from strata_core.clock import from_micros
from strata_core.errors import InvalidInputError, LeaseHeldError, LeaseLostError
from strata_core.ports import AnyRevision
from strata_core.records import Checkpoint, Lease, Revision
from strata_core.rows import Commit, Committed, Drop, Extend, Take, new_write_id
from strata_core.store._committing import Committer
from strata_core.store._link import Link, refusal_error
from strata_core.store._positions import position_of
from strata_core.store._saving import Saver

__all__ = ["Leases", "check_lease"]


def check_lease(lease: object) -> Lease:
    """Return a lease as it is, or say that it is none."""
    if not isinstance(lease, Lease):
        raise InvalidInputError("lease", f"must be a Lease, not {type(lease).__name__}")
    if type(lease.token) is not int or lease.token < 1:
        raise InvalidInputError("lease.token", "must be a positive int")
    check_thread_id(lease.thread_id, "lease.thread_id")
    return lease


class Leases:
    """The lease calls of the port, as commits."""

    def __init__(self, link: Link, saver: Saver, committer: Committer) -> None:
        self._link = link
        self._saver = saver
        self._committer = committer

    async def acquire(
        self,
        thread_id: str,
        owner: str,
        ttl: timedelta,
        save: Checkpoint | None,
        expected: int | Revision | Literal[AnyRevision.ANY] | None,
        write_id: bytes | None,
    ) -> Lease | None:
        check_thread_id(thread_id)
        take = Take(check_owner(owner), check_ttl(ttl))
        position = position_of(expected)
        if save is None:
            write_id = new_write_id() if write_id is None else check_write_id(write_id)
            commit = Commit(thread_id, write_id, *position, free=True, lease=take)
            outcome = await self._take(self._committer.commit(commit))
        elif isinstance(save, Checkpoint) and save.thread_id != thread_id:
            raise InvalidInputError("save.thread_id", f"must be the leased thread {thread_id!r}")
        else:
            outcome = await self._take(self._saver.save(save, position, write_id=write_id, free=True, lease=take))
        if outcome is None:
            return None
        if not outcome.token:
            raise LeaseLostError(thread_id, outcome.sequence, "is not held any more by the lease of the first attempt")
        saved = None if save is None else outcome.sequence
        return Lease(thread_id, outcome.token, owner, from_micros(outcome.expires), saved)

    @staticmethod
    async def _take(taking: Awaitable[Committed]) -> Committed | None:
        try:
            return await taking
        except LeaseHeldError:
            return None

    async def renew(self, lease: Lease, ttl: timedelta) -> Lease:
        check_lease(lease)
        commit = Commit(lease.thread_id, new_write_id(), token=lease.token, lease=Extend(check_ttl(ttl)))
        outcome = await self._link.submit(commit)
        if isinstance(outcome, Committed):
            return attrs.evolve(lease, expires_at=from_micros(outcome.expires))
        raise refusal_error(outcome, lease.thread_id)

    async def release(self, lease: Lease) -> None:
        check_lease(lease)
        # Refused means that it is not ours any more: there is nothing to give back.
        await self._link.submit(Commit(lease.thread_id, new_write_id(), token=lease.token, lease=Drop()))

    async def live(self, thread_id: str) -> Lease | None:
        head = await self._link.backend.read_head(check_thread_id(thread_id))
        if head is None or not head.is_leased(head.now) or head.closing or head.is_reserved:
            return None
        return Lease(thread_id, head.token, head.owner, from_micros(head.expires))
