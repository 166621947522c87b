"""Several processes at work on one storage; `strata_conformance.suite._processes` starts it as a program.

Its standard input is a pickle of the module path, then one of the reference and the jobs.  It forks a process for each
job, before it has opened anything; each opens the store, and when all have, they begin.  Its standard output is the
list of what came of the jobs, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
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
    tokens: list[int] = []
    while len(tokens) < times:
        lease = await _acquired(store, name, timedelta(minutes=5))
        entry = await store.load("t")
        n = 0 if entry is None else entry.checkpoint.frozen_state["n"]
        await store.save_under_lease(_checkpoint(by=name, n=n + 1, token=lease.token), lease, release=True)
        tokens.append(lease.token)
    return tokens


async def outlast(store: Any, name: str) -> list[str]:
    """Take a short lease, and use it once another process has it; return what that comes to."""
    from strata_core.errors import StrataError

    lease = await _acquired(store, name, timedelta(milliseconds=300), save=_checkpoint(by=name, n=0))

    async def taken_over() -> bool:
        live = await store.live_lease("t")
        return live is not None and live.token != lease.token

    await _until(taken_over)
    outcomes: list[str] = []
    for call in (
        store.save_under_lease(_checkpoint(by=name, n=-1), lease),
        store.renew_lease(lease, ttl=timedelta(minutes=5)),
    ):
        try:
            outcomes.append(repr(await call))
        except StrataError as error:
            outcomes.append(type(error).__name__)
    return outcomes


async def take_over(store: Any, name: str) -> int:
    """Take the lease when that of another process has expired, and save under it; return its token."""

    async def begun() -> bool:
        return await store.load("t") is not None

    await _until(begun)
    lease = await _acquired(store, name, timedelta(minutes=5))
    await store.save_under_lease(_checkpoint(by=name, n=1), lease)
    return int(lease.token)


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    until = time.monotonic() + PATIENCE
    while not await holds():
        if time.monotonic() > until:
            message = "the other process never came to it"
            raise TimeoutError(message)
        await asyncio.sleep(0.002)


async def _acquired(store: Any, name: str, ttl: timedelta, save: Any = None) -> Any:
    until = time.monotonic() + PATIENCE
    while (lease := await store.acquire_lease("t", owner=name, ttl=ttl, save=save)) is None:
        if time.monotonic() > until:
            message = "the lease was never free"
            raise TimeoutError(message)
        await asyncio.sleep(0.002)
    return lease


JOBS: Final = {job.__name__: job for job in (save, count, hold, outlast, take_over)}


def _opening(reference: Any) -> AbstractAsyncContextManager[Any]:
    from strata_core import open_store
    from strata_core.rows import RowBackend
    from strata_core.store import RowStore

    if isinstance(reference, str):
        return open_store(reference)
    opening = reference()
    return RowStore(opening) if isinstance(opening, RowBackend) else opening


async def _work(reference: Any, job: tuple[Any, ...], ready: int, go: int) -> object:
    async with _opening(reference) as store:
        os.write(ready, b"+")
        await asyncio.to_thread(os.read, go, 1)
        return await JOBS[job[0]](store, *job[1:])


def _child(reference: Any, job: tuple[Any, ...], ready: int, go: int, result: int) -> int:
    try:
        outcome = json.dumps(asyncio.run(_work(reference, job, ready, go)))
    except BaseException:  # noqa: BLE001  # it goes to the report of the test
        traceback.print_exc()
        os.write(ready, b"-")
        return 1
    os.write(result, outcome.encode())
    return 0


def main() -> int:
    """Do the jobs; return 1 when one failed."""
    # Both come from the parent process over a pipe that nobody else has.
    sys.path[:] = pickle.load(sys.stdin.buffer)  # noqa: S301
    reference, jobs = pickle.load(sys.stdin.buffer)  # noqa: S301
    ready, go = os.pipe(), os.pipe()
    children = []
    for job in jobs:
        result = os.pipe()
        pid = os.fork()
        if pid == 0:
            os._exit(_child(reference, job, ready[1], go[0], result[1]))
        os.close(result[1])
        children.append((pid, result[0]))
    for _ in jobs:
        os.read(ready[0], 1)
    os.write(go[1], b"." * len(jobs))
    outcomes, failed = [], False
    for pid, fd in children:
        with open(fd, "rb") as pipe:  # noqa: PTH123  # a descriptor, not a path
            outcomes.append(pipe.read())
        failed |= os.waitpid(pid, 0)[1] != 0
    if not failed:
        print(json.dumps([json.loads(outcome) for outcome in outcomes]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
