"""Copying threads, with their whole logs, from one store to another.

What is copied are records: the target stores them in its own form, with or without deltas and offload, in any backend.
Each keeps its sequence; its `Revision` is another, since revisions name a checkpoint in one store.

A copy is a second life of the thread.  Nothing is written to the source, so a thread that waits there goes on waiting:
end it in the source before anybody answers the copy, or both go on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from datetime import timedelta
from enum import StrEnum
from typing import Final

import attrs

from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.codec import encode_record
from strata_core.errors import ConflictError, CorruptCheckpointError, InvalidInputError, LeaseHeldError, StrataError
from strata_core.ports import StorePorts
from strata_core.records import Checkpoint, Lease, LogEntry, ThreadState

__all__ = ["CopyOutcome", "CopyRefused", "ThreadCopy", "copy_thread", "copy_threads"]

OWNER: Final = "strata copy"
TTL: Final = timedelta(seconds=60)
PAGE: Final = 50


class CopyOutcome(StrEnum):
    """What became of a thread.

    Attributes:
        COPIED: The target had nothing of it, and has all of it now.
        CONTINUED: The target had the beginning of its log, as an interrupted copy leaves it, and has all of it now.
        UNCHANGED: The target had all of it already.
    """

    COPIED = "copied"
    CONTINUED = "continued"
    UNCHANGED = "unchanged"


@attrs.frozen
class ThreadCopy:
    """A thread whose log in the target is that of the source.

    Attributes:
        thread_id: The thread.
        outcome: What had to be done for that.
        checkpoints: How many checkpoints its log has.
        written: How many of them were written now.
        digest: ``sha256:`` and the hash over all its records in order, each as compact ASCII JSON with sorted keys and
            a line break behind it: read back from the target, and the same in the source.
        state: Where the thread stands, in both stores.
    """

    thread_id: str
    outcome: CopyOutcome
    checkpoints: int
    written: int
    digest: str
    state: ThreadState


@attrs.frozen
class CopyRefused:
    """A thread that was not copied, or not to its end.

    Attributes:
        thread_id: The thread.
        error: Why.
    """

    thread_id: str
    error: StrataError


async def copy_thread(
    source: StorePorts,
    target: StorePorts,
    thread_id: str,
    *,
    ttl: timedelta = TTL,
    clock: Clock = SYSTEM_CLOCK,
    on_checkpoint: Callable[[], None] | None = None,
) -> ThreadCopy:
    """Copy one thread, and read it back from the target.

    A copy that was interrupted goes on where it ended when it is called again.  Until then the target holds the
    beginning of the log, and for `ttl` the lease on it: let no engine work on the target before that.

    Args:
        source: Where the thread is; must offer ``query``.  Only read.
        target: Where it goes; must offer ``query``.  Only this thread is written.
        thread_id: The thread.
        ttl: The life of the lease that the target's thread is written under; renewed meanwhile.
        clock: Tells when the lease must be renewed.
        on_checkpoint: Called after each checkpoint that was written.

    Raises:
        InvalidInputError: The source has no such thread, the ID breaks a rule, or the target is the source itself.
        LeaseHeldError: A live lease holds the thread in the source, so that it runs, or in the target.
        ConflictError: The target has another thread of this ID, or the source wrote to the thread meanwhile.
        CorruptCheckpointError: A checkpoint cannot be read, or what the target gives back is not what it was given.
        UnsupportedError: A store does not offer ``query``.
    """
    latest = await source.load(thread_id)
    if latest is None:
        raise InvalidInputError("thread_id", f"the source has no thread {thread_id!r}")
    if (held := await source.live_lease(thread_id)) is not None:
        raise LeaseHeldError(thread_id, latest.sequence, held.owner)
    there = await target.load(thread_id)
    begun = 0 if there is None else there.sequence + 1
    if there is not None:
        if there.revision == latest.revision:
            await _require_another(source, target, latest, ttl)
        await _require_beginning(source, target, thread_id, begun, latest.sequence)
    count = latest.sequence + 1
    if begun < count:
        writer = _Writer(target, there, ttl, clock)
        try:
            async with aclosing(_entries(source, thread_id, begun, count)) as entries:
                async for entry in entries:
                    await writer.write(entry)
                    if on_checkpoint is not None:
                        on_checkpoint()
            digest = await _digest(source, thread_id, count)
            if digest != await _digest(target, thread_id, count):
                raise CorruptCheckpointError(thread_id, None, "is not in the target what was copied there")
        except BaseException:
            with suppress(StrataError):  # what went wrong first tells more, and the lease expires
                await writer.close()
            raise
        await writer.close()
    else:
        digest = await _digest(target, thread_id, count)
    now = await source.load(thread_id)
    if now is None or now.revision != latest.revision:
        raise ConflictError(
            thread_id, None if now is None else now.sequence, "was written to in the source while it was copied"
        )
    outcome = CopyOutcome.UNCHANGED if begun == count else CopyOutcome.CONTINUED if begun else CopyOutcome.COPIED
    return ThreadCopy(thread_id, outcome, count, count - begun, digest, latest.checkpoint.state)


async def copy_threads(
    source: StorePorts,
    target: StorePorts,
    thread_ids: Iterable[str],
    *,
    concurrency: int = 8,
    ttl: timedelta = TTL,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncGenerator[ThreadCopy | CopyRefused, None]:
    """Copy many threads, several at once, and yield what became of each as it is done.

    A thread that cannot be copied is told, and the others are copied nevertheless.  Leaving the iteration early cancels
    what is under way; calling it again goes on there.

    Args:
        source: As for `copy_thread`.
        target: As for `copy_thread`.
        thread_ids: The threads; one that occurs twice is copied once.
        concurrency: How many are copied at once; positive.
        ttl: As for `copy_thread`.
        clock: As for `copy_thread`.

    Raises:
        InvalidInputError: `concurrency` is not positive, or `thread_ids` is one text.
        StoreUnavailableError: A store did not answer; what has been yielded is copied.
        UsageError: A store is closed, or the target read-only.
    """
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidInputError("concurrency", f"must be a positive int, not {concurrency!r}")
    if isinstance(thread_ids, str):
        raise InvalidInputError("thread_ids", "must be several IDs, such as a list, and is one str")
    waiting = iter(dict.fromkeys(thread_ids))
    running: set[asyncio.Task[ThreadCopy | CopyRefused]] = set()
    try:
        while True:
            while len(running) < concurrency and (thread_id := next(waiting, None)) is not None:
                task = asyncio.create_task(_outcome(source, target, thread_id, ttl, clock))
                task.add_done_callback(_see)
                running.add(task)
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        await _end(running)


def _see(task: asyncio.Task[ThreadCopy | CopyRefused]) -> None:
    """Let asyncio not log an error that nobody asks for: when a store goes down, many copies fail, and one is told."""
    if not task.cancelled():
        task.exception()


async def _end(tasks: set[asyncio.Task[ThreadCopy | CopyRefused]]) -> None:
    """Cancel tasks, and wait until they are over, also when that is cancelled."""
    cancelled: asyncio.CancelledError | None = None
    for task in tasks:
        task.cancel()
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _outcome(
    source: StorePorts, target: StorePorts, thread_id: str, ttl: timedelta, clock: Clock
) -> ThreadCopy | CopyRefused:
    try:
        return await copy_thread(source, target, thread_id, ttl=ttl, clock=clock)
    except (ConflictError, CorruptCheckpointError, InvalidInputError) as error:
        return CopyRefused(thread_id, error)


class _Writer:
    """Appends to the target's thread under a lease, which it takes with the first checkpoint and keeps alive."""

    def __init__(self, target: StorePorts, there: LogEntry | None, ttl: timedelta, clock: Clock) -> None:
        self._target = target
        self._expected = None if there is None else there.revision
        self._ttl = ttl
        self._clock = clock
        self._lease: Lease | None = None
        self._renew_at = 0.0

    async def write(self, entry: LogEntry) -> None:
        checkpoint = entry.checkpoint
        if self._lease is None:
            got = await self._take(checkpoint)
        else:
            await self._keep(self._lease)
            got = await self._target.save_under_lease(checkpoint, self._lease)
        if got != entry.sequence:
            raise ConflictError(checkpoint.thread_id, got, "was written to in the target while it was copied")

    async def _take(self, checkpoint: Checkpoint) -> int | None:
        thread_id = checkpoint.thread_id
        self._count()
        lease = await self._target.acquire_lease(
            thread_id, owner=OWNER, ttl=self._ttl, save=checkpoint, expected=self._expected
        )
        if lease is None:
            held = await self._target.live_lease(thread_id)
            latest = None if self._expected is None else self._expected.sequence
            raise LeaseHeldError(thread_id, latest, "somebody" if held is None else held.owner)
        self._lease = lease
        return lease.saved

    async def _keep(self, lease: Lease) -> None:
        if self._clock.monotonic() >= self._renew_at:
            self._count()
            self._lease = await self._target.renew_lease(lease, ttl=self._ttl)

    def _count(self) -> None:
        self._renew_at = self._clock.monotonic() + self._ttl.total_seconds() / 3

    async def close(self) -> None:
        if self._lease is not None:
            await self._target.release_lease(self._lease)


