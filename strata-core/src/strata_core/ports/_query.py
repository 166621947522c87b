from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from strata_core.records import LogPage, ThreadPage, ThreadQuery

__all__ = ["CheckpointQuery"]


class CheckpointQuery(Protocol):
    """Finds threads and reads their logs."""

    async def list_threads(self, query: ThreadQuery = ..., /) -> ThreadPage:
        """Return one page of the threads that match, newest first unless the query says `oldest_first`.

        Ordered by `updated_at`, then by thread ID as UTF-8 bytes, both descending, or both ascending when the oldest
        come first.  A thread that does not change while somebody pages is seen exactly once.  A filter is never
        ignored, and neither is the order: whoever takes the oldest threads first relies on it, lest they wait forever.
        A cursor goes on in the order of the page that gave it, and is refused for the other one.

        Raises:
            InvalidInputError: A filter, the limit or the cursor breaks a rule.
            CorruptCheckpointError: The latest record of a thread on this page cannot be read as written.  Its
                `next_cursor`, where the store gives one, goes on behind that thread; so does that of a
                SchemaVersionError.
            SchemaVersionError: The latest record of a thread on this page is of a newer format.
            StoreUnavailableError: The storage did not answer.
        """
        ...

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        """Return the checkpoints of a thread from sequence `start` on, oldest first; empty for an unknown thread.

        Raises:
            InvalidInputError: An argument breaks a rule; `limit` is 1 to 1,000.
            CorruptCheckpointError: A row cannot be read as written.
            SchemaVersionError: A row is of a newer format.
            StoreUnavailableError: The storage did not answer.
        """
        ...
