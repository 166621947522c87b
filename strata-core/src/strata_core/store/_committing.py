"""Getting a commit done, or refused for good."""

from __future__ import annotations

from collections.abc import Mapping

from strata_core.codec._state import Value
from strata_core.rows import Commit, Committed, Refusal, Refused
from strata_core.store._closing import Closer
from strata_core.store._link import Link, refusal_error
from strata_core.store._patience import Patience
from strata_core.store._pinning import Pinner

__all__ = ["Committer"]


class Committer:
    """Sends commits, and waits while a purge or somebody's first save is in the way.

    Args:
        link: The opened backend.
        closer: Finishes a purge that was left halfway.
        pinner: Sends commits with external blobs; None when blobs go to the backend.
    """

    def __init__(self, link: Link, closer: Closer, pinner: Pinner | None) -> None:
        self._link = link
        self._closer = closer
        self._pinner = pinner

    @property
    def keeps_blobs(self) -> bool:
        """Whether blobs go to the backend, in the commit itself."""
        return self._pinner is None

    async def commit(self, commit: Commit, blobs: Mapping[str, Value] | None = None) -> Committed:
        """Return what came of a commit.

        Args:
            commit: The commit.
            blobs: Its external blobs, by digest.

        Raises:
            ConflictError: Or one of its kinds: it was refused.
            StoreBusyError: What was in the way stayed there for too long.
        """
        patience: Patience | None = None
        while True:
            if blobs and self._pinner is not None:
                outcome = await self._pinner.send(commit, blobs)
            else:
                outcome = await self._link.submit(commit)
            if isinstance(outcome, Committed):
                return outcome
            if not _passes(outcome):
                raise refusal_error(outcome, commit.thread_id)
            patience = patience or Patience(commit.thread_id)
            await self._closer.make_way(outcome.head, patience)


def _passes(refused: Refused) -> bool:
    if refused.why is Refusal.HELD:
        return refused.head is not None and refused.head.is_reserved
    return refused.why is Refusal.CLOSING
