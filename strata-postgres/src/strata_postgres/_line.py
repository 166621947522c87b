"""A connection that is kept for saves: one write to the socket, one read of the answer, and nothing else.

A cursor looks at the types of its arguments, parses the statement for them, and describes its result: all for nothing
where the statement is always the same and its arguments are text and bytes already.  Its socket is watched anew for
each statement.  Only the saves take this way; they use libpq as `psycopg.pq` offers it, in the mode in which an
asynchronous connection has it: it never blocks.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

__all__ = ["Line", "cut", "is_stale"]


class Line:
    """Sends statements on a connection, one at a time, unprepared, in autocommit.

    A statement goes on to its end also when nobody waits for it any more.

    Args:
        connection: Idle.  While `is_attached`, nobody else may use it.
        ended: Called with the line when a statement has come to its end, or the connection with it.
        lost: Called with the line when the server says something without being asked: that it goes.

    Attributes:
        connection: The connection.
        loop: Its event loop.
        is_attached: Whether the socket is watched.
        until: When the statement under way must be answered, on the loop's clock.
        is_cut: It was not.
    """

    def __init__(
        self,
        connection: AsyncConnection[Any],
        ended: Callable[[Line], None],
        lost: Callable[[Line], None],
    ) -> None:
        self.connection: Final = connection
        self.until = 0.0
        self.is_cut = False
        self._server: Final = connection.pgconn
        self._socket: Final = self._server.socket
        self.loop: Final = asyncio.get_running_loop()
        self._ended = ended
        self._lost = lost
        self._poll: Final = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._answer: asyncio.Future[bytes] | None = None
        self._results: list[PGresult] = []
        self.is_attached = False

    @property
    def is_stale(self) -> bool:
        """Whether the server has said something without being asked.  Costs no round trip."""
        return bool(self.connection.closed or self._poll.poll(0))

    def ask(
        self, statement: bytes, values: Sequence[bytes | None], formats: Sequence[Format], until: float
    ) -> asyncio.Future[bytes]:
        """Send a statement; the future gets its one value, as the server writes it.

        Args:
            statement: With ``$1`` and so on.
            values: The arguments.  One in text ends before its first NUL.
            formats: Of each.
            until: See `until`.

        Raises:
            psycopg.Error: What the server said, or that the connection is lost; by the future too.
        """
        self.until = until
        self._server.send_query_params(statement, values, param_formats=formats)
        answer = self._answer = self.loop.create_future()
        if not self.is_attached:
            self.loop.add_reader(self._socket, self._read)
            self.is_attached = True
        try:
            if self._server.flush():
                self.loop.add_writer(self._socket, self._write)
        except psycopg.Error:
            pass  # reading tells why
        return answer

    def detach(self) -> None:
        """Leave the socket alone, so that others can use the connection.

        At once where the connection is closed: the number of its socket may be another one's in the next turn.
        """
        if self.is_attached:
            self.is_attached = False
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)

    def cut(self) -> None:
        """End the connection under the statement."""
        self.is_cut = True
        cut(self.connection)

    def _read(self) -> None:
        if self._answer is None:
            self.detach()
            self._lost(self)
            return
        server, results = self._server, self._results
        try:
            server.consume_input()
            while not server.is_busy():
                result = server.get_result()
                if result is None:  # the server is ready for more, so the transaction has ended
                    self._end(None)
                    return
                results.append(result)
        except psycopg.Error as error:
            self.detach()
            if results and results[-1].status == ExecStatus.FATAL_ERROR:  # why the server went
                self._end(None)
            else:  # also behind a value: it comes before the transaction is committed
                self._end(error)

    def _end(self, error: psycopg.Error | None) -> None:
        answer, self._answer = self._answer, None
        results, self._results = self._results, []
        assert answer is not None
        if not answer.done():
            if error is not None:
                answer.set_exception(error)
            elif results[-1].status != ExecStatus.TUPLES_OK:
                answer.set_exception(error_from_result(results[-1]))
            else:
                value = results[-1].get_value(0, 0)
                assert value is not None
                answer.set_result(value)
        self._ended(self)

    def _write(self) -> None:
        try:
            if self._server.flush():
                return
        except psycopg.Error:
            pass  # reading tells why
        self.loop.remove_writer(self._socket)


def is_stale(connection: AsyncConnection[Any]) -> bool:
    """Tell whether the server has said something without being asked: that it goes.  Costs no round trip."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def cut(connection: AsyncConnection[Any]) -> None:
    """End a connection under a call that waits on it: the driver finds the other side gone, and cleans up by itself."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
