"""The write primitive in the database: a whole batch in one call.

Almost every commit is an *ordinary save*: a thread that goes on running appends a row, and nothing that it is listed by
changes.  `strata_commit_1` does all of a batch that are, in one statement; the rest, if there is any, it hands to
`strata_judge_1`, the whole rule book (see `_judge`).  The statement can say "not ordinary" of anything and only be
slower for it.  It says "ordinary" where each rule of `strata_core.rows.decide` plainly passes:

- not *repeated*: the head's write IDs hold this one nowhere, not even across two of them;
- not *lost*: the token is the head's own, and that lease is live;
- not *closing*, not *held*: with the head's own live token neither rule is asked; without a token the head must have
  none, and a head without a token is never closing;
- not *changed*: the latest row has the sequence and the write ID asked for, as far as they are.

Its effect is then that of a row alone: `_commit` calls no commit ordinary that also touches a lease, erases, brings
blobs, or sets `external`.

It locks the heads of all that the batch names, ordinary or not, in the order of thread IDs, and judges each behind its
lock.  That is the order for what `_judge` says about deadlocks.

Names carry a version of their own, so that releases can run side by side: one that changes a function adds another.
Both find nothing but PostgreSQL's own functions and operators: what others create in a schema on the search path of
their caller, such as ``public``, would otherwise run with that role's rights, where its arguments fit better.

Plans do not depend on what the tables held when they were first made: every access is by a primary key, and the
settings on the function leave the planner nothing else.  What a call costs is mostly the number of expressions in it,
which PostgreSQL makes ready anew each time; so the statement
has few, and takes three arguments: a matrix of numbers, a matrix of texts, and all bytes in one piece.  What comes
alone seldom comes here (see `_alone`).
"""

from __future__ import annotations

from typing import Final

from strata_core.rows import ANY
from strata_postgres._facets import LAG, RUNNING

__all__ = ["COMMIT", "DIGEST_SIZE", "ITEMS", "NUMBERS", "SETTINGS", "TEXTS"]

NUMBERS: Final = ("after", "token", "whole", "updated", "start", "skip", "envelope", "body", "ordinary")
"""The numbers of an item, and of the bytes: where they begin, from 1, and the sizes of the head, envelope and body.

The head of an item's bytes is its write ID, the digest of its facts, and the write ID that must be the latest, if one
must.
"""
TEXTS: Final = ("thread_id", "version", "facts")
"""The texts of an item.  The facts are JSON: what the listing needs of a row, and all that no ordinary save has."""
DIGEST_SIZE: Final = 16
"""Bytes of the digest of what a row is listed by."""

_TYPES: Final = {"start": "integer", "skip": "integer", "envelope": "integer", "body": "integer"}


def _cells() -> str:
    numbers = [
        f"numbers[at + {place}]{f'::{_TYPES[name]}' if name in _TYPES else ''} AS {name}"
        for place, name in enumerate(NUMBERS, 1)
    ]
    across = len(NUMBERS) // len(TEXTS)
    return ", ".join([*numbers, *(f"texts[at / {across} + {place}] AS {name}" for place, name in enumerate(TEXTS, 1))])


ITEMS: Final = (
    f"SELECT at, {_cells()} "  # noqa: S608  # put together from our own text
    f"FROM generate_series(0, cardinality(numbers) - 1, {len(NUMBERS)}) AS at OFFSET 0"
)
"""Gives an item a record; ``at`` is where its numbers begin, from 0."""
SETTINGS: Final = """
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off"""

_COMMIT: Final = """
CREATE FUNCTION {s}.strata_commit_1(numbers bigint[], texts text[], contents bytea) RETURNS text LANGUAGE plpgsql
{settings}
AS $strata$
DECLARE
    answer text;
    done integer[];
    locked integer[];
BEGIN
    WITH was AS MATERIALIZED (
        SELECT i.at, i.thread_id, i.version, i.updated, i.token, i.start, i.skip, i.envelope, i.body,
               h.thread, h.write_ids, h.expires, h.sequence + 1 AS sequence,
               CASE i.whole WHEN 1 THEN h.sequence + 1 ELSE h.whole_at END AS whole_at,
               i.ordinary = 1
               AND position(substr(contents, i.start, 8) IN h.write_ids) = 0
               AND i.token = h.token
               AND (i.token = 0 OR h.expires > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
               AND (i.after = h.sequence OR i.after = {any})
               AND substr(h.write_ids, 1, i.skip - {head}) = substr(contents, i.start + {head}, i.skip - {head})
               -- Its entries in the listing stay as they are.
               AND h.state = {running}
               AND h.facts = substr(contents, i.start + 8, {digest})
               AND i.updated >= h.place AND i.updated < h.place + {lag} AS ordinary
        FROM ({items}) AS i
        CROSS JOIN LATERAL (
            SELECT h.thread, h.place, h.token, h.expires, h.sequence, h.whole_at, h.state, h.write_ids, h.facts
            FROM {s}.strata_heads AS h WHERE h.thread_id = i.thread_id FOR UPDATE) AS h
    ), heads AS (
        UPDATE {s}.strata_heads AS h
        SET updated = w.updated, sequence = w.sequence, whole_at = w.whole_at,
            write_ids = substr(substr(contents, w.start, 8) || w.write_ids, 1, 64)
        FROM was AS w WHERE w.ordinary AND h.thread_id = w.thread_id
    ), rows AS (
        INSERT INTO {s}.strata_rows(thread, sequence, whole_at, write_id, version, envelope, body)
        SELECT w.thread, w.sequence, w.whole_at, substr(contents, w.start, 8), w.version,
               substr(contents, w.start + w.skip, w.envelope),
               substr(contents, w.start + w.skip + w.envelope, w.body)
        FROM was AS w WHERE w.ordinary
    )
    SELECT string_agg(concat('[', w.at, ',', w.sequence, ',', w.token, ',', w.expires, ',0]'), ',')
               FILTER (WHERE w.ordinary),
           coalesce(array_agg(w.at) FILTER (WHERE w.ordinary), '{}'), array_agg(w.at)
    INTO answer, done, locked
    FROM was AS w;
    IF cardinality(done) * {width} = cardinality(numbers) THEN
        RETURN answer;
    END IF;
    RETURN concat_ws(',', answer, {s}.strata_judge_1(numbers, texts, contents, done, locked));
END $strata$
"""

COMMIT: Final = (
    _COMMIT.replace("{settings}", SETTINGS)
    .replace("{items}", ITEMS)
    .replace("{width}", str(len(NUMBERS)))
    .replace("{head}", str(8 + DIGEST_SIZE))
    .replace("{digest}", str(DIGEST_SIZE))
    .replace("{any}", str(ANY))
    .replace("{running}", str(RUNNING))
    .replace("{lag}", str(LAG))
)
"""The statement that makes the function; ``{s}`` stands for the schema.

Its answer is the items of a JSON array, an array an item in any order: where the item's numbers begin, then what became
of it, as `_judge` says.
"""
