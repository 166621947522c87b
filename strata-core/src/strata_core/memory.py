"""The in-memory store: a row backend like any other, for tests and development.

Nothing survives the process.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs

from strata_core.capabilities import Capability
from strata_core.clock import SYSTEM_CLOCK, Clock, micros
from strata_core.options import Setup
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend, decide, matches

__all__ = ["MemoryBackend"]

_CAPABILITIES: Final = frozenset(
    {
        Capability.QUERY,
        Capability.RETENTION,
        Capability.DELTAS,
        Capability.OFFLOAD,
        Capability.OWN_BLOBS,
        Capability.EXTERNAL_BLOBS,
        Capability.READ_ONLY,
    }
)


class MemoryBackend(RowBackend):
    """Keeps threads in dictionaries of this process.

    No call ever suspends, so each is one atomic step.  Several stores may share one backend; closing it keeps its
    content.

    Args:
        clock: Judges leases.
    """

    capabilities = _CAPABILITIES
    batching = None

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._heads: dict[str, Head] = {}
        self._rows: dict[str, list[Row]] = {}
        self._blobs: dict[str, dict[str, bytes]] = {}
        self._new_token = itertools.count(1).__next__

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        pass

    async def close(self) -> None:
        pass

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        now = micros(self._clock.now())
        return [self._commit(commit, now) for commit in batch]

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        thread_id = commit.thread_id
        head = self._heads.get(thread_id)
        outcome = decide(commit, head, now, self._new_token)
        if isinstance(outcome, Refused):
            return outcome if head is None else Refused(outcome.why, attrs.evolve(head, now=now))
        if outcome.repeated:
            return outcome
        if commit.erase or outcome.head is None:
            self._rows.pop(thread_id, None)
            self._blobs.pop(thread_id, None)
        if outcome.head is None:
            self._heads.pop(thread_id, None)
            return outcome
        self._heads[thread_id] = outcome.head
        if commit.row is not None:
            row = commit.row
            self._rows.setdefault(thread_id, []).append(
                Row(outcome.sequence, outcome.head.whole_at, commit.write_id, row.version, row.envelope, row.body)
            )
        if commit.blobs:
            self._blobs.setdefault(thread_id, {}).update(commit.blobs)
        return outcome

    async def read_head(self, thread_id: str) -> Head | None:
        head = self._heads.get(thread_id)
        return None if head is None else attrs.evolve(head, now=micros(self._clock.now()))

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        rows = self._rows.get(thread_id, [])
        start = len(rows) - 1 if first is None else first
        if not 0 <= start < len(rows):
            return []
        end = len(rows) if last is None else last + 1
        return rows[rows[start].whole_at : end]

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        blobs = self._blobs.get(thread_id, {})
        return {digest: blobs[digest] for digest in digests if digest in blobs}

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        now = micros(self._clock.now())
        found = [head for head in self._heads.values() if matches(head, query, now)]
        found.sort(key=lambda head: (head.updated, head.thread_id), reverse=not query.oldest_first)
        return [
            attrs.evolve(head, now=now, envelope=rows[-1].envelope if (rows := self._rows.get(head.thread_id)) else b"")
            for head in found[: query.limit]
        ]
