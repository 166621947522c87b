"""A store that is given other rows than it asked for says so, instead of answering with another checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from strata_core.errors import CorruptCheckpointError
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.rows import Row
from strata_core.store import RowStore


class Shifted(MemoryBackend):
    """Answers with the rows `by` places from those it was asked for."""

    by = 0

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await super().read(
            thread_id, None if first is None else first + self.by, None if last is None else last + self.by
        )


@pytest.mark.parametrize(("whole_log", "by"), [(False, -1), (False, 1), (True, 1)])
def test_other_rows_than_those_asked_for_are_corruption(whole_log: bool, by: int) -> None:
    async def read() -> None:
        async with RowStore(backend := Shifted()) as store:
            for n in range(4):
                await store.save(
                    Checkpoint("t", CheckpointStatus.RUNNING, {"n": n}, datetime(2026, 10, 30, tzinfo=UTC))
                )
            backend.by = by
            if whole_log:
                await store.get_log("t", start=2, limit=1)
            else:
                await store.load("t", at=2)

    with pytest.raises(CorruptCheckpointError, match=r"'t' #2 was asked for, but the storage gave") as refusal:
        asyncio.run(read())

    assert 2 == refusal.value.sequence
