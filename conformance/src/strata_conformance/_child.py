"""One of several processes at work on one storage; `strata_conformance.suite._processes` starts it as a program.

Its standard input is a pickle of the module path, then one of the reference, the job and its arguments.  It opens the
store, says ``ready``, waits for a line, does the job and writes what came of it as JSON.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
import time
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

NOW: Final = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PATIENCE: Final = 30.0
"""Seconds after which a process gives up what it cannot get."""


def _checkpoint(**state: Any) -> Any:
    from strata_core.records import Checkpoint, CheckpointStatus

    return Checkpoint("t", CheckpointStatus.RUNNING, state, NOW)


async def save(store: Any, name: str, times: int) -> list[int]:
    """Save so many checkpoints; return their sequences."""
    return [await store.save(_checkpoint(by=name, n=n)) for n in range(times)]


async def count(store: Any, name: str, times: int) -> int:
    """Count the thread up so often, by saves on what was loaded; return how often that was refused."""
    from strata_core.errors import ConflictError

    refused = done = 0
    while done < times:
        entry = await store.load("t")
        n = 0 if entry is None else entry.checkpoint.frozen_state["n"]
        try:
            await store.save_if_latest(_checkpoint(by=name, n=n + 1), None if entry is None else entry.revision)
        except ConflictError:
            refused += 1
        else:
            done += 1
    return refused


async def hold(store: Any, name: str, times: int) -> list[int]:
    """Take the lease so often, and count the thread up while it is held; return the tokens."""
    tokens = []
    while len(tokens) < times:
        lease = await _acquired(store, name, timedelta(minutes=5))
        entry = await store.load("t")
        n = 0 if entry is None else entry.checkpoint.frozen_state["n"]
        await store.save_under_lease(_checkpoint(by=name, n=n + 1, token=lease.token), lease, release=True)
        tokens.append(lease.token)
    return tokens


async def outlast(store: Any, name: str) -> list[str]:
    """Take a short lease, say ``ready``, and use it once another process has it; return what that comes to."""
    from strata_core.errors import StrataError

    lease = await _acquired(store, name, timedelta(milliseconds=200))
    print("ready", flush=True)
    until = time.monotonic() + PATIENCE
    while (live := await store.live_lease("t")) is None or live.token == lease.token:
        if time.monotonic() > until:
            return ["nobody took the lease over"]
        await asyncio.sleep(0.01)
    outcomes = []
    for ask in (
        lambda: store.save_under_lease(_checkpoint(by=name, n=-1), lease),
        lambda: store.renew_lease(lease, ttl=timedelta(minutes=5)),
    ):
        try:
            outcomes.append(repr(await ask()))
        except StrataError as error:
            outcomes.append(type(error).__name__)
    return outcomes


async def take(store: Any, name: str) -> int:
    """Take the lease for good and save under it; return its token."""
    lease = await _acquired(store, name, timedelta(minutes=5))
    await store.save_under_lease(_checkpoint(by=name, n=1), lease)
    return int(lease.token)


async def _acquired(store: Any, name: str, ttl: timedelta) -> Any:
    until = time.monotonic() + PATIENCE
    while (lease := await store.acquire_lease("t", owner=name, ttl=ttl)) is None:
        if time.monotonic() > until:
            message = "the lease was never free"
            raise TimeoutError(message)
        await asyncio.sleep(0.002)
    return lease


def _opening(reference: Any) -> AbstractAsyncContextManager[Any]:
    from strata_core import open_store
    from strata_core.rows import RowBackend
    from strata_core.store import RowStore

    if isinstance(reference, str):
        return open_store(reference)
    opening = reference()
    return RowStore(opening) if isinstance(opening, RowBackend) else opening


async def _main(reference: Any, job: str, arguments: tuple[Any, ...]) -> object:
    jobs = {"save": save, "count": count, "hold": hold, "outlast": outlast, "take": take}
    async with _opening(reference) as store:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.buffer.readline)
        return await jobs[job](store, *arguments)


if __name__ == "__main__":
    # Both come from the parent process over a pipe that nobody else has.
    sys.path[:] = pickle.load(sys.stdin.buffer)  # noqa: S301
    print(json.dumps(asyncio.run(_main(*pickle.load(sys.stdin.buffer)))))  # noqa: S301
