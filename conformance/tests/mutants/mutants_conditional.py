"""Conditions that are judged wrongly, one promise each."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
from mutant_kit import Wrapper, breaks

from strata_core.errors import ConflictError
from strata_core.records import Checkpoint, Revision
from strata_core.rows import WRITE_ID_SIZE


@breaks(
    "conditional-1",
    also={
        "conditional-3 conditional-5 conditional-6 "
        "repeat-4 lease-20 cancel-2": "saves on the first checkpoint by its number",
    },
)
class TakesZeroForNothing(Wrapper):
    """Takes an expected sequence 0 for no expectation of a checkpoint."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        expected = None if type(expected) is int and expected == 0 else expected
        return await self._store.save_if_latest(checkpoint, expected, **options)


@breaks(
    "conditional-2",
    also={
        "conditional-6": "LeaseHeldError is a conflict too, and says what is latest",
    },
)
class DoesNotSayWhatIsLatest(Wrapper):
    """Leaves the latest sequence out of a conflict."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        try:
            return await self._store.save_if_latest(checkpoint, expected, **options)
        except ConflictError as error:
            error.latest = None
            raise


@breaks("conditional-3")
class MakesTheThreadItWasToContinue(Wrapper):
    """Saves when the thread does not exist, whatever was expected."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        try:
            return await self._store.save_if_latest(checkpoint, expected, **options)
        except ConflictError as error:
            if error.latest is not None or expected is None:
                raise
            return await self._store.save(checkpoint)


@breaks(
    "conditional-4",
    also={
        "conditional-2": "a revision with another write ID is among those that are refused",
    },
)
class KnowsRevisionsByNumberAlone(Wrapper):
    """Compares the sequence of an expected revision, and not its write ID."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        head = self._backend._heads.get(checkpoint.thread_id) if isinstance(checkpoint, Checkpoint) else None
        if head is not None and isinstance(expected, Revision) and expected.sequence == head.sequence:
            expected = attrs.evolve(expected, write_id=head.write_ids[:WRITE_ID_SIZE])
        return await self._store.save_if_latest(checkpoint, expected, **options)


@breaks("conditional-5")
class ComparesFirstAndSavesThen(Wrapper):
    """Looks at the latest checkpoint, waits, and saves without looking again."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        latest = await self._store.load(checkpoint.thread_id) if isinstance(checkpoint, Checkpoint) else None
        if latest is None or expected not in (latest.sequence, latest.revision) or any(options.values()):
            return await self._store.save_if_latest(checkpoint, expected, **options)
        checkpoint = self.taken(checkpoint)
        await asyncio.sleep(0)
        return await self._store.save(checkpoint)


@breaks("conditional-6")
class NeverMindsALease(Wrapper):
    """Leaves out whether the thread must be free."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        options.pop("unleased", None)
        return await self._store.save_if_latest(checkpoint, expected, **options)
