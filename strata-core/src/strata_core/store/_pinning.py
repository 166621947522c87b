"""Putting external blobs before the row that refers to them.

A purge that runs between the two would take the blobs and let the row through.  So they are put only while the thread
is *pinned*: the commit depends on a row known by its write ID, or on a live lease.  Where there is neither, the head is
read, and a thread without one is reserved first.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from strata_core.codec._state import Value
from strata_core.ports import BlobStore
from strata_core.rows import (
    NOTHING,
    RESERVATION,
    Commit,
    Committed,
    Drop,
    Head,
    Refusal,
    Refused,
    Take,
    decide,
    new_write_id,
)
from strata_core.store._closing import Closer
from strata_core.store._holding import RESERVED_FOR, holding
from strata_core.store._link import Link
from strata_core.store._patience import Patience

__all__ = ["Pinner"]


class Pinner:
    """Sends commits whose blobs go to an external store."""

    def __init__(self, link: Link, external: BlobStore, closer: Closer) -> None:
        self._link = link
        self._external = external
        self._closer = closer

    async def send(self, commit: Commit, blobs: Mapping[str, Value]) -> Committed | Refused:
        """Put the blobs, then commit; the outcome is that of the commit.

        Nothing is put for a commit that would be refused, or before the head says that there may be external blobs.
        """
        commit.external = True
        patience = Patience(commit.thread_id)
        while True:
            head = await self._link.backend.read_head(commit.thread_id)
            verdict = decide(commit, head, 0 if head is None else head.now, lambda: 1)
            if isinstance(verdict, Refused) or verdict.repeated:
                return verdict
            if head is None or (head.sequence == NOTHING and not head.is_leased(head.now)):
                outcome = await self._send_reserved(commit, blobs)
                if outcome is not None:
                    return outcome
                await patience.wait()
            elif head.sequence == NOTHING and head.is_reserved and not commit.token:
                await patience.wait()
            else:
                outcome = await self._send_pinned(_pinned(commit, head), head, blobs)
                if isinstance(outcome, Committed):
                    return outcome
                # Refused for what was read, or for what the caller asked: the next look at the head tells which.

    async def _send_pinned(self, pinned: Commit, head: Head, blobs: Mapping[str, Value]) -> Committed | Refused:
        thread_id = pinned.thread_id
        if not head.external:
            announced = await self._link.submit(
                Commit(
                    thread_id, new_write_id(), pinned.after, pinned.after_id, pinned.token, pinned.free, external=True
                )
            )
            if isinstance(announced, Refused):
                return announced
        await self._put(thread_id, blobs)
        outcome = await self._link.submit(pinned)
        if isinstance(outcome, Refused) and (outcome.head is None or outcome.head.sequence == NOTHING):
            self._link.in_background(self._closer.sweep(thread_id))
        return outcome

    async def _send_reserved(self, commit: Commit, blobs: Mapping[str, Value]) -> Committed | Refused | None:
        """Reserve a thread without rows, put, commit; None when the reservation did not come about or did not last."""
        thread_id = commit.thread_id
        reserve = Commit(
            thread_id, new_write_id(), NOTHING, free=True, external=True, lease=Take(RESERVATION, RESERVED_FOR)
        )
        try:
            reserved = await self._link.submit(reserve)
        except BaseException:
            self._link.in_background(self._abandon(reserve))
            raise
        if isinstance(reserved, Refused):
            return reserved if reserved.why is Refusal.CLOSING else None
        token = reserved.token
        try:
            async with holding(self._link, thread_id, token):
                await self._put(thread_id, blobs)
            outcome = await self._link.submit(
                attrs.evolve(commit, token=token, free=False, lease=Drop() if commit.lease is None else commit.lease)
            )
        except BaseException:
            self._link.in_background(self._closer.abandon(thread_id, token))
            raise
        if isinstance(outcome, Refused):
            if outcome.why is Refusal.LOST:
                return None
            self._link.in_background(self._closer.abandon(thread_id, token))
        return outcome

    async def _abandon(self, reserve: Commit) -> None:
        """Give back a reservation whose answer nobody heard: asked for again, it names its token."""
        reserved = await self._link.submit(reserve)
        if isinstance(reserved, Committed):
            await self._closer.abandon(reserve.thread_id, reserved.token)

    async def _put(self, thread_id: str, blobs: Mapping[str, Value]) -> None:
        for digest, value in blobs.items():
            await self._external.put(thread_id, digest, value.blob())


def _pinned(commit: Commit, head: Head) -> Commit:
    """Return the commit as it depends on what a purge would change: a live lease, or the latest row."""
    if commit.token:
        return commit
    if head.sequence == NOTHING:
        return attrs.evolve(commit, token=head.token)  # under somebody's lease, as long as it stays theirs
    return attrs.evolve(commit, after=head.sequence, after_id=head.write_id)
