"""The write primitive: a batch in one transaction, on the writer's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress

import attrs

from strata_core.clock import Clock, micros
from strata_core.errors import InvalidInputError
from strata_core.rows import Commit, Committed, Refused, decide
from strata_sqlite._changes import Changes
from strata_sqlite._errors import CommitError
from strata_sqlite._known import Known, KnownHeads
from strata_sqlite._locking import begin

__all__ = ["commit", "roll_back"]


def commit(
    db: sqlite3.Connection, known: KnownHeads, clock: Clock, batch: Sequence[Commit], patience: float = 10.0
) -> list[Committed | Refused]:
    """Judge and apply a batch: all its outcomes and changes in one transaction.

    Waits for writers of other processes for `patience` seconds.  `known` is the connection's own, in which the heads
    are kept for the next batch.

    Raises:
        InvalidInputError: Two commits are of one thread; nothing was done.
        CommitError: ``COMMIT`` failed; whether the batch was done is unknown.
        sqlite3.Error: Anything else; nothing was done.
    """
    if not batch:
        return []
    thread_ids = [item.thread_id for item in batch]
    if len(set(thread_ids)) != len(thread_ids):
        raise InvalidInputError("batch", "has two commits of one thread")
    roll_back(db)
    begin(db, patience)
    try:
        found = known.find(db, thread_ids)
        changes = Changes(known.token, known.last_thread)
        outcomes = _judge(micros(clock.now()), batch, found, changes)
        changes.write(db)
    except BaseException:
        roll_back(db)
        raise
    try:
        db.execute("COMMIT")
    except sqlite3.Error as error:
        roll_back(db)
        raise CommitError from error
    known.keep(found | changes.heads, changes.token, changes.last_thread)
    return outcomes


def roll_back(db: sqlite3.Connection) -> None:
    """End a transaction that is still open; SQLite itself has ended it after some errors."""
    if db.in_transaction:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")


def _judge(
    now: int, batch: Sequence[Commit], found: Mapping[str, Known], changes: Changes
) -> list[Committed | Refused]:
    outcomes: list[Committed | Refused] = []
    for item in batch:
        known = found.get(item.thread_id)
        head = None if known is None else known[1]
        outcome = decide(item, head, now, changes.new_token)
        if type(outcome) is Committed:
            if not outcome.repeated:
                changes.add(item, known, outcome.head)
        elif head is not None:
            outcome = Refused(outcome.why, attrs.evolve(head, now=now))  # type: ignore[union-attr]  # it is refused
        outcomes.append(outcome)
    return outcomes
