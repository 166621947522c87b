"""What the commits of a batch change, gathered so that each table is written by few statements.

A statement costs a hand-over of the interpreter's lock to and from the thread, which a busy event loop makes dear; so
fifty saves must not be a hundred statements.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

from strata_core.rows import Commit, Head
from strata_sqlite._heads import ALL, ENDING, LEASE, PROGRESS, fields, lease, metadata_text, progress, put, values_list
from strata_sqlite._known import LONGEST_METADATA, Known

__all__ = ["Changes", "insert_rows"]

_SIZES: Final = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""How many heads or rows a statement may take.

Few sizes, so that few statements are kept prepared; fifty are two statements.  At 17 parameters each, the largest is
far below SQLite's limit of 32,766.
"""
_NO_METADATA: Final[Mapping[str, str]] = {}


@cache
def insert_rows(count: int) -> str:
    """Return the statement that appends `count` rows; JSON comes as bytes, and stays text for whoever reads it."""
    row = "(?, ?, ?, ?, ?, CAST(? AS TEXT), CAST(? AS TEXT))"
    return (
        "INSERT INTO strata_rows(thread, sequence, whole_at, write_id, version, envelope, body) "  # noqa: S608
        f"VALUES {', '.join([row] * count)}"
    )


@cache
def _insert_pairs(count: int) -> str:
    return f"INSERT OR IGNORE INTO strata_metadata(key, value, thread) VALUES {values_list(3, count)}"  # noqa: S608


class Changes:
    """The changes of one transaction.

    Args:
        token: The store's token counter.
        last_thread: A thread number that no thread is above.

    Attributes:
        token: As it is afterwards.
        last_thread: As it is afterwards.
        heads: The threads that change, as they are afterwards; None for one that goes.
    """

    def __init__(self, token: int, last_thread: int) -> None:
        self.token = self._first_token = token
        self.last_thread = last_thread
        self.heads: dict[str, Known | None] = {}
        # The values of a kind of statement, record after record.
        self._new: list[Any] = []
        self._changed: list[Any] = []
        self._progress: list[Any] = []
        self._endings: list[Any] = []
        self._leases: list[Any] = []
        self._rows: list[Any] = []
        self._pairs: list[Any] = []
        self._old_pairs: list[tuple[str, str, int]] = []
        self._blobs: list[tuple[int, str, bytes]] = []
        self._erased: list[int] = []
        self._gone: list[int] = []

    def new_token(self) -> int:
        """Return the next lease token."""
        self.token += 1
        return self.token

    def add(self, commit: Commit, known: Known | None, new: Head | None) -> None:
        """Take down what an accepted commit does.

        Args:
            commit: The commit.
            known: The thread's head before; None for none.
            new: The head that follows, to be kept; None for none.
        """
        row = commit.row
        small = True
        if known is None:
            if new is None:
                return
            self.last_thread = thread = self.last_thread + 1
            stored = metadata_text(new.metadata)
            self._new += (*fields(thread, new, stored), new.thread_id)
            small = self._change_metadata(thread, _NO_METADATA, new, stored)
        else:
            thread, old, small = known
            if commit.erase or new is None:
                self._erased.append(thread)
                self._change_pairs(thread, old.metadata, _NO_METADATA)
                if new is None:
                    self._gone.append(thread)
                    self.heads[commit.thread_id] = None
                    return
                self._changed += fields(thread, new, None)
                small = True
            elif row is None:
                self._leases += lease(thread, new)
            elif new.metadata == old.metadata:
                new.metadata = old.metadata  # not the caller's own, which he may change
                if new.due != old.due or new.graph_id != old.graph_id or new.graph_version != old.graph_version:
                    self._changed += fields(thread, new, metadata_text(new.metadata))
                elif commit.lease is None and new.external == old.external:  # then the lease stays as it is
                    self._progress += progress(thread, new)
                else:
                    self._endings += progress(thread, new) + lease(thread, new)[1:]
            else:
                stored = metadata_text(new.metadata)
                self._changed += fields(thread, new, stored)
                small = self._change_metadata(thread, old.metadata, new, stored)
        self.heads[commit.thread_id] = (thread, new, small)
        if row is not None and not commit.erase:
            self._rows += (
                thread,
                new.sequence,
                new.whole_at,
                bytearray(commit.write_id),
                row.version,
                bytearray(row.envelope),
                bytearray(row.body),
            )
            for digest, content in commit.blobs:
                self._blobs.append((thread, digest, content))

    def _change_metadata(self, thread: int, old: Mapping[str, str], new: Head, stored: str | None) -> bool:
        """Take down the pairs that come and go, and tell whether those that stay are few enough to be kept."""
        new.metadata = dict(new.metadata)
        self._change_pairs(thread, old, new.metadata)
        return stored is None or len(stored) <= LONGEST_METADATA

    def _change_pairs(self, thread: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        before, after = old.items(), new.items()
        self._old_pairs += [(key, value, thread) for key, value in before - after]
        for key, value in after - before:
            self._pairs += (key, value, thread)

    def write(self, db: sqlite3.Connection) -> None:
        """Write everything, inside the transaction that is open."""
        if self._erased:
            erased = (json.dumps(self._erased),)
            db.execute("DELETE FROM strata_rows WHERE thread IN (SELECT value FROM json_each(?))", erased)
            db.execute("DELETE FROM strata_blobs WHERE thread IN (SELECT value FROM json_each(?))", erased)
        if self._old_pairs:
            db.executemany("DELETE FROM strata_metadata WHERE key = ? AND value = ? AND thread = ?", self._old_pairs)
        if self._gone:
            gone = (json.dumps(self._gone),)
            db.execute("DELETE FROM strata_heads WHERE thread IN (SELECT value FROM json_each(?))", gone)
        for columns, heads in (
            (ALL, self._changed),
            (PROGRESS, self._progress),
            (ENDING, self._endings),
            (LEASE, self._leases),
        ):
            if heads:
                _execute(db, partial(put, columns), heads, 1 + len(columns))
        _execute(db, partial(put, ()), self._new, 1 + len(ALL) + 1)
        _execute(db, insert_rows, self._rows, 7)
        _execute(db, _insert_pairs, self._pairs, 3)
        if self._blobs:
            db.executemany("INSERT OR IGNORE INTO strata_blobs(thread, digest, content) VALUES (?, ?, ?)", self._blobs)
        if self.token != self._first_token:
            db.execute("UPDATE strata_counters SET token = ?", (self.token,))


def _execute(db: sqlite3.Connection, statement: Callable[[int], str], values: list[Any], width: int) -> None:
    """Run the statements that take `values`, `width` a record."""
    start, end = 0, len(values)
    while start < end:
        rest = (end - start) // width
        size = next(size for size in _SIZES if size <= rest)
        db.execute(statement(size), values[start : start + size * width])
        start += size * width
