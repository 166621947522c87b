"""How the driver's connections are opened, set up and told from foreign files."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from strata_core.errors import SchemaVersionError, StoreUnavailableError
from strata_sqlite._commit import roll_back
from strata_sqlite._locking import POLL, begin
from strata_sqlite._options import SqliteOptions, Synchronous
from strata_sqlite._schema import APPLICATION_ID, PAGE_SIZE, STEPS, VERSION

__all__ = ["MISSING", "check", "connect", "identify", "open_reader", "open_writer", "set_up", "too_old"]

_OLDEST_SQLITE: Final = (3, 35, 0)
MISSING: Final = 'the database file does not exist; open it for writing with setup="auto" to create it'
_STATEMENTS_KEPT: Final = 128
"""Prepared statements a connection keeps: those of every size of batch."""


def connect(path: str, mode: str, options: SqliteOptions, *, immutable: bool = False) -> sqlite3.Connection:
    """Open a connection in autocommit; `mode` is ``ro``, ``rw`` or ``rwc``.

    Raises:
        StoreUnavailableError: The file cannot be opened.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreUnavailableError(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
    uri = f"file:{quote(os.fsencode(path))}?mode={mode}" + ("&immutable=1" if immutable else "")
    try:
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=options.busy_timeout.total_seconds(),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS_KEPT,
        )
    except sqlite3.Error as error:
        raise StoreUnavailableError(f"{path}: {_why_not(path, mode)} ({error})") from error


def _why_not(path: str, mode: str) -> str:
    folder = os.path.dirname(path)  # noqa: PTH120
    # Not pathlib, whose questions raise where a folder is closed.
    if os.path.isdir(path):  # noqa: PTH112
        return "is a folder, not a database file"
    if not os.path.isdir(folder):  # noqa: PTH112
        return f"the folder {folder} does not exist"
    if mode != "rwc" and not os.path.exists(path):  # noqa: PTH110
        return MISSING
    return "the database file cannot be opened; check its permissions and those of its folder"


def open_writer(path: str, options: SqliteOptions, *, create: bool) -> sqlite3.Connection:
    """Open the connection that writes; `create` makes the file, and makes or upgrades the tables."""
    db = connect(path, "rwc" if create else "rw", options)
    try:
        version = identify(db, path)
        db.execute(f"PRAGMA synchronous = {options.synchronous.value}")
        if options.synchronous is Synchronous.FULL:
            db.execute("PRAGMA fullfsync = ON")
        if create:
            _make(db, path, options, version)
        db.execute(f"PRAGMA busy_timeout = {1000 * POLL:.0f}")
    except BaseException:
        db.close()
        raise
    return db


def open_reader(path: str, options: SqliteOptions) -> sqlite3.Connection:
    """Open a connection beside a writer of the same store."""
    db = connect(path, "rw", options)
    try:
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        db.close()
        raise
    return db


def identify(db: sqlite3.Connection, path: str) -> int:
    """Return the schema version of the file, 0 for an empty one.  Writes nothing.

    Raises:
        SchemaVersionError: The file is of a newer schema, or not ours.
    """
    try:
        application_id, version, tables = db.execute(
            "SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id AS a, pragma_user_version AS v"
        ).fetchone()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_NOTADB:
            raise
        raise _foreign(path, "it is not an SQLite database") from error
    if application_id == APPLICATION_ID:
        if version > VERSION:
            raise SchemaVersionError(
                f"{path}: the database has schema version {version}, and this release of strata-sqlite knows up to "
                f"{VERSION}; upgrade strata-sqlite",
                found=str(version),
                supported=str(VERSION),
            )
        if version > 0:
            return int(version)
    if application_id or version or tables:
        raise _foreign(path, "it holds the tables of something else")
    return 0


def _foreign(path: str, why: str) -> SchemaVersionError:
    return SchemaVersionError(
        f"{path}: the file is no database of Strata: {why}; give the path of a new file",
        found="unknown",
        supported=str(VERSION),
    )


def check(db: sqlite3.Connection, path: str, *, oldest: int) -> int:
    """Return the schema version of a file that has at least `oldest`.

    Raises:
        SchemaVersionError: It is older, newer or not set up.
    """
    version = identify(db, path)
    if version < oldest:
        raise too_old(path, version)
    return version


def too_old(path: str, version: int) -> SchemaVersionError:
    """Return the error for a file of an older schema version; 0 is one without, or no file at all."""
    state = f"has schema version {version}" if version else "was never set up"
    return SchemaVersionError(
        f'{path}: the database {state}; call store.setup() once, or open it for writing with setup="auto"',
        found=str(version) if version else "none",
        supported=str(VERSION),
    )


def set_up(db: sqlite3.Connection, path: str, options: SqliteOptions) -> None:
    """Create or upgrade the tables, and make the file durable.  Idempotent, also from many processes at once."""
    _make(db, path, options, identify(db, path))


def _make(db: sqlite3.Connection, path: str, options: SqliteOptions, version: int) -> None:
    if version == 0:
        db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    _use_wal(db, path, options)
    if version < VERSION:
        _upgrade(db, path, options)
    _sync_folder(path)


def _use_wal(db: sqlite3.Connection, path: str, options: SqliteOptions) -> None:
    # Changing the mode needs the file alone, and SQLite does not always wait for it with its own busy handler.
    deadline = time.monotonic() + options.busy_timeout.total_seconds()
    while True:
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise StoreUnavailableError(
                f"{path}: the file system does not support SQLite's write-ahead log; use a local disk"
            )
        return


def _upgrade(db: sqlite3.Connection, path: str, options: SqliteOptions) -> None:
    begin(db, options.busy_timeout.total_seconds())
    try:
        version = identify(db, path)
        for step in STEPS[version:]:
            for statement in step:
                db.execute(statement)
        if version < VERSION:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except BaseException:
        roll_back(db)
        raise


def _sync_folder(path: str) -> None:
    """Make the file's name durable; some file systems cannot, and need not."""
    with suppress(OSError):
        folder = os.open(Path(path).parent, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
