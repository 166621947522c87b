"""Arguments that are taken though they break a rule, one promise each."""

from __future__ import annotations

import math
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
from mutant_kit import Wrapper, breaks, replaced

from strata_core.errors import InvalidInputError
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, Lease, LogEntry, LogPage, ThreadPage, ThreadQuery
from strata_core.rows import Commit, Committed, Head, Refused, Row


class _Saves(Wrapper):
    """Saves something else than it was given."""

    def given(self, checkpoint: Checkpoint) -> Checkpoint:
        return checkpoint

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        given = self.given(checkpoint) if isinstance(checkpoint, Checkpoint) else checkpoint
        return await self._store.save(given, **options)


@breaks("input-1")
class NormalisesIds(Wrapper):
    """Looks an ID up in its composed form."""

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        if isinstance(thread_id, str):
            thread_id = unicodedata.normalize("NFC", thread_id)
        return await self._store.load(thread_id, **options)


@breaks(
    "input-1",
    also={
        "list-2 row-14": "threads whose IDs differ in case are listed",
        "row-10": "the other threads of an erase differ in case",
        "rule-1": "its threads differ in case",
    },
)
class FoldsTheCaseOfIds(MemoryBackend):
    """Looks threads up as a database with a case-insensitive collation does."""

    async def commit(self, batch: Any) -> list[Committed | Refused]:
        folded: list[Commit] = [attrs.evolve(c, thread_id=c.thread_id.lower()) for c in batch]
        return list(await super().commit(folded))

    async def read_head(self, thread_id: str) -> Head | None:
        return await super().read_head(thread_id.lower())

    async def read(self, thread_id: str, first: int | None, last: int | None) -> list[Row]:
        return list(await super().read(thread_id.lower(), first, last))

    async def read_blobs(self, thread_id: str, digests: Any) -> Any:
        return await super().read_blobs(thread_id.lower(), digests)


@breaks("input-2")
class FindsNothingUnderTheEmptyId(Wrapper):
    """Answers a look at the lease of no thread with None."""

    async def live_lease(self, thread_id: str) -> Lease | None:
        return await self._store.live_lease(thread_id) if thread_id else None


@breaks(
    "input-2",
    also={
        "argument-9": "a number that cannot be spelled is given as an ID",
    },
)
class CoercesThreadIds(Wrapper):
    """Takes whatever it is given for text."""

    async def load(self, thread_id: Any, **options: Any) -> LogEntry | None:
        return await self._store.load(str(thread_id), **options)


@breaks("input-3")
class StoresNaNAsNull(_Saves):
    """Stores what JSON does not have as null."""

    def given(self, checkpoint: Checkpoint) -> Checkpoint:
        def plain(value: Any) -> Any:
            return None if isinstance(value, float) and math.isnan(value) else value

        try:
            return attrs.evolve(checkpoint, frozen_state=replaced(checkpoint.frozen_state, plain))
        except RecursionError:
            return checkpoint


@breaks("input-4")
class WrapsWhatIsNoObject(_Saves):
    """Stores a list as an object of one value."""

    def given(self, checkpoint: Checkpoint) -> Checkpoint:
        state: Any = checkpoint.frozen_state
        return attrs.evolve(checkpoint, frozen_state={"value": state}) if type(state) is list else checkpoint


@breaks("input-5")
class CutsMetadataToSize(_Saves):
    """Stores the beginning of a value that is too long."""

    def given(self, checkpoint: Checkpoint) -> Checkpoint:
        metadata: Any = checkpoint.metadata
        if type(metadata) is not dict or not all(type(value) is str for value in metadata.values()):
            return checkpoint
        return attrs.evolve(checkpoint, metadata={key: value[:1024] for key, value in metadata.items()})


@breaks("input-6")
class TakesNaiveTimesForUtc(_Saves):
    """Stores a naive time as if it were UTC."""

    def given(self, checkpoint: Checkpoint) -> Checkpoint:
        at: Any = checkpoint.created_at
        is_naive = isinstance(at, datetime) and at.tzinfo is None
        return attrs.evolve(checkpoint, created_at=at.replace(tzinfo=UTC)) if is_naive else checkpoint


