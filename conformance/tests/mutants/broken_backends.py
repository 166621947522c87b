"""Backends that break one promise each, on purpose, written from CONTRACT.md."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

import attrs

from strata_core.memory import MemoryBackend
from strata_core.rows import Commit, Committed, Extend, Head, HeadQuery, Refused, Row, Take


class KnowsRowsByNumberAlone(MemoryBackend):
    """A purged and restarted thread of the same length is taken for the one that was read."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        return await super().commit([attrs.evolve(commit, after_id=b"") for commit in batch])


class ForgetsAllWriteIdsButTheLast(MemoryBackend):
    """Recognises a repetition only of the latest write."""

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        outcome = super()._commit(commit, now)
        head = self._heads.get(commit.thread_id)
        if head is not None:
            head.write_ids = head.write_ids[:8]
        return outcome


class FindsWriteIdsAnywhere(MemoryBackend):
    """Takes the end of one write ID and the beginning of the next for a third."""

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        head = self._heads.get(commit.thread_id)
        if head is not None and commit.row is not None and (at := head.write_ids.find(commit.write_id)) > 0:
            return Committed(head.sequence - at // 8, head.token, head.expires, True, head)
        return super()._commit(commit, now)


class NeverAsksForTheToken(MemoryBackend):
    """Lets a writer whose lease is gone save and renew."""

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        writes = commit.row is not None or type(commit.lease) is Extend
        return super()._commit(attrs.evolve(commit, token=0) if writes else commit, now)


class CountsTokensByThread(MemoryBackend):
    """Gives out a token again once the head of the thread, and its count, are gone."""

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        head = self._heads.get(commit.thread_id)
        self._new_token = lambda: 1 if head is None else head.token + 1
        return super()._commit(commit, now)


class KeepsLeasesInTheMomentOfExpiry(MemoryBackend):
    """Takes a lease for live in the very microsecond in which it expires."""

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        head = self._heads.get(commit.thread_id)
        if head is not None and head.token and head.expires == now:
            head.expires += 1
        return super()._commit(commit, now)


class IndexesNoMetadata(MemoryBackend):
    """Keeps metadata in the record, where no listing finds it."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        for commit in batch:
            if commit.row is not None:
                commit.row.metadata = {}
        return await super().commit(batch)


class ListsToTheCutoffInclusive(MemoryBackend):
    """Takes the upper end of a time span for a part of it."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        if query.updated_before is not None:
            query = attrs.evolve(query, updated_before=query.updated_before + 1)
        return await super().list_heads(query)


class OrdersAsUtf16(MemoryBackend):
    """Orders IDs as databases with 16-bit characters do."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        heads = list(await super().list_heads(attrs.evolve(query, past=None, limit=10_000)))
        heads.sort(key=self._place, reverse=not query.oldest_first)
        if query.past is not None:
            past = (query.past[0], query.past[1].encode("utf-16-be"))
            heads = [h for h in heads if (self._place(h) > past if query.oldest_first else self._place(h) < past)]
        return heads[: query.limit]

    @staticmethod
    def _place(head: Head) -> tuple[int, bytes]:
        return head.updated, head.thread_id.encode("utf-16-be")


class LeavesBlobsBehind(MemoryBackend):
    """Erases the rows of a thread, and not its blobs."""

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        kept = self._blobs.get(commit.thread_id, {})
        outcome = super()._commit(commit, now)
        if kept:
            self._blobs[commit.thread_id] = kept
        return outcome


class LimitsBeforeItFilters(MemoryBackend):
    """Lets threads that do not match use up the limit."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        wide = attrs.evolve(query, leased=None)
        return [
            head
            for head in await super().list_heads(wide)
            if query.leased is None or query.leased == head.is_leased(head.now)
        ]


class ReadsWithoutTheWholeRow(MemoryBackend):
    """Returns the rows that were asked for, and not those they build on."""

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        rows = await super().read(thread_id, first, last)
        start = len(self._rows.get(thread_id, [])) - 1 if first is None else first
        return [row for row in rows if row.sequence >= start]


class FoldsTheCaseOfIds(MemoryBackend):
    """Looks threads up as a database with a case-insensitive collation does."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        return await super().commit([attrs.evolve(c, thread_id=c.thread_id.lower()) for c in batch])

    async def read_head(self, thread_id: str) -> Head | None:
        return await super().read_head(thread_id.lower())

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await super().read(thread_id.lower(), first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return await super().read_blobs(thread_id.lower(), digests)


class TearsCancelledCommits(MemoryBackend):
    """Puts the row, waits, and puts the head: a cancelled caller leaves one without the other."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        heads = {commit.thread_id: self._heads.get(commit.thread_id) for commit in batch}
        outcomes = await super().commit(batch)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            for thread_id, head in heads.items():
                if head is not None:
                    self._heads[thread_id] = head
                else:
                    self._heads.pop(thread_id, None)
            raise
        return outcomes


class HandsOutTheLeaseOfAnother(MemoryBackend):
    """Answers a repeated acquire with whatever lease is there."""

    def _commit(self, commit: Commit, now: int) -> Committed | Refused:
        outcome = super()._commit(commit, now)
        head = self._heads.get(commit.thread_id)
        if isinstance(outcome, Committed) and outcome.repeated and type(commit.lease) is Take and head is not None:
            outcome.token, outcome.expires = head.token, head.expires
        return outcome
