"""The write primitive: a batch in one transaction, on the writer's thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from strata_core.clock import Clock, micros
from strata_core.errors import InvalidInputError
from strata_core.rows import Commit, Committed, Head, Refused, decide
from strata_sqlite._changes import Changes
from strata_sqlite._errors import CommitError
from strata_sqlite._heads import JUDGED, judged_head
from strata_sqlite._locking import begin

__all__ = ["FIND_MANY", "FIND_ONE", "commit"]

_FIND: Final = (
    f"SELECT {JUDGED}, c.token, (SELECT max(thread) FROM strata_heads) "  # noqa: S608
    "FROM strata_counters AS c LEFT JOIN strata_heads AS h ON h.thread_id "
)
FIND_ONE: Final = _FIND + "= ?"
FIND_MANY: Final = _FIND + "IN (SELECT value FROM json_each(?))"  # noqa: S608
"""The heads of a batch in one statement, with the token counter and the last thread number beside them."""


def commit(
    db: sqlite3.Connection, clock: Clock, batch: Sequence[Commit], patience: float = 10.0
) -> list[Committed | Refused]:
    """Judge and apply a batch: all its outcomes and changes in one transaction.

    Waits for writers of other processes for `patience` seconds.

    Raises:
        CommitError: ``COMMIT`` failed; whether the batch was done is unknown.
        sqlite3.Error: Anything else; nothing was done.
    """
    if not batch:
        return []
    roll_back(db)
    begin(db, patience)
    try:
        outcomes, changes = _judge(db, clock, batch)
        changes.write(db)
    except BaseException:
        roll_back(db)
        raise
    try:
        db.execute("COMMIT")
    except sqlite3.Error as error:
        roll_back(db)
        raise CommitError from error
    return outcomes


def roll_back(db: sqlite3.Connection) -> None:
    """End a transaction that is still open; SQLite itself has ended it after some errors."""
    if db.in_transaction:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")


def _judge(db: sqlite3.Connection, clock: Clock, batch: Sequence[Commit]) -> tuple[list[Committed | Refused], Changes]:
    token, last_thread, found = _find(db, batch)
    changes = Changes(token, last_thread)
    now = micros(clock.now())
    outcomes: list[Committed | Refused] = []
    for item in batch:
        record = found.get(item.thread_id)
        known: Head | None = None if record is None else judged_head(record, now)
        outcome = decide(item, known, now, changes.new_token)
        outcomes.append(outcome)
        if isinstance(outcome, Committed) and not outcome.repeated:
            changes.add(item, record, outcome.head)
    return outcomes, changes


def _find(db: sqlite3.Connection, batch: Sequence[Commit]) -> tuple[int, int, dict[str, tuple[Any, ...]]]:
    if len(batch) == 1:
        records = db.execute(FIND_ONE, (batch[0].thread_id,)).fetchall()
    else:
        thread_ids = [item.thread_id for item in batch]
        if len(set(thread_ids)) != len(thread_ids):
            raise InvalidInputError("batch", "has two commits of one thread")
        records = db.execute(FIND_MANY, (json.dumps(thread_ids),)).fetchall()
    token, last_thread = records[0][-2:]
    return token, last_thread or 0, {record[1]: record for record in records}