@breaks("input-7")
class LooksIntoWhatIsNoCheckpoint(Wrapper):
    """Asks for the thread before it asks what it was given."""

    async def save(self, checkpoint: Checkpoint, **options: Any) -> int:
        assert checkpoint.thread_id != "no attribute, no thread"
        return await self._store.save(checkpoint, **options)


@breaks("input-8")
class SavesToTheLeasedThread(Wrapper):
    """Saves the checkpoint of another thread to the one that is acquired."""

    async def acquire_lease(self, thread_id: str, **options: Any) -> Lease | None:
        save = options.get("save")
        if isinstance(save, Checkpoint) and isinstance(save.thread_id, str) and save.nested is None:
            options["save"] = attrs.evolve(save, thread_id=thread_id)
        return await self._store.acquire_lease(thread_id, **options)


@breaks("argument-1")
class TakesTrueForOne(Wrapper):
    """Takes a bool for a number."""

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        return await self._store.get_log(thread_id, start=start, limit=int(limit) if limit is True else limit)


@breaks("argument-2")
class CountsBackFromTheEnd(Wrapper):
    """Takes -1 for the latest checkpoint."""

    async def load(self, thread_id: str, *, at: int | None = None) -> LogEntry | None:
        return await self._store.load(thread_id, at=None if type(at) is int and at == -1 else at)


@breaks("argument-3")
class ExpectsTrueForOne(Wrapper):
    """Takes a bool for a sequence."""

    async def save_if_latest(self, checkpoint: Checkpoint, expected: Any, **options: Any) -> int:
        expected = int(expected) if type(expected) is bool else expected
        return await self._store.save_if_latest(checkpoint, expected, **options)


@breaks("argument-4")
class FillsWriteIdsUp(Wrapper):
    """Takes a short write ID, and fills it up with zeros."""

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        if type(write_id) is bytes and len(write_id) < 8:
            write_id = write_id.ljust(8, b"\0")
        return await self._store.save(checkpoint, write_id=write_id)


@breaks("argument-5")
class TakesSecondsForATtl(Wrapper):
    """Takes a number for a ttl in seconds."""

    async def acquire_lease(self, thread_id: str, *, ttl: Any, **options: Any) -> Lease | None:
        if type(ttl) in (int, float) and 0 < ttl < 1e6:
            ttl = timedelta(seconds=ttl)
        return await self._store.acquire_lease(thread_id, ttl=ttl, **options)


@breaks("argument-6")
class LooksIntoWhatIsNoLease(Wrapper):
    """Asks for the token before it asks what it was given."""

    async def release_lease(self, lease: Lease) -> None:
        assert lease.token != -1
        await self._store.release_lease(lease)


@breaks("argument-7")
class QueriesNaiveTimes(Wrapper):
    """Takes a naive time in a query for UTC."""

    async def list_threads(self, query: ThreadQuery = ThreadQuery(), /) -> ThreadPage:  # noqa: B008  # frozen
        after = getattr(query, "updated_after", None)
        if isinstance(after, datetime) and after.tzinfo is None:
            query = attrs.evolve(query, updated_after=after.replace(tzinfo=UTC))
        return await self._store.list_threads(query)


@breaks("argument-8")
class PurgesToANaiveCutoff(Wrapper):
    """Takes a naive cutoff for UTC."""

    async def purge(self, older_than: datetime, **options: Any) -> int:
        if isinstance(older_than, datetime) and older_than.tzinfo is None:
            older_than = older_than.replace(tzinfo=UTC)
        return await self._store.purge(older_than, **options)


@breaks("argument-9")
class SpellsEveryNumberOut(Wrapper):
    """Puts a number into the message, whatever its size."""

    async def load(self, thread_id: str, *, at: int | None = None) -> LogEntry | None:
        if type(at) is int and at >= 2**31:
            raise InvalidInputError("at", f"must be at most 2147483647, not {at}")
        return await self._store.load(thread_id, at=at)
