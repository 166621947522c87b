from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from strata_core._statuses import ThreadState

__all__ = ["CheckpointRetention"]


class CheckpointRetention(Protocol):
    """Deletes old threads."""

    async def purge(self, older_than: datetime, *, states: Collection[ThreadState] = ..., limit: int = 1000) -> int:
        """Delete threads whose latest checkpoint is older than `older_than`, and return how many.

        Looks at each thread's latest checkpoint: its state must be one of `states` (completed and ended by default)
        and its `updated_at` earlier than `older_than`, compared to the second, the cutoff itself excluded.  The
        oldest go first.  A thread goes whole (rows, head, lease, blobs) or not at all; one that a live lease holds,
        or that changed meanwhile, stays and does not use up `limit`.

        Raises:
            InvalidInputError: An argument breaks a rule; `older_than` is aware, `limit` is 1 to 1,000.
            ReadOnlyError: The store was opened read-only.
            StoreUnavailableError: The storage did not answer; purging again is safe.
        """
        ...
