"""Erasing a thread, in steps that anybody can take over halfway.

Without external blobs it is one commit.  With them: one commit erases the rows and leaves the head held as *closing*;
then the external blobs go; then the head.  A closing head refuses every other write, so nothing new can refer to a blob
that is about to go, and nothing reachable is ever half deleted.
"""

from __future__ import annotations

from typing import Final

from strata_core.errors import StoreBusyError
from strata_core.ports import BlobStore
from strata_core.rows import ANY, NOTHING, Commit, Committed, Drop, Head, Take, new_write_id
from strata_core.store._holding import RESERVED_FOR, holding
from strata_core.store._link import Link
from strata_core.store._patience import Patience

__all__ = ["Closer"]

_OWNER: Final = "strata: purge"


class Closer:
    """Erases threads together with their external blobs."""

    def __init__(self, link: Link, external: BlobStore | None) -> None:
        self._link = link
        self._external = external

    def can_erase(self, head: Head) -> bool:
        """Tell whether everything of the thread can be reached from here."""
        return self._external is not None or not head.external

    async def erase(self, head: Head) -> bool:
        """Erase the thread if `head` is still its latest state and no live lease holds it; tell whether it went."""
        closing = self._take() if self._external is not None else None
        commit = Commit(
            head.thread_id, new_write_id(), head.sequence, head.write_id, free=True, lease=closing, erase=True
        )
        return await self._do(commit)

    async def take_over(self, head: Head) -> bool:
        """Finish what a killed purge, or a first save that never came to its row, left of a thread without rows."""
        if not self.can_erase(head):
            return False
        return await self._do(Commit(head.thread_id, new_write_id(), NOTHING, free=True, lease=self._take()))

    async def _do(self, commit: Commit) -> bool:
        if self._external is None:
            return await self._commit_and_finish(commit)
        # Left halfway by a cancellation, the thread would be in everybody's way until the reservation is over.
        return await self._link.to_its_end(self._commit_and_finish(commit))

    async def _commit_and_finish(self, commit: Commit) -> bool:
        outcome = await self._link.submit(commit)
        if not isinstance(outcome, Committed):
            return outcome.maybe_done and outcome.head is None  # gone, by the attempt whose answer was lost
        await self._finish(commit.thread_id, outcome.token)
        return True

    async def abandon(self, thread_id: str, token: int) -> None:
        """Give back the reservation of a first save that failed, with the blobs it may have left."""
        commit = Commit(thread_id, new_write_id(), NOTHING, token=token, lease=self._take(), erase=True)
        outcome = await self._link.submit(commit)
        if isinstance(outcome, Committed):
            await self._finish(thread_id, outcome.token)
        else:  # somebody else's row is there: its purge takes the blobs
            await self._link.submit(Commit(thread_id, new_write_id(), ANY, token=token, lease=Drop()))

    async def sweep(self, thread_id: str) -> None:
        """Delete the blobs that a refused save put for a thread that had gone meanwhile."""
        await self.take_over(Head(thread_id))

    async def make_way(self, head: Head | None, patience: Patience) -> None:
        """Wait for a purge to finish, or finish one whose process died.

        Raises:
            StoreBusyError: It takes too long, or the thread's external blobs cannot be reached from here.
        """
        if head is None or head.is_leased(head.now):
            await patience.wait()
        elif not self.can_erase(head):
            raise StoreBusyError(
                f"thread {head.thread_id!r} is half purged, and its values are in a blob store that was not given: "
                "open the store with Offload(blobs=...)"
            )
        elif not await self.take_over(head):
            await patience.wait()

    async def _finish(self, thread_id: str, token: int) -> None:
        if not token:
            return
        if self._external is not None:
            async with holding(self._link, thread_id, token):
                await self._external.delete_thread(thread_id)
        await self._link.submit(Commit(thread_id, new_write_id(), token=token, erase=True))

    @staticmethod
    def _take() -> Take:
        return Take(_OWNER, RESERVED_FOR, closing=True)
