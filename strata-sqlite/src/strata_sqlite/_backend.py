"""The SQLite row backend."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from strata_core.capabilities import Capability
from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.errors import InvalidInputError, ReadOnlyError, StoreClosedError, UsageError
from strata_core.options import Setup
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend
from strata_sqlite._commit import commit
from strata_sqlite._connection import Connection
from strata_sqlite._errors import translated
from strata_sqlite._files import check, open_reader, open_writer, set_up, too_old
from strata_sqlite._known import KnownHeads
from strata_sqlite._list import list_heads
from strata_sqlite._options import SqliteOptions
from strata_sqlite._read import read_blobs, read_head, read_rows
from strata_sqlite._readonly import ReadOnlyConnection
from strata_sqlite._schema import VERSION

__all__ = ["SqliteBackend"]

_T = TypeVar("_T")

_OLDEST_READ: Final = 1
"""The oldest schema version that is read without an upgrade."""

_CAPABILITIES: Final = frozenset(
    {
        Capability.QUERY,
        Capability.RETENTION,
        Capability.DELTAS,
        Capability.OFFLOAD,
        Capability.OWN_BLOBS,
        Capability.EXTERNAL_BLOBS,
        Capability.MULTI_PROCESS,
        Capability.READ_ONLY,
    }
)


class SqliteBackend(RowBackend):
    """Keeps threads in one SQLite file, which several processes may share.

    One connection writes: a batch is one transaction and one hop to its thread.  Two read, one of them listings, so
    that a long listing holds up neither writes nor loads.  No lock or transaction is held between two calls; the heads
    written last are kept in memory, and taken for true as long as no other connection has written.

    Args:
        path: The database file; a relative one is taken from the current folder when the store is opened.
        options: See `SqliteOptions`.
        clock: Judges leases.  All processes that share the file share a machine, and so a clock.

    Raises:
        InvalidInputError: The path is empty, holds a NUL, or is ``:memory:``.
    """

    capabilities = _CAPABILITIES

    def __init__(
        self, path: str | os.PathLike[str], *, options: SqliteOptions | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        name = os.fspath(path)
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidInputError("path", f"must be the path of a file, not {name!r}")
        if name == ":memory:":
            raise InvalidInputError("path", "':memory:' cannot be shared by connections; use the store memory://")
        self._name = name
        self._path = name
        self._options = SqliteOptions() if options is None else options
        self._patience = self._options.busy_timeout.total_seconds()
        self._clock = clock
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._lister: Connection | None = None
        self._known = KnownHeads()
        self._read_only = False
        self._missing: asyncio.Lock | None = None  # while the file is not there, and opening it was not to create it
        self._version = 0  # of the file's schema, as far as it was looked at

    def __repr__(self) -> str:
        return f"SqliteBackend({self._name!r})"

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if self._reader is not None or self._writer is not None or self._missing is not None:
            raise UsageError(f"{self._name}: the backend is open already")
        self._path = os.path.abspath(self._name)  # noqa: ASYNC240, PTH100  # looks at no disk
        self._read_only = read_only
        self._version = 0
        self._known = KnownHeads()  # of the writer that is opened now or later, and only used on its thread
        must_exist = not read_only and setup is Setup.NEVER
        if must_exist and not os.path.exists(self._path):  # noqa: ASYNC240, PTH110  # one look
            self._missing = asyncio.Lock()
        else:
            await self._connect(create=setup is Setup.AUTO)

    async def _connect(self, *, create: bool) -> None:
        connections: list[Connection] = []

        async def start(connection: Connection) -> Connection:
            connections.append(connection)
            await connection.open()
            return connection

        try:
            with translated(self._path):
                if self._read_only:
                    writer = None
                    reader, lister = await asyncio.gather(
                        start(ReadOnlyConnection(self._path, self._options)),
                        start(ReadOnlyConnection(self._path, self._options)),
                    )
                else:
                    writer = await start(Connection(partial(open_writer, self._path, self._options, create=create)))
                    read = partial(open_reader, self._path, self._options)
                    reader, lister = await asyncio.gather(start(Connection(read)), start(Connection(read)))
        except BaseException:
            for connection in connections:
                connection.abandon()
            raise
        self._writer, self._reader, self._lister = writer, reader, lister
        if create and not self._read_only:
            self._version = VERSION

    async def _find(self, missing: asyncio.Lock, *, create: bool = False) -> None:
        """Open the file that was not there; `create` makes it."""
        async with missing:
            if self._missing is None:
                return  # whoever had the lock found it
            if not create and not os.path.exists(self._path):  # noqa: ASYNC240, PTH110  # one look
                raise too_old(self._path, 0)
            await self._connect(create=create)
            self._missing = None

    async def close(self) -> None:
        self._missing = None
        if self._writer is not None:
            with suppress(sqlite3.Error):
                await self._writer.run(_let_go_of_log)
        # The writer last: the connection that closes last removes the write-ahead log, and a reader could not.
        for name in ("_lister", "_reader", "_writer"):
            connection: Connection | None = getattr(self, name)
            if connection is not None:
                await connection.close()
                setattr(self, name, None)

    async def setup(self) -> None:
        if self._missing is not None:
            await self._find(self._missing, create=True)
        await self._write(set_up, self._path, self._options)
        self._version = VERSION

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        thread_id = batch[0].thread_id if len(batch) == 1 else None
        if self._version < VERSION:
            return await self._write(
                self._checked, VERSION, commit, self._known, self._clock, batch, self._patience, thread_id=thread_id
            )
        return await self._write(commit, self._known, self._clock, batch, self._patience, thread_id=thread_id)

    async def read_head(self, thread_id: str) -> Head | None:
        return await self._read(self._reader, thread_id, read_head, self._clock, thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await self._read(self._reader, thread_id, read_rows, thread_id, first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return await self._read(self._reader, thread_id, read_blobs, thread_id, digests)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        return await self._read(self._lister, None, list_heads, self._clock, query)

    async def _write(self, function: Callable[..., _T], *args: Any, thread_id: str | None = None) -> _T:
        if self._read_only and self._reader is not None:
            raise ReadOnlyError(f"{self._path}: the store was opened read-only")
        if self._writer is None and self._missing is not None:
            await self._find(self._missing)
        if self._writer is None:
            raise StoreClosedError(f"{self._name}: the store is not open")
        with translated(self._path, thread_id):
            return await self._writer.run(function, *args)

    async def _read(
        self, connection: Connection | None, thread_id: str | None, function: Callable[..., _T], *args: Any
    ) -> _T:
        if connection is None and self._missing is not None:
            await self._find(self._missing)
            connection = self._lister if function is list_heads else self._reader
        if connection is None:
            raise StoreClosedError(f"{self._name}: the store is not open")
        if not self._version:
            function, args = self._checked, (_OLDEST_READ, function, *args)
        with translated(self._path, thread_id):
            if isinstance(connection, ReadOnlyConnection):
                return await connection.read(function, *args)
            return await connection.run(function, *args)

    def _checked(self, db: sqlite3.Connection, oldest: int, function: Callable[..., _T], *args: Any) -> _T:
        """Look at the schema before the call, in the same hop; the answer is remembered."""
        self._version = check(db, self._path, oldest=oldest)
        return function(db, *args)


def _let_go_of_log(db: sqlite3.Connection) -> None:
    """Empty the write-ahead log, so that none is left behind even where a reader of another process stays."""
    timeout = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute("PRAGMA busy_timeout = 0")  # whoever is in the way empties it himself, or leaves it to the next open
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.execute(f"PRAGMA busy_timeout = {timeout:d}")  # a close that is cancelled leaves the connection in use
