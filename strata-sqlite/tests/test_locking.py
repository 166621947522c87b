from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from strata_sqlite._locking import POLL, begin


class Locked:
    """A connection that finds the lock taken, each time for as long as its busy timeout."""

    def __init__(self, free_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self._free_after = free_after
        monkeypatch.setattr(time, "monotonic", lambda: self.asked * POLL)

    def execute(self, statement: str) -> None:
        assert "BEGIN IMMEDIATE" == statement
        self.asked += 1
        if self.asked <= self._free_after:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error


def test_a_writer_that_has_waited_for_long_asks_as_often_as_one_that_came_just_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SQLite's own handler would by then ask ten times a second, and find the lock taken each time."""
    db = Locked(1000, monkeypatch)

    begin(db, patience=10.0)  # type: ignore[arg-type]

    assert 1001 == db.asked


@pytest.mark.parametrize(("patience", "asked"), [(0.0, 1), (POLL, 1), (1.0, 125)])
def test_a_writer_gives_up_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, patience: float, asked: int) -> None:
    db = Locked(10**6, monkeypatch)

    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        begin(db, patience)  # type: ignore[arg-type]

    assert asked == db.asked


def test_another_error_than_a_taken_lock_is_raised_at_once(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"no database at all" * 100)
    db = sqlite3.connect(tmp_path / "no.db", isolation_level=None)

    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        begin(db, 10.0)
    db.close()


def test_a_writer_gets_the_lock_when_it_is_given_back(tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    waiting = sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=POLL)
    holder.execute("BEGIN IMMEDIATE")
    giver = threading.Timer(0.05, holder.execute, ["ROLLBACK"])
    giver.start()

    begin(waiting, 10.0)

    assert waiting.in_transaction
    giver.join()
    waiting.close()
    holder.close()
