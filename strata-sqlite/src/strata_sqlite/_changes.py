"""What the commits of a batch change, gathered so that each table is written by few statements.

A statement costs a hand-over of the interpreter's lock to and from the thread, which a busy event loop makes dear; so
fifty saves must not be a hundred statements.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from strata_core.rows import Commit, Head
from strata_sqlite._heads import ALL, LEASE, PROGRESS, fields, metadata_from, metadata_text, put, values_list

__all__ = ["Changes", "insert_rows"]

_SIZES: Final = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""How many heads or rows a statement may take.

Few sizes, so that few statements are kept prepared; fifty are two statements.  At 17 parameters each, the largest is
far below SQLite's limit of 32,766.
"""
_SLOW: Final = slice(7, 11)
"""In a record: due, graph and metadata, which few saves change."""
_METADATA: Final = 10


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
        last_thread: The highest thread number in use.
    """

    def __init__(self, token: int, last_thread: int) -> None:
        self._token = self._first_token = token
        self._last_thread = last_thread
        self._heads: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._pairs: list[tuple[str, str, int]] = []
        self._old_pairs: list[tuple[str, str, int]] = []
        self._blobs: list[tuple[int, str, bytes]] = []
        self._erased: list[int] = []
        self._gone: list[int] = []

    def new_token(self) -> int:
        """Return the next lease token."""
        self._token += 1
        return self._token

    def add(self, commit: Commit, record: tuple[Any, ...] | None, known: Head | None, new: Head | None) -> None:
        """Take down what an accepted commit does.

        Args:
            commit: The commit.
            record: The thread's record of `strata_heads`; None for none.
            known: The same as a head.
            new: The head that follows; None for none.
        """
        thread = None if record is None else int(record[0])
        if thread is not None and (commit.erase or new is None):
            self._erased.append(thread)
            self._change_pairs(thread, None if record is None else record[_METADATA], None)
        if new is None:
            if thread is not None:
                self._gone.append(thread)
            return
        stored = metadata_text(new.metadata)
        if thread is None or record is None or known is None:
            self._last_thread = thread = self._last_thread + 1
            self._put_head((), thread, new, stored)
            self._change_pairs(thread, None, stored)
        elif commit.erase:
            self._put_head(ALL, thread, new, stored)
        elif commit.row is None:
            # The judge was not given the metadata, so `new` has none; the columns of a lease leave it alone.
            self._put_head(LEASE, thread, new, stored)
        else:
            self._append(thread, record, known, new, stored)
        if commit.row is not None and not commit.erase:
            row = commit.row
            self._rows.append(
                (thread, new.sequence, new.whole_at, commit.write_id, row.version, row.envelope, row.body)
            )
            self._blobs += [(thread, digest, content) for digest, content in commit.blobs]

    def _append(self, thread: int, record: tuple[Any, ...], known: Head, new: Head, stored: str | None) -> None:
        same_lease = (
            new.token == known.token
            and new.expires == known.expires
            and new.closing == known.closing
            and new.external == known.external
        )
        if same_lease and record[_SLOW] == (new.due, new.graph_id, new.graph_version, stored):
            self._put_head(PROGRESS, thread, new, stored)
        else:
            self._put_head(ALL, thread, new, stored)
            self._change_pairs(thread, record[_METADATA], stored)

    def _put_head(self, columns: tuple[str, ...], thread: int, new: Head, stored: str | None) -> None:
        self._heads.setdefault(columns, []).append((thread, new.thread_id, *fields(new, stored)))

    def _change_pairs(self, thread: int, before: str | None, after: str | None) -> None:
        if before == after:
            return
        old, new = metadata_from(before).items(), metadata_from(after).items()
        self._old_pairs += [(key, value, thread) for key, value in old - new]
        self._pairs += [(key, value, thread) for key, value in new - old]

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
        for columns, heads in self._heads.items():
            for part in _parts(heads):
                db.execute(put(columns, len(part)), _flat(part))
        for part in _parts(self._rows):
            db.execute(insert_rows(len(part)), _flat(part))
        for part in _parts(self._pairs):
            db.execute(_insert_pairs(len(part)), _flat(part))
        if self._blobs:
            db.executemany("INSERT OR IGNORE INTO strata_blobs(thread, digest, content) VALUES (?, ?, ?)", self._blobs)
        if self._token != self._first_token:
            db.execute("UPDATE strata_counters SET token = ?", (self._token,))


def _parts(items: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    start = 0
    while rest := len(items) - start:
        size = next(size for size in _SIZES if size <= rest)
        yield items[start : start + size]
        start += size


def _flat(records: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [value for record in records for value in record]
