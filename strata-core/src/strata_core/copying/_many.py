"""Copying many threads, several at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from datetime import timedelta

from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.copying._one import TTL, copy_thread
from strata_core.copying._outcomes import CopyRefused, ThreadCopy
from strata_core.errors import ConflictError, CorruptCheckpointError, InvalidInputError, SchemaVersionError
from strata_core.ports import StorePorts

__all__ = ["copy_threads"]


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
        InvalidInputError: `concurrency` is not positive, or `thread_ids` is one str, or holds something else than str.
        StoreUnavailableError: A store did not answer; what has been yielded is copied.
        UsageError: A store is closed, or the target read-only.
    """
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidInputError("concurrency", f"must be a positive int, not {concurrency!r}")
    waiting = deque(dict.fromkeys(_checked(thread_ids)))
    running: set[asyncio.Task[ThreadCopy | CopyRefused]] = set()
    try:
        while True:
            while waiting and len(running) < concurrency:
                task = asyncio.create_task(_outcome(source, target, waiting.popleft(), ttl, clock))
                task.add_done_callback(_see)
                running.add(task)
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        await _end(running)


def _checked(thread_ids: object) -> Iterator[str]:
    if isinstance(thread_ids, str) or not isinstance(thread_ids, Iterable):
        raise InvalidInputError(
            "thread_ids", f"must be several IDs, such as a list, and is one {type(thread_ids).__name__}"
        )
    for number, thread_id in enumerate(thread_ids):
        if type(thread_id) is not str:
            raise InvalidInputError(f"thread_ids[{number}]", f"must be a str, not {type(thread_id).__name__}")
        yield thread_id


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
    except (ConflictError, CorruptCheckpointError, InvalidInputError, SchemaVersionError) as error:
        return CopyRefused(thread_id, error)
