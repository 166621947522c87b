"""Connections of one server, shared by all who need one for a moment."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from strata_redis._connection import Connection

__all__ = ["Pool"]


class Pool:
    """At most `size` connections; who comes when all are in use waits for his turn.

    The driver's own blocking pool loses a wake-up when a waiter is cancelled at the wrong moment (its condition does,
    before Python 3.13); here a connection is handed to the next in line.

    Args:
        make: Makes a connection, not yet connected.
        size: At most this many.
        patience: How many seconds to wait for one.
    """

    def __init__(self, make: Callable[[], Connection], size: int, patience: float) -> None:
        self._make = make
        self._size = size
        self._patience = patience
        self._made = 0
        self._free: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection]] = deque()
        self._is_closed = False

    async def take(self) -> Connection:
        """Return a connection for the caller alone, connected or not.

        Raises:
            TimeoutError: None became free in time.
        """
        if self._free:
            return self._free.pop()
        if self._made < self._size:
            self._made += 1
            return self._make()
        future: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            async with asyncio.timeout(self._patience):
                return await future
        except BaseException:
            if future.done() and not future.cancelled():  # handed over while the caller was being cancelled
                self.give(future.result())
            future.cancel()
            raise

    def give(self, connection: Connection) -> None:
        """Give a connection back; it must have no answer under way."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(connection)
                return
        if self._is_closed:
            connection.abort()
        else:
            self._free.append(connection)

    async def close(self) -> None:
        """Disconnect what is free, and the rest when it is given back.  Cancelled, it has done so all the same."""
        self._is_closed = True
        free, self._free = self._free, []
        for connection in free:
            connection.abort()
        for connection in free:
            await connection.close()
