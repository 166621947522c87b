"""All threads that match a query, page by page, past those that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.ports import CheckpointQuery
from strata_core.records import ThreadQuery, ThreadSummary

__all__ = ["ThreadWalk", "UnreadableThread"]

_MOST: Final = 1000


@attrs.frozen
class UnreadableThread:
    """A thread whose latest record cannot be read, met by a listing.

    Attributes:
        thread_id: The thread.
        error: Why.
    """

    thread_id: str
    error: CorruptCheckpointError | SchemaVersionError


class ThreadWalk:
    """Gives page after page of a listing.

    One thread that cannot be read fails the page it is on.  So pages are made smaller until it stands first; it is
    given as an `UnreadableThread` then, and the listing goes on behind it.

    Args:
        store: Where the threads are.
        query: Which of them, in which order, and from which cursor on; its limit is set here.
        first: At most how many threads the first page has.
        most: At most how many any page has.
    """

    def __init__(self, store: CheckpointQuery, query: ThreadQuery, *, first: int = _MOST, most: int = _MOST) -> None:
        self._store = store
        self._query = query
        self._size = first
        self._most = most
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether the end was reached."""
        return self._is_over

    async def next_page(self) -> Sequence[ThreadSummary] | UnreadableThread:
        """Return the next page, or the thread that cannot be read and stands where it would begin; empty at the end.

        Raises:
            CorruptCheckpointError: What cannot be read is not one thread's, or the store does not tell how to go on.
            SchemaVersionError: The same; also when the store was never set up.
            StrataError: Whatever else `CheckpointQuery.list_threads` raises.
        """
        while not self._is_over:
            try:
                page = await self._store.list_threads(attrs.evolve(self._query, limit=self._size))
            except (CorruptCheckpointError, SchemaVersionError) as error:
                thread_id = error.thread_id
                if thread_id is None:  # not a thread's: the store was never set up, or is of another version
                    raise
                # It stands somewhere on this page.  When it stands first, the listing can go on behind it.
                if self._size > 1:
                    self._size //= 2
                    continue
                if error.next_cursor is None:
                    raise
                self._query = attrs.evolve(self._query, cursor=error.next_cursor)
                self._size = self._most
                return UnreadableThread(thread_id, error)
            self._size = min(2 * self._size, self._most)
            self._query = attrs.evolve(self._query, cursor=page.next_cursor)
            self._is_over = page.next_cursor is None
            return page.threads
        return ()
