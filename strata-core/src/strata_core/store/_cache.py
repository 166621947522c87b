"""What a store remembers of the latest rows that it wrote itself."""

from __future__ import annotations

from collections import OrderedDict

import attrs

from strata_core.codec._state import Snapshot
from strata_core.options import Deltas

__all__ = ["Cache", "Memory"]


@attrs.define(eq=False)
class Memory:
    """The latest row of a thread as this store wrote it.

    Only a hint: it holds only if the head is still this row, by sequence and write ID.

    Attributes:
        sequence: Of the row.
        write_id: Of the row.
        since_whole: How many rows ago the last whole one was.
        snapshot: The state of the row.
    """

    sequence: int
    write_id: bytes
    since_whole: int
    snapshot: Snapshot


class Cache:
    """Memories by thread, bounded by count and bytes, least recently used forgotten first."""

    def __init__(self, limits: Deltas) -> None:
        self._limits = limits
        self._memories: OrderedDict[str, Memory] = OrderedDict()
        self._cost = 0

    def get(self, thread_id: str) -> Memory | None:
        return self._memories.get(thread_id)

    def forget(self, thread_id: str) -> None:
        memory = self._memories.pop(thread_id, None)
        if memory is not None:
            self._cost -= memory.snapshot.cost

    def keep(self, thread_id: str, sequence: int, write_id: bytes, since_whole: int, snapshot: Snapshot) -> None:
        """Remember a row; the long texts of its snapshot are dropped."""
        self.forget(thread_id)
        if snapshot.cost > self._limits.cached_bytes:  # it would only push out all others
            return
        snapshot.shrink()
        self._memories[thread_id] = Memory(sequence, write_id, since_whole, snapshot)
        self._cost += snapshot.cost
        while len(self._memories) > self._limits.cached_threads or self._cost > self._limits.cached_bytes:
            _, oldest = self._memories.popitem(last=False)
            self._cost -= oldest.snapshot.cost
