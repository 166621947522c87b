"""A connection and its thread: one function, one hop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import aiosqlite
from aiosqlite import core as _core

__all__ = ["Connection"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_CLOSED: Final = "the connection is closed"


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function on its thread in one hop.

    It leans on four things inside aiosqlite 0.22: the thread takes ``(future or None, function)`` from the queue
    ``_tx``, calls the function, and ends when that returns ``_STOP_RUNNING_SENTINEL``; ``_thread`` has not been started
    yet when ``__init__`` returns; ``_connection`` is the driver's.  `tests/test_connection.py` holds it to them.

    Different from its base:

    - The thread is a daemon, so that a forgotten `close` does not keep the process alive, and a forgotten connection
      ends it without a warning.
    - The answer is not lost with a closed event loop: the thread goes on, and the connection can be closed.
    - What is queued is an object without a telling repr, since aiosqlite logs it; state never belongs in a log.
    - An `open` that is cancelled leaves neither a thread nor an open file.

    Args:
        connect: Opens the driver's connection; called on the thread.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connect, iter_chunk_size=64)
        self._thread.daemon = True
        self._halted: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Start the thread and connect.  Once."""
        self._thread.start()
        try:
            await self._hop(self._connect_here)
        except BaseException:
            self.abandon()
            raise

    async def run(self, function: Callable[Concatenate[sqlite3.Connection, _P], _T], /, *args: _P.args) -> _T:  # type: ignore[valid-type]  # positional arguments only
        """Call ``function(connection, *args)`` on the connection's thread and return what it returns.

        A call that is cancelled before the thread came to it is not made; one under way is finished.
        """
        if not self._running:
            raise sqlite3.ProgrammingError(_CLOSED)
        return await self._hop(_on_driver, self, function, args)

    async def close(self) -> None:
        """Finish what is queued, close the connection and end the thread.  Idempotent, also when cancelled."""
        if self._thread.ident is None:
            return
        if self._running:
            self._halted = asyncio.get_running_loop().create_future()
            self._halt(self._halted)
        if self._halted is not None and self._halted.get_loop() is asyncio.get_running_loop():
            await asyncio.shield(self._halted)
        self._thread.join()

    def abandon(self) -> None:
        """Close the connection and end the thread, once what is under way is done, without waiting for that."""
        if self._running and self._thread.ident is not None:
            self._halt(None)

    def __del__(self) -> None:
        # The base class warns here; a store that was only read or that a killed task forgot needs no noise.
        if hasattr(self, "_thread"):
            self.abandon()

    def _connect_here(self) -> None:
        self._connection = self._connector()

    def _halt(self, halted: asyncio.Future[None] | None) -> None:
        self._running = False
        self._tx.put_nowait((None, _Halt(self, halted)))

    async def _hop(self, function: Callable[..., _T], *args: Any) -> _T:
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((None, _Hop(future, function, args)))
        return await future


def _on_driver(connection: Connection, function: Callable[..., _T], args: tuple[Any, ...]) -> _T:
    driver = connection._connection  # noqa: SLF001  # ours: a read-only file may be opened anew between two hops
    if driver is None:
        raise sqlite3.ProgrammingError(_CLOSED)
    return function(driver, *args)


class _Hop:
    """A queued call; it lets go of everything once it ran, since the waiting thread still refers to it."""

    __slots__ = ("args", "function", "future")

    def __init__(self, future: asyncio.Future[_T], function: Callable[..., _T], args: tuple[Any, ...]) -> None:
        self.future: Any = future
        self.function: Any = function
        self.args = args

    def __call__(self) -> None:
        future, function, args = self.future, self.function, self.args
        del self.future, self.function, self.args
        if future.cancelled():
            return
        try:
            answer = function(*args)
        except BaseException as error:  # noqa: BLE001  # every outcome belongs to the caller
            _post(future, _core.set_exception, error)
        else:
            _post(future, _core.set_result, answer)


class _Halt:
    """Closes the connection and ends the thread."""

    __slots__ = ("connection", "halted")

    def __init__(self, connection: Connection, halted: asyncio.Future[None] | None) -> None:
        self.connection: Connection | None = connection
        self.halted = halted

    def __call__(self) -> object:
        connection, halted = self.connection, self.halted
        del self.connection, self.halted
        if connection is not None:
            driver, connection._connection = connection._connection, None  # noqa: SLF001
            if driver is not None:
                with suppress(sqlite3.Error):
                    driver.close()
        if halted is not None:
            _post(halted, _core.set_result, None)
        return _core._STOP_RUNNING_SENTINEL  # noqa: SLF001


def _post(future: asyncio.Future[Any], function: Callable[..., None], value: object) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        future.get_loop().call_soon_threadsafe(function, future, value)
