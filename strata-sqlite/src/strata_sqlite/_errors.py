"""The driver's errors as the store's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from strata_core.errors import (
    CorruptCheckpointError,
    InvalidInputError,
    StoreBusyError,
    StoreUnavailableError,
    StrataError,
)

__all__ = ["CommitError", "translate", "translated"]

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class CommitError(Exception):
    """``COMMIT`` itself raised; the driver's error is the cause.

    What had been written ahead may be found and taken as committed when the file is next recovered, even though it was
    rolled back here.  So the outcome is unknown.
    """


def translate(error: sqlite3.Error, path: str, thread_id: str | None = None) -> StrataError:
    """Return the error that a caller sees; `thread_id` is the thread at hand, when it is one."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    detail = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
    if primary in _BUSY:
        return StoreBusyError(f"{path}: another connection kept the database locked: {detail}")
    if primary in _DAMAGED:
        return CorruptCheckpointError(
            "*" if thread_id is None else thread_id, None, f"cannot be read: the database {path} is damaged: {detail}"
        )
    if primary == sqlite3.SQLITE_TOOBIG:
        return InvalidInputError("checkpoint", f"is larger than SQLite stores: {detail}")
    return StoreUnavailableError(f"{path}: {detail}")


@contextmanager
def translated(path: str, thread_id: str | None = None) -> Generator[None]:
    """Turn the driver's errors into the store's, from their cause."""
    try:
        yield
    except CommitError as error:
        raise StoreUnavailableError(
            f"{path}: the commit failed, and whether it was done is unknown: {error.__cause__}", maybe_written=True
        ) from error.__cause__
    except sqlite3.Error as error:
        raise translate(error, path, thread_id) from error
