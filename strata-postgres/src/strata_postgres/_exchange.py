"""One statement to the server and its answer back, at half of what a cursor costs.

A cursor looks at the types of its arguments, parses the statement for them, and describes its result: all for nothing
where the statement is always the same and its arguments are text and bytes already.  Only the saves take this way; they
use libpq as `psycopg.pq` offers it, in the mode in which an asynchronous connection has it: it never blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

__all__ = ["exchange"]


async def exchange(
    connection: AsyncConnection[Any], statement: bytes, values: Sequence[bytes | None], formats: Sequence[Format]
) -> bytes:
    """Run a statement, unprepared, and return its one value as the server writes it.

    When the caller is cancelled the statement stays under way: the connection must then not be used again.

    Args:
        connection: Idle, in autocommit; nobody else uses it meanwhile.
        statement: With ``$1`` and so on.
        values: The arguments.  One in text ends before its first NUL.
        formats: Of each.

    Raises:
        psycopg.Error: What the server said, or that the connection is lost.
    """
    loop = asyncio.get_running_loop()
    server = connection.pgconn
    answer: asyncio.Future[PGresult] = loop.create_future()

    results: list[PGresult] = []

    def read() -> None:
        try:
            server.consume_input()
            while not server.is_busy():
                result = server.get_result()
                if result is None:  # the server is ready for more, so the transaction has ended
                    stop()
                    answer.set_result(results[-1])
                    return
                results.append(result)
        except psycopg.Error as error:
            stop()
            if results and results[-1].status == ExecStatus.FATAL_ERROR:  # why the server went
                answer.set_result(results[-1])
            else:  # also behind a value: it comes before the transaction is committed
                answer.set_exception(error)

    def write() -> None:
        try:
            if server.flush():
                return
        except psycopg.Error:
            pass  # reading tells why
        loop.remove_writer(socket)

    def stop() -> None:
        """At once, since the number of a socket that is closed may be another one's in the next turn of the loop."""
        loop.remove_reader(socket)
        loop.remove_writer(socket)

    server.send_query_params(statement, values, param_formats=formats)
    socket = server.socket
    loop.add_reader(socket, read)
    try:
        if server.flush():
            loop.add_writer(socket, write)
        result = await answer
    except (asyncio.CancelledError, psycopg.Error):
        if not answer.done() or answer.cancelled():
            stop()
        raise
    if result.status != ExecStatus.TUPLES_OK:
        raise error_from_result(result)
    value = result.get_value(0, 0)
    assert value is not None
    return value