async def _require_another(source: StorePorts, target: StorePorts, latest: LogEntry, ttl: timedelta) -> None:
    """Refuse a target that is the source, by whatever address: a lease that is taken there is seen here."""
    thread_id = latest.checkpoint.thread_id
    owner = f"{OWNER} {secrets.token_hex(8)}"
    lease = await target.acquire_lease(thread_id, owner=owner, ttl=ttl)
    if lease is None:
        held = await target.live_lease(thread_id)
        raise LeaseHeldError(thread_id, latest.sequence, "somebody" if held is None else held.owner)
    try:
        seen = await source.live_lease(thread_id)
    finally:
        await target.release_lease(lease)
    if seen is not None and seen.owner == owner:
        raise InvalidInputError("target", "is the source itself; name another store to copy to")


async def _require_beginning(source: StorePorts, target: StorePorts, thread_id: str, length: int, latest: int) -> None:
    """Refuse a thread of the target unless it is how the source's begins."""
    if length <= latest + 1 and await _digest(source, thread_id, length) == await _digest(target, thread_id, length):
        return
    raise ConflictError(
        thread_id,
        length - 1,
        "exists in the target with another log: copy it to another store, or purge it there if nobody needs it",
    )


async def _digest(store: StorePorts, thread_id: str, count: int) -> str:
    """Return the hash over the first `count` records of a log."""
    found = hashlib.sha256()
    async with aclosing(_entries(store, thread_id, 0, count)) as entries:
        async for entry in entries:
            # Sorted, since a delta keeps what a state is, not in which order its keys stand.
            record = json.dumps(encode_record(entry.checkpoint), sort_keys=True, separators=(",", ":"))
            found.update(record.encode() + b"\n")
    return f"sha256:{found.hexdigest()}"


async def _entries(store: StorePorts, thread_id: str, start: int, count: int) -> AsyncGenerator[LogEntry, None]:
    """Yield the checkpoints from `start` on until there are `count`.

    Raises:
        ConflictError: The log is shorter, since the thread was purged meanwhile.
    """
    while start < count:
        page = await store.get_log(thread_id, start=start, limit=min(PAGE, count - start))
        if not page.entries:
            raise ConflictError(thread_id, None, "was purged while it was copied")
        for entry in page.entries:
            yield entry
        start += len(page.entries)
