"""Callers of one thread, one after another."""

from __future__ import annotations

import asyncio

__all__ = ["Turns"]


class Turns:
    """Gives each thread a queue: whoever comes first goes first; threads do not wait for each other."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def of(self, thread_id: str) -> _Turn:
        """Return the thread's queue; enter it with ``async with``."""
        turn = self._turns.get(thread_id)
        if turn is None:
            turn = self._turns[thread_id] = _Turn(self._turns, thread_id)
        return turn


class _Turn:
    """A lock that is forgotten when nobody holds or wants it."""

    __slots__ = ("_lock", "_thread_id", "_turns", "_users")

    def __init__(self, turns: dict[str, _Turn], thread_id: str) -> None:
        self._turns = turns
        self._thread_id = thread_id
        self._lock = asyncio.Lock()
        self._users = 0

    async def __aenter__(self) -> None:
        self._users += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        self._users -= 1
        if not self._users:
            self._turns.pop(self._thread_id, None)
