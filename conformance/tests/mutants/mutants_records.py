"""Records that come back other than they were saved, one promise each."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs
from mutant_kit import Entries, Wrapper, breaks, members, replaced

from strata_core.errors import CorruptCheckpointError
from strata_core.records import Checkpoint, CheckpointStatus, LogPage, Revision

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@breaks(
    "record-1",
    also={
        "record-4": "one of the times is that of a wait",
        "record-9": "its entries have every field",
    },
)
class KeepsAWaitOnlyWhileItWaits(Entries):
    """Returns the wait of interrupted checkpoints only."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        is_interrupted = checkpoint.status is CheckpointStatus.INTERRUPTED
        return checkpoint if is_interrupted else attrs.evolve(checkpoint, wait=None)


@breaks("record-2")
class ReturnsEmptyTextForNothing(Entries):
    """Returns an empty text where a field was left out."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        if checkpoint.next_node is None and checkpoint.status is CheckpointStatus.FAILED:
            return attrs.evolve(checkpoint, next_node="")
        return checkpoint


@breaks("record-3")
class KeepsTheNextNodeBesideTheLast(Entries):
    """Loses the next node of a checkpoint that was not suspended anywhere."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        return attrs.evolve(checkpoint, next_node=None) if checkpoint.suspended_node is None else checkpoint


@breaks("record-4")
class KeepsTimesAsFloats(Entries):
    """Keeps times as seconds in a float, which has no microseconds for far years."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        seconds = (checkpoint.created_at - _EPOCH).total_seconds()
        rounded = _EPOCH + timedelta(seconds=math.floor(seconds), microseconds=int(seconds % 1 * 1e6 + 0.5))
        return attrs.evolve(checkpoint, created_at=rounded)


@breaks(
    "record-5",
    also={
        "delta-1 offload-1 external-1": "random states hold whole floats",
    },
)
class ReturnsWholeFloatsAsIntegers(Entries):
    """Knows one kind of number, as a JSON column does."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        def number(value: Any) -> Any:
            return int(value) if type(value) is float and value.is_integer() and abs(value) < 2**53 else value

        return attrs.evolve(checkpoint, frozen_state=replaced(checkpoint.frozen_state, number))


@breaks("record-6")
class ReadsIntegersOf4000Digits(Entries):
    """Cannot read the longest integers that it stores."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        for value in members(checkpoint.frozen_state):
            if type(value) is int and abs(value) >= 10**4000:
                raise CorruptCheckpointError(checkpoint.thread_id, None, "has an integer that is too long")
        return checkpoint


@breaks("record-7")
class ReadsNestingOf150(Entries):
    """Cannot read the deepest states that it stores."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        def depth(value: Any) -> int:
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
            return 0 if inner is None else 1 + max(map(depth, inner), default=0)

        if depth(checkpoint.frozen_state) > 150:
            raise CorruptCheckpointError(checkpoint.thread_id, None, "nests too deep")
        return checkpoint


@breaks("record-8")
class CutsMetadataAtAThousand(Entries):
    """Has a column for values that is a little too narrow."""

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        metadata = {key: value.encode()[:1000].decode(errors="ignore") for key, value in checkpoint.metadata.items()}
        return attrs.evolve(checkpoint, metadata=metadata)


@breaks("record-9")
class LeavesWriteIdsOutOfLogs(Wrapper):
    """Returns logs whose revisions name no write."""

    async def get_log(self, thread_id: str, **options: Any) -> LogPage:
        page = await self._store.get_log(thread_id, **options)
        return attrs.evolve(
            page, entries=[attrs.evolve(e, revision=Revision(e.sequence, bytes(8))) for e in page.entries]
        )


@breaks(
    "record-1",
    also={
        "record-3": "one of the fields is the decision",
        "record-9": "its entries have every field",
        "input-6": "some of the bad fields are those of a decision",
    },
)
class DropsTheDecision(Wrapper):
    """Saves a checkpoint without the decision of a person."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        if isinstance(checkpoint, Checkpoint):
            checkpoint = attrs.evolve(checkpoint, decision=None)
        return await self._store.save(checkpoint, **options)
