"""Copying one thread."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Final

from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.codec import encode_record
from strata_core.copying._outcomes import CopyOutcome, ThreadCopy
from strata_core.copying._writer import OWNER, TargetWriter
from strata_core.errors import ConflictError, CorruptCheckpointError, InvalidInputError, LeaseHeldError, StrataError
from strata_core.ports import StorePorts
from strata_core.records import LogEntry

__all__ = ["TTL", "copy_thread"]

TTL: Final = timedelta(seconds=60)
"""How long a lease of a copy lives, unless told otherwise."""
_PAGE: Final = 50
"""How many checkpoints are read at once."""


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
        SchemaVersionError: A checkpoint is of a newer format, or a store was never set up.
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
        writer = TargetWriter(target, there, ttl, clock)
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
        page = await store.get_log(thread_id, start=start, limit=min(_PAGE, count - start))
        if not page.entries:
            raise ConflictError(thread_id, None, "was purged while it was copied")
        for entry in page.entries:
            yield entry
        start += len(page.entries)
