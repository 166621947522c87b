"""Connections: taken from a pool for one statement each, and given back whatever comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, cast

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import Format
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from strata_core.errors import StoreClosedError, StoreUnavailableError, StrataError
from strata_postgres._address import Address
from strata_postgres._errors import REPEATABLE, translate
from strata_postgres._line import Line, cut, is_stale
from strata_postgres._parking import Parking

__all__ = ["Pool"]

_T = TypeVar("_T")
_Connection = AsyncConnection[tuple[Any, ...]]
_Record = tuple[Any, ...]
Arguments = Sequence[Any] | Mapping[str, Any]

_ATTEMPTS: Final = 10
"""How often a call that the server undid, because of what others did, is made."""
_RECONNECT: Final = 1.0
"""Seconds after which the pool forgets that it could not connect.

By itself it would wait twice as long after each failure, and keep calls waiting for a server that is back.  Whoever
waits asks again as often, which makes it connect at once.
"""


class _Connector:
    """Makes connections for the pool, and remembers why the last one failed: the pool only says that it timed out."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def connect(self, conninfo: str, **options: Any) -> _Connection:
        try:
            connection = await AsyncConnection.connect(conninfo, **options)
        except Exception as error:
            self.error = error
            raise
        self.error = None
        return connection


class Pool:
    """Connections in autocommit, without any state of a session: every call is one statement, sent at once.

    A call that is cancelled goes on to its end in the background, so that its connection comes back sound; `close`
    waits for it.  A server that does not answer within `command_timeout` loses the connection.

    Args:
        address: Where the database is.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        options = address.options
        self._timeout = options.command_timeout.total_seconds()
        self._connector = _Connector()
        self._connect_options: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": None,  # prepared statements are state of a session
            "client_encoding": "utf8",
            "connect_timeout": max(1, -int(-options.connect_timeout.total_seconds() // 1)),
        }
        self._pool = AsyncConnectionPool(
            address.conninfo,
            connection_class=cast("type[_Connection]", self._connector),
            kwargs=self._connect_options,
            min_size=options.min_connections,
            max_size=options.max_connections,
            reconnect_timeout=_RECONNECT,
            open=False,
            name="strata",
        )
        self._patience = options.pool_timeout.total_seconds()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting = 0
        self._parking = Parking(self._give_back, lambda: self._waiting > 0)
        self._closing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[_Connection]:
        """Lend a connection of its own, for a few statements; the server has `command_timeout` for all of them.

        Raises:
            StoreUnavailableError: The server cannot be reached, does not let us in, or went away.
        """
        try:
            connection = await self._connector.connect(self._address.conninfo, **self._connect_options)
        except psycopg.Error as error:
            raise translate(error, self._address, sent=False) from self._address.cause(error)
        timer = asyncio.get_running_loop().call_later(self._timeout, cut, connection)
        try:
            yield connection
        except psycopg.Error as error:
            if _is_due(timer):
                raise self._silence(maybe_written=False) from None
            raise translate(error, self._address) from self._address.cause(error)
        finally:
            timer.cancel()
            await connection.close()

    async def open(self) -> None:
        """Begin to make connections; waits for none."""
        await self._pool.open()

    async def close(self) -> None:
        """Wait for what is under way and close every connection, also when the caller is cancelled.  Idempotent."""
        self._closing = self._closing or asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._parking.close()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._pool.close()

    async def fetch(
        self, statement: str, arguments: Arguments, *, writing: bool = False, thread_id: str | None = None
    ) -> list[_Record]:
        """Run one statement and return its rows.

        A read whose connection turns out to be lost is made again, once; a write never is, unless the server said that
        it undid it.

        Raises:
            StrataError: Whatever went wrong, from the driver's error.
        """

        async def run(line: Line) -> list[_Record]:
            line.detach()
            timer = line.loop.call_later(self._timeout, line.cut)
            try:
                cursor = line.connection.cursor(binary=True)
                await cursor.execute(statement, arguments, prepare=False)
                return await cursor.fetchall()
            finally:
                timer.cancel()
                self._parking.park(line)

        return await asyncio.shield(self.start(self._attempt(run, writing=writing, thread_id=thread_id)))

    async def write(
        self,
        statement: bytes,
        values: Sequence[bytes | None],
        formats: Sequence[Format],
        *,
        thread_id: str | None = None,
    ) -> bytes:
        """Run one statement that writes, as `Line.ask` does, and return its value; otherwise as `fetch`.

        Raises:
            StrataError: Whatever went wrong, from the driver's error.
        """

        def ask(line: Line) -> Awaitable[bytes]:
            try:
                answer = line.ask(statement, values, formats, line.loop.time() + self._timeout)
            except psycopg.Error:
                self._parking.park(line)
                raise
            self._parking.begin(line)
            return answer

        line = self._parking.take()
        if line is not None:  # without a task: the statement goes on by itself
            try:
                return await ask(line)
            except psycopg.Error as error:
                if error.sqlstate not in REPEATABLE:
                    raise self._failure(error, line, writing=True, thread_id=thread_id) from self._cause(error, line)
        return await asyncio.shield(self.start(self._attempt(ask, writing=True, thread_id=thread_id)))

    def start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run work that goes on to its end when the caller is cancelled; `close` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen, also where the caller was cancelled: nothing is to be logged

    async def _attempt(self, run: Callable[[Line], Awaitable[_T]], *, writing: bool, thread_id: str | None) -> _T:
        lost = False
        for left in reversed(range(_ATTEMPTS)):
            line = await self._acquire()
            try:
                return await run(line)
            except psycopg.Error as error:
                if error.sqlstate in REPEATABLE and left:
                    continue
                if not writing and line.connection.closed and not (line.is_cut or lost):
                    lost = True
                    continue
                failure = self._failure(error, line, writing=writing, thread_id=thread_id)
                raise failure from self._cause(error, line)
        raise AssertionError("unreachable")

    def _failure(self, error: psycopg.Error, line: Line, *, writing: bool, thread_id: str | None) -> StrataError:
        if line.is_cut and isinstance(error, psycopg.OperationalError):
            return self._silence(maybe_written=writing)
        return translate(error, self._address, writing=writing, thread_id=thread_id)

    def _cause(self, error: psycopg.Error, line: Line) -> Exception | None:
        return None if line.is_cut else self._address.cause(error)

    def _silence(self, *, maybe_written: bool) -> StoreUnavailableError:
        problem = f"{self._address}: the server did not answer within {self._timeout:g} s"
        return StoreUnavailableError(problem, maybe_written=maybe_written)

    async def _acquire(self) -> Line:
        """Return a connection that was not closed by the other side while it lay there."""
        line = self._parking.take()
        if line is not None:
            return line
        self._waiting += 1
        try:
            return self._parking.line(await self._connection())
        finally:
            self._waiting -= 1

    async def _connection(self) -> _Connection:
        clock = asyncio.get_running_loop().time
        until = clock() + self._patience
        while True:
            try:
                connection = await self._pool.getconn(min(_RECONNECT, until - clock()))
            except PoolClosed:
                raise StoreClosedError(f"{self._address}: the store is not open") from None
            except PoolTimeout as error:
                if clock() < until:
                    continue
                why = self._connector.error or error
                raise translate(PoolTimeout(*why.args), self._address, sent=False) from self._address.cause(why)
            if not is_stale(connection):
                return connection
            await self._return(connection)

    def _give_back(self, connection: _Connection) -> None:
        self.start(self._return(connection))

    async def _return(self, connection: _Connection) -> None:
        if is_stale(connection):
            await connection.close()  # the pool makes another one in its place
        await self._pool.putconn(connection)


def _is_due(timer: asyncio.TimerHandle) -> bool:
    return timer.when() <= asyncio.get_running_loop().time()
