"""Callers of one thread, one after another."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Turns"]


class Turns:
    """Gives each thread a queue: whoever comes first goes first; threads do not wait for each other.

    A turn that nobody else wants costs two look-ups::

        if not turns.take(thread_id):
            await turns.wait(thread_id)
        try:
            ...
        finally:
            turns.give(thread_id)
    """

    def __init__(self) -> None:
        # The threads somebody has the turn of; None until somebody waits.
        self._queues: dict[str, deque[asyncio.Future[None]] | None] = {}

    def take(self, thread_id: str) -> bool:
        """Take the turn if nobody has it, and tell whether that was so."""
        if thread_id in self._queues:
            return False
        self._queues[thread_id] = None
        return True

    async def wait(self, thread_id: str) -> None:
        """Wait for the turn behind those who came before."""
        queue = self._queues[thread_id]
        if queue is None:
            queue = self._queues[thread_id] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it came just before the cancellation: pass it on
                self.give(thread_id)
            raise

    def give(self, thread_id: str) -> None:
        """Pass the turn to whoever waits next."""
        queue = self._queues[thread_id]
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._queues[thread_id]
