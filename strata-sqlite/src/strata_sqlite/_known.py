"""The heads that a batch needs: those that the connection knows from earlier batches, and the others from the file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from strata_core.rows import Head
from strata_sqlite._heads import READ, head_from

__all__ = ["FIND_MANY", "FIND_ONE", "LONGEST_METADATA", "Known", "KnownHeads"]

Known: TypeAlias = tuple[int, Head, bool]
"""A thread's number, its head, and whether that is small enough to be kept."""

LONGEST_METADATA: Final = 1_000
"""A head is kept up to this length of its metadata as stored."""
_LIMIT: Final = 2_048
"""So many heads written last are kept, and up to twice as many: some four megabytes."""

_FIND: Final = (
    f"SELECT {READ}, c.token, (SELECT max(thread) FROM strata_heads) "  # noqa: S608
    "FROM strata_counters AS c LEFT JOIN strata_heads AS h ON h.thread_id "
)
FIND_ONE: Final = _FIND + "= ?"
FIND_MANY: Final = _FIND + "IN (SELECT value FROM json_each(?))"  # noqa: S608
"""Heads in one statement, with the token counter and the last thread number beside them."""
_METADATA: Final = 10
"""In a record of `READ`."""


class KnownHeads:
    """What a connection read or wrote last, kept from batch to batch for as long as no other connection commits.

    Kept are the heads of threads that run or are leased.

    ``PRAGMA data_version`` changes for a connection when, and only when, another one has committed, be it of this
    process or of another.  It is asked inside the transaction that writes, where nobody else can commit any more: while
    it stands still, the file holds what this connection left there.  SQLite trusts its own cache of pages on the very
    same ground.

    `find` and `keep` are a pair: what is known is forgotten unless the transaction is followed by `keep`.  So no error,
    no roll-back and no commit of unknown outcome leaves anything behind.

    For one connection and its thread, and nothing else may write heads on that connection.

    Args:
        limit: How many heads to keep, at least; up to twice as many.

    Attributes:
        token: The store's token counter, since `find`.
        last_thread: A thread number that no thread is above, since `find`.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self.token = 0
        self.last_thread = 0
        self._limit = limit
        self._version: int | None = None  # of the data in which all of this is so; None while that is open
        self._found_at: int | None = None
        # Two generations: a head that is used moves to the younger one, and the older one goes as a whole.
        self._young: dict[str, Known] = {}
        self._old: dict[str, Known] = {}

    def find(self, db: sqlite3.Connection, thread_ids: Sequence[str]) -> dict[str, Known]:
        """Return the heads of those threads that have one, inside the transaction that is open and writes.

        The heads are shared: nobody may change them.  `now` is filled in on none.
        """
        version: int = db.execute("PRAGMA data_version").fetchone()[0]
        fresh = version != self._version
        self._version, self._found_at = None, version
        if fresh:
            self._young, self._old = {}, {}
        found: dict[str, Known] = {}
        missing: list[str] = []
        young, old = self._young, self._old
        for thread_id in thread_ids:
            known = young.get(thread_id) or old.get(thread_id)
            if known is None:
                missing.append(thread_id)
            else:
                found[thread_id] = known
        if missing or fresh:
            self._read(db, missing, found)
        return found

    def _read(self, db: sqlite3.Connection, thread_ids: list[str], found: dict[str, Known]) -> None:
        if len(thread_ids) == 1:
            records = db.execute(FIND_ONE, thread_ids).fetchall()
        else:
            records = db.execute(FIND_MANY, (json.dumps(thread_ids),)).fetchall()
        self.token, last_thread = records[0][-2:]
        self.last_thread = last_thread or 0
        for record in records:
            if record[0] is not None:
                text = record[_METADATA]
                small = text is None or len(text) <= LONGEST_METADATA
                found[record[1]] = (record[0], head_from(record, 0), small)

    def keep(self, heads: Mapping[str, Known | None], token: int, last_thread: int) -> None:
        """Know what the transaction left, now that it is committed.

        Args:
            heads: Of the threads that were found or written; None for those that are gone.
            token: The token counter.
            last_thread: The highest thread number in use, or one above.
        """
        if len(self._young) >= self._limit:
            self._young, self._old = {}, self._young
        young, old = self._young, self._old
        for thread_id, known in heads.items():
            # A thread that waits or is at its end takes no memory; it is looked up when it goes on.
            if known is not None and known[2] and (known[1].token or known[1].state == "running"):
                young[thread_id] = known
            else:
                young.pop(thread_id, None)
                old.pop(thread_id, None)
        self.token, self.last_thread, self._version = token, last_thread, self._found_at
