"""The bare driver at its best: one row a step, and steps that wait go down together.

No conditions, no leases, no checks: what an ideal store would cost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from workload import advance_dict, order_dict

__all__ = ["Floor", "Step"]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Step(NamedTuple):
    """One row, and the head that tells of it."""

    thread: str
    sequence: int
    status: str
    text: str


class Floor:
    """Group commit, and a run of ten steps on it.

    Args:
        write: Writes the steps of a batch in one transaction.
        writers: How many batches may be under way.
    """

    def __init__(self, write: Callable[[list[Step]], Awaitable[None]], writers: int = 1) -> None:
        self._write = write
        self._free = writers
        self._waiting: list[tuple[Step, asyncio.Future[None]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def save(self, thread: str, sequence: int, status: str, text: str) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((Step(thread, sequence, status, text), future))
        if self._free:
            self._free -= 1
            task = asyncio.get_running_loop().create_task(self._flush())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await future

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._write([step for step, _ in batch])
            for _, future in batch:
                future.set_result(None)
            await asyncio.sleep(0)  # those who were waiting bring their next step
        self._free += 1

    async def run(self, thread: str) -> None:
        """Ten steps, eleven rows."""
        state = dict(order_dict())
        await self.save(thread, 0, "running", _encode(state))
        for sequence in range(1, 11):
            state |= advance_dict(state)  # type: ignore[arg-type]
            await self.save(thread, sequence, "running" if sequence < 10 else "completed", _encode(state))
