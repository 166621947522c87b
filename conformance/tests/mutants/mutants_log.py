"""Logs that go wrong, one promise each."""

from __future__ import annotations

from typing import Any

import attrs
from mutant_kit import Wrapper, breaks

from strata_core.records import LogPage


@breaks(
    "log-1",
    also={
        "record-9 delta-5 log-2 log-4": "reads a log in its order",
    },
)
class ShowsTheNewestFirst(Wrapper):
    """Turns a slice around."""

    async def get_log(self, thread_id: str, **options: Any) -> LogPage:
        page = await self._store.get_log(thread_id, **options)
        return attrs.evolve(page, entries=list(reversed(page.entries)))


@breaks("log-2")
class AsksForOneSliceMore(Wrapper):
    """Says that a slice that is full has a next one."""

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        page = await self._store.get_log(thread_id, start=start, limit=limit)
        return attrs.evolve(page, next_start=start + limit) if len(page.entries) == limit else page


@breaks("log-3")
class StartsAtTheEndAtTheLatest(Wrapper):
    """Returns the latest checkpoint to whoever asks for what comes after it."""

    async def get_log(self, thread_id: str, **options: Any) -> LogPage:
        page = await self._store.get_log(thread_id, **options)
        latest = await self._store.load(thread_id)
        return page if page.entries or latest is None else attrs.evolve(page, entries=[latest])


@breaks("log-4")
class EndsLogsAt1500(Wrapper):
    """Reads no more than 1,500 checkpoints of a thread."""

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        page = await self._store.get_log(thread_id, start=start, limit=limit)
        kept = [entry for entry in page.entries if entry.sequence < 1500]
        return page if len(kept) == len(page.entries) else LogPage(kept, None)
