"""Connections that are taken from the driver's pool and kept between calls, which costs less than giving them back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from strata_postgres._line import Line

__all__ = ["Parking"]

_KEPT: Final = 60.0
"""Seconds after which a connection goes back to the pool, which closes those that are too many or too old."""
_SLACK: Final = 0.001
"""A timer may fire so much before its time."""


class Parking:
    """Keeps idle connections, the last used first, and watches over those that are in use for a save.

    Args:
        give_back: Gives a connection that is not used any more to the pool.
        is_wanted: Whether somebody waits for a connection of the pool.
    """

    def __init__(self, give_back: Callable[[AsyncConnection[Any]], object], is_wanted: Callable[[], bool]) -> None:
        self._give_back = give_back
        self._is_wanted = is_wanted
        self._idle: list[Line] = []
        self._busy: set[Line] = set()
        self._since: dict[Line, float] = {}  # of all of them: when they came from the pool
        self._quiet: asyncio.Future[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closing = False

    def line(self, connection: AsyncConnection[Any]) -> Line:
        """Return the line of a connection from the pool; in use."""
        line = Line(connection, self._ended, self._lost)
        self._since[line] = line.loop.time()
        return line

    def take(self) -> Line | None:
        """Return an idle line that the server has not left, or None."""
        while self._idle:
            line = self._idle.pop()
            if not line.is_stale:
                return line
            self._drop(line)
        return None

    def begin(self, line: Line) -> None:
        """Watch over a line whose statement was sent: it is cut when the answer is overdue, and parked behind it."""
        self._busy.add(line)
        if self._watch is None:
            self._watch = line.loop.call_at(line.until, self._cut_overdue)

    def park(self, line: Line) -> None:
        """Keep a line that is idle again, if its connection is sound and nobody waits for one."""
        is_idle = line.connection.pgconn.transaction_status == TransactionStatus.IDLE
        if not is_idle or self._is_closing or self._is_wanted() or self._is_old(line):
            self._drop(line)
            return
        self._idle.append(line)
        if self._sweep is None:
            self._sweep = line.loop.call_later(_KEPT, self._give_old_back)

    async def close(self) -> None:
        """Wait for the lines that are in use, and give all back."""
        self._is_closing = True
        while self._busy:
            self._quiet = self._quiet or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._quiet)
        while self._idle:
            self._drop(self._idle.pop())
        for timer in (self._watch, self._sweep):
            if timer is not None:
                timer.cancel()

    def _ended(self, line: Line) -> None:
        self._busy.discard(line)
        self.park(line)
        if self._quiet is not None and not self._busy:
            self._quiet.set_result(None)
            self._quiet = None

    def _lost(self, line: Line) -> None:
        if line in self._idle:
            self._idle.remove(line)
            self._drop(line)

    def _drop(self, line: Line) -> None:
        line.detach()
        del self._since[line]
        self._give_back(line.connection)

    def _is_old(self, line: Line) -> bool:
        return line.loop.time() - self._since[line] > _KEPT

    def _give_old_back(self) -> None:
        self._sweep = None
        idle, self._idle = self._idle, []
        for line in idle:
            self.park(line)  # which gives back what is old, and comes again for the others

    def _cut_overdue(self) -> None:
        self._watch = None
        now = asyncio.get_running_loop().time() + _SLACK
        left = [line for line in self._busy if not line.is_cut]
        for line in left:
            if line.until <= now:
                line.cut()
        waiting = [line.until for line in left if not line.is_cut]
        if waiting:
            self._watch = asyncio.get_running_loop().call_at(min(waiting), self._cut_overdue)
