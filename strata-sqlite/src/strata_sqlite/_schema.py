"""The tables, and the steps that make them.

The version stands in ``PRAGMA user_version``: it is part of the file's header, so it is read without a table, changes
in the same transaction as the tables, and costs no page.  ``PRAGMA application_id`` beside it tells our files from
everybody else's, which may use `user_version` too.

A thread has a number, the key of its head.  A number is free again only in the transaction in which the rows and blobs
under it went.

Rows lie in the order in which they came, and a small index of integers finds them by thread number and sequence.  Keyed
by thread and sequence themselves, fifty threads that save together would dirty fifty pages a commit instead of seven:
measured, that took twice as long and left the pages less full.

The one index that every save writes is `strata_heads_by_state`.  A listing of all states merges its seven ranges.  The
other indexes hold nothing that an ordinary save changes.  A state is kept as a small integer, which
saves twenty bytes a thread; one that has no number is kept as it is.  The state of a head without rows is empty, which
makes these a range of their own.
"""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION_ID", "PAGE_SIZE", "STATES", "STEPS", "VERSION"]

APPLICATION_ID: Final = 0x53545241
"""``STRA``."""
PAGE_SIZE: Final = 8192
"""Bytes; six rows of the usual size on a page, and no overflow pages below 8 KB."""

STATES: Final = {
    "interrupted": 1,
    "failed": 2,
    "cancelled": 3,
    "running": 4,
    "completed": 5,
    "ended": 6,
    "resumed": 7,
}
"""How a thread's state is kept in `strata_heads`; part of the file format, so never renumbered."""


def _text(moment: str) -> str:
    """Return the SQL for microseconds since 1970 as text.  Division and remainder round down, also before 1970."""
    micros = f"({moment} % 1000000 + 1000000) % 1000000"
    seconds = f"({moment} - {micros}) / 1000000"
    return f"strftime('%Y-%m-%dT%H:%M:%S', {seconds}, 'unixepoch') || printf('.%06dZ', {micros})"


_VERSION_1: Final = (
    """
    CREATE TABLE strata_heads(
        thread        INTEGER PRIMARY KEY,
        thread_id     TEXT NOT NULL UNIQUE,
        sequence      INTEGER NOT NULL,
        whole_at      INTEGER NOT NULL,
        write_ids     BLOB NOT NULL,
        state         NOT NULL,
        updated       INTEGER NOT NULL,
        due           INTEGER,
        graph_id      TEXT,
        graph_version TEXT,
        metadata      TEXT,
        external      INTEGER NOT NULL,
        token         INTEGER NOT NULL,
        owner         TEXT NOT NULL,
        expires       INTEGER NOT NULL,
        lease_id      BLOB NOT NULL,
        closing       INTEGER NOT NULL)
    """,
    "CREATE INDEX strata_heads_by_state ON strata_heads(state, updated, thread_id)",
    "CREATE INDEX strata_heads_by_due ON strata_heads(due) WHERE due IS NOT NULL",
    "CREATE INDEX strata_heads_by_graph ON strata_heads(graph_id, graph_version) WHERE graph_id IS NOT NULL",
    "CREATE INDEX strata_heads_by_lease ON strata_heads(expires) WHERE token <> 0",
    """
    CREATE TABLE strata_rows(
        number   INTEGER PRIMARY KEY,
        thread   INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        whole_at INTEGER NOT NULL,
        write_id BLOB NOT NULL,
        version  TEXT NOT NULL,
        envelope TEXT NOT NULL,
        body     TEXT NOT NULL)
    """,
    "CREATE UNIQUE INDEX strata_rows_by_place ON strata_rows(thread, sequence)",
    """
    CREATE TABLE strata_metadata(
        key    TEXT NOT NULL,
        value  TEXT NOT NULL,
        thread INTEGER NOT NULL,
        PRIMARY KEY (key, value, thread)) WITHOUT ROWID
    """,
    "CREATE TABLE strata_counters(token INTEGER NOT NULL)",
    "INSERT INTO strata_counters(token) VALUES (0)",
    """
    CREATE VIEW checkpoints AS
    SELECT h.thread_id,
           r.sequence,
           json_extract(r.envelope, '$.status') AS status,
           r.version AS schema_version,
           r.body AS frozen_state,
           json_extract(r.envelope, '$.created_at') AS created_at,
           json_extract(r.envelope, '$.suspended_node') AS suspended_node,
           json_extract(r.envelope, '$.next_node') AS next_node,
           json_extract(r.envelope, '$.metadata') AS metadata,
           json_extract(r.envelope, '$.decision') AS decision,
           json_extract(r.envelope, '$.wait') AS wait,
           json_extract(r.envelope, '$.graph.id') AS graph_id,
           json_extract(r.envelope, '$.graph.version') AS graph_version,
           json_extract(r.envelope, '$.resumed_at') AS resumed_at,
           r.envelope
    FROM strata_heads AS h
    CROSS JOIN strata_rows AS r ON r.thread = h.thread
    """,
)
_VERSION_2: Final = (
    "DROP VIEW IF EXISTS threads",
    f"""
    CREATE VIEW threads AS
    SELECT h.thread_id,
           CASE h.state
               WHEN 1 THEN 'interrupted' WHEN 2 THEN 'failed' WHEN 3 THEN 'cancelled' WHEN 4 THEN 'running'
               WHEN 5 THEN 'completed' WHEN 6 THEN 'ended' WHEN 7 THEN 'resumed' ELSE h.state END AS state,
           {_text("h.updated")} AS updated_at,
           h.sequence + 1 AS checkpoints,
           {_text("h.due")} AS due_at,
           h.graph_id,
           h.graph_version,
           h.metadata,
           CASE WHEN h.token <> 0 THEN h.owner END AS lease_owner,
           CASE WHEN h.token <> 0 THEN {_text("h.expires")} END AS lease_expires_at
    FROM strata_heads AS h
    WHERE h.sequence >= 0
    """,  # noqa: S608
    """
    CREATE TABLE strata_blobs(
        thread  INTEGER NOT NULL,
        digest  TEXT NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (thread, digest)) WITHOUT ROWID
    """,
    """
    CREATE VIEW checkpoint_blobs AS
    SELECT h.thread_id, b.digest AS hash, b.content
    FROM strata_heads AS h
    CROSS JOIN strata_blobs AS b ON b.thread = h.thread
    """,
)

STEPS: Final = (_VERSION_1, _VERSION_2)
"""What leads from each version to the next; a new file takes all of them.

Views hold nothing, so one that a later step makes anew is not made by an earlier one.
"""
VERSION: Final = len(STEPS)
"""The version this release writes."""
