"""Reading a file without the right to write to it, or to its folder.

A reader of a file in WAL mode needs the ``-shm`` file, which it may not be able to make.  Without a ``-wal`` file
nobody is writing and nothing waits to be recovered: the file is complete, and ``immutable=1`` reads it without any
other.  That holds for one moment only.  So around every read it is looked at whether the file is still the same; if
not, it is opened anew and read again, with ``mode=ro`` while there is a ``-wal``.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from strata_core.errors import StoreBusyError, StoreUnavailableError
from strata_sqlite._connection import Connection
from strata_sqlite._files import MISSING, connect, identify
from strata_sqlite._options import SqliteOptions

__all__ = ["ReadOnlyConnection"]

_T = TypeVar("_T")

_ATTEMPTS: Final = 20
_HAS_LOG: Final[tuple[int, ...]] = ()
"""The state of a file that has a ``-wal``: SQLite itself sees what changes."""
_TICK: Final = 20_000_000
"""Nanoseconds after which another write shows in a file's time: its clock ticks every 10 ms at the slowest."""


class ReadOnlyConnection(Connection):
    """A connection that never writes.

    Args:
        path: The database file, absolute.
        options: Its `busy_timeout` counts.
    """

    def __init__(self, path: str, options: SqliteOptions) -> None:
        super().__init__(self._open_file)
        self._path = path
        self._options = options
        self._seen: tuple[int, ...] | None = None

    async def read(self, function: Callable[..., _T], *args: Any) -> _T:
        """Call ``function(connection, *args)`` on one state of the file."""
        return await self.run(self._guarded, function, args)

    def _guarded(self, driver: sqlite3.Connection, function: Callable[..., _T], args: tuple[Any, ...]) -> _T:
        for _ in range(_ATTEMPTS):
            if self._seen is None or self._seen != self._look():
                self._seen = None
                with suppress(sqlite3.Error):
                    driver.close()
                self._connection = driver = self._open_file()
            try:
                answer = function(driver, *args)
            except sqlite3.Error:
                if self._is_unchanged():
                    raise
            else:
                if self._is_unchanged():
                    return answer
        raise StoreBusyError(f"{self._path}: the file changes faster than it can be read; try again")

    def _is_unchanged(self) -> bool:
        return self._seen == self._look()

    def _look(self) -> tuple[int, ...]:
        """Return what tells one state of the file from another; `_HAS_LOG` while there is a ``-wal``."""
        if os.path.exists(self._path + "-wal"):  # noqa: PTH110  # Path.exists raises where a folder is closed
            return _HAS_LOG
        try:
            now = os.stat(self._path)  # noqa: PTH116  # one call instead of a Path a read
        except FileNotFoundError:
            raise StoreUnavailableError(f"{self._path}: {MISSING}") from None
        except OSError as error:
            raise StoreUnavailableError(f"{self._path}: the database file cannot be read: {error}") from error
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns

    def _open_file(self) -> sqlite3.Connection:
        seen = self._look()
        while seen != _HAS_LOG and 0 <= time.time_ns() - seen[-1] < _TICK:
            time.sleep(_TICK / 1e9)  # written a moment ago: another write in the same tick would look the same
            seen = self._look()
        db = connect(self._path, "ro", self._options, immutable=seen != _HAS_LOG)
        try:
            db.execute("PRAGMA query_only = ON")
            db.execute("PRAGMA temp_store = MEMORY")
            identify(db, self._path)
        except sqlite3.Error as error:
            db.close()
            if seen == _HAS_LOG and error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
                raise StoreUnavailableError(
                    f"{self._path}: its -wal file has to be read, and for that a -shm file be made beside it, which "
                    "is not allowed here; open the store once for writing, or give write access to the folder"
                ) from error
            raise
        except BaseException:
            db.close()
            raise
        self._seen = seen
        return db
