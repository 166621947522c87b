"""Blocking work in a thread, without ghosts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, cast

__all__ = ["run_to_the_end"]

T = TypeVar("T")


async def run_to_the_end(work: Callable[[], T], executor: Executor | None = None) -> T:
    """Run `work` in a thread; a cancelled caller leaves only once it is known whether the work was done.

    Work that has not begun when the caller is cancelled never begins.  Work that has begun is waited for: left behind,
    it could put a blob after a later delete, or delete one that was put later.

    Args:
        work: What blocks.
        executor: Whose thread it is; None is the event loop's.
    """
    gate = threading.Lock()
    begun = abandoned = False

    def run() -> T | None:
        nonlocal begun
        with gate:
            if abandoned:
                return None
            begun = True
        return work()

    future = asyncio.get_running_loop().run_in_executor(executor, run)
    try:
        return cast("T", await asyncio.shield(future))  # None only for work that nobody waits for
    except asyncio.CancelledError:
        with gate:
            abandoned = not begun
        while begun and not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:  # cancelled again: the answer stays the same
                continue
        if future.done() and not future.cancelled():
            future.exception()  # seen: the caller asked to be left alone
        raise
