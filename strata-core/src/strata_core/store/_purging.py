"""Purging old threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import attrs

from strata_core._validation import check_limit, check_moment
from strata_core.records import ThreadState
from strata_core.rows import Head, HeadQuery
from strata_core.store._closing import Closer
from strata_core.store._link import Link
from strata_core.store._listing import check_states
from strata_core.store._saving import Saver

__all__ = ["Purger"]

_logger: Final = logging.getLogger("strata_core.store")
_SECOND: Final = 1_000_000
AT_ONCE: Final = 64
"""How many threads are erased at once: what fits a batch."""


class Purger:
    """Deletes threads whole, oldest first."""

    def __init__(self, link: Link, saver: Saver, closer: Closer) -> None:
        self._link = link
        self._saver = saver
        self._closer = closer

    async def purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        """Delete up to `limit` threads and return how many went."""
        cutoff = check_moment(older_than, "older_than") // _SECOND * _SECOND
        names = check_states(states)
        check_limit(limit)
        await self._finish_leftovers(limit)
        query = HeadQuery(states=names, updated_before=cutoff, leased=False, oldest_first=True)
        purged = 0
        while names and purged < limit:
            query = attrs.evolve(query, limit=min(limit - purged, AT_ONCE))
            heads = await self._link.backend.list_heads(query)
            if not heads:
                break
            purged += await self._erase(heads)
            query = attrs.evolve(query, past=(heads[-1].updated, heads[-1].thread_id))
        return purged

    async def _finish_leftovers(self, limit: int) -> None:
        """Clear up to `limit` threads without rows; those whose blobs cannot be reached are passed over."""
        query = HeadQuery(rowless=True, leased=False, oldest_first=True, limit=AT_ONCE)
        while limit > 0 and (heads := await self._link.backend.list_heads(query)):
            for head in heads:
                if limit > 0 and await self._closer.take_over(head):
                    limit -= 1
            query = attrs.evolve(query, past=(heads[-1].updated, heads[-1].thread_id))

    async def _erase(self, heads: Sequence[Head]) -> int:
        reachable = []
        for head in heads:
            if self._closer.can_erase(head):
                reachable.append(head)
                self._saver.forget(head.thread_id)
            else:
                _logger.warning(
                    "thread %r was not purged: its values are in a blob store that this store was not given",
                    head.thread_id,
                )
        outcomes = await asyncio.gather(*(self._closer.erase(head) for head in reachable), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(outcome is True for outcome in outcomes)
