"""SQLite backends that are wrong between processes; the processes of the suite import them from here."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from strata_core.clock import SystemClock
from strata_core.rows import ANY, Commit, Committed, Refused
from strata_sqlite import SqliteBackend


class Private(SqliteBackend):
    """Keeps what each process saves in a file of its own."""

    def __init__(self, path: Any, **options: Any) -> None:
        super().__init__(f"{path}-{os.getpid()}", **options)


class AsksNothing(SqliteBackend):
    """Appends whatever the latest row is."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        for commit in batch:
            commit.after, commit.after_id = ANY, b""
        return await super().commit(batch)


class NeedsNoToken(SqliteBackend):
    """Takes a save under any lease."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        for commit in batch:
            commit.token = 0
        return await super().commit(batch)


class _Hurrying(SystemClock):
    def __init__(self) -> None:
        self._days = itertools.count(1)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=next(self._days))


class Hurries(SqliteBackend):
    """Lets a day pass at every look at the clock, so that no lease holds."""

    def __init__(self, path: Any, **options: Any) -> None:
        super().__init__(path, clock=_Hurrying())
