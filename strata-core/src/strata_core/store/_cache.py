"""What a store remembers of the latest rows that it wrote itself."""

from __future__ import annotations

from collections import OrderedDict

import attrs

from strata_core.codec._state import Snapshot, Value
from strata_core.options import Deltas

__all__ = ["Cache", "Memory"]

_VALUE_COST = 200  # bytes, roughly, of the objects around a remembered value


@attrs.define(eq=False)
class Memory:
    """The latest row of a thread as this store wrote it.

    Only a hint: it holds only if the head is still this row, by sequence and write ID.

    Attributes:
        sequence: Of the row.
        write_id: Of the row.
        since_whole: How many rows ago the last whole one was.
        snapshot: The state of the row.
        cost: What remembering takes, in bytes, roughly.
    """

    sequence: int
    write_id: bytes
    since_whole: int
    snapshot: Snapshot
    cost: int = 0


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
            self._cost -= memory.cost

    def keep(self, thread_id: str, sequence: int, write_id: bytes, since_whole: int, snapshot: Snapshot) -> None:
        """Remember a row; long texts are dropped from the snapshot, their marks stay."""
        self.forget(thread_id)
        cost = _VALUE_COST
        for key, value in snapshot.items():
            if value.text is not None and value.text is not value.mark:
                snapshot[key] = value = Value(None, value.source, value.mark, value.digest)
            cost += _VALUE_COST + len(value.mark) + (len(value.source) if value.source is not None else 0)
        if cost > self._limits.cached_bytes:  # it would only push out all others
            return
        self._memories[thread_id] = Memory(sequence, write_id, since_whole, snapshot, cost)
        self._cost += cost
        while len(self._memories) > self._limits.cached_threads or self._cost > self._limits.cached_bytes:
            _, oldest = self._memories.popitem(last=False)
            self._cost -= oldest.cost
