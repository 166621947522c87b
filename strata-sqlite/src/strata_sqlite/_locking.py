"""Waiting for the write lock of the file."""

from __future__ import annotations

import sqlite3
import time
from typing import Final

__all__ = ["POLL", "begin"]

POLL: Final = 0.008
"""The writer's own busy timeout in seconds; SQLite then asks after 1, 2 and 5 ms.

Left to itself for longer, it would ask ever less often, up to ten times a second: beside a process that writes all the
time, one that has waited for long would then hardly ever find the lock free.
"""


def begin(db: sqlite3.Connection, patience: float) -> None:
    """Begin a transaction that writes, once no other process does.

    Args:
        db: The connection; its busy timeout should be `POLL`.
        patience: For how many seconds to wait, at least.

    Raises:
        sqlite3.OperationalError: The lock was not free in time, or anything else.
    """
    deadline: float | None = None
    while True:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            now = time.monotonic()
            if deadline is None:
                deadline = now - POLL + patience
            if now >= deadline:
                raise
        else:
            return
