"""The saves of a run that come alone, each a function of its own: a batch of one takes a third of the server's time.

What a statement costs PostgreSQL is mostly making it ready, again at each call: every node of its plan, every
expression.  The statement of `strata_commit_1`, made for any number of items, has a dozen nodes; those below have one
or two.  There is a function for each save of an ordinary run:

- *first* makes a thread with a row, and may take its lease;
- *next* is the ordinary save of `_function`: a thread goes on running;
- *last* leaves a thread that does not run any more, without a lease: one that waits, is done, or failed.

Each does its save where every rule of `strata_core.rows.decide` plainly passes.  Anything else it hands on, as a batch
of one, to `strata_commit_1`, and nothing has happened then.  So it may refuse to be the fast way for any reason; and
which of them is called is the client's guess.

What is judged is judged behind the lock of the head: PostgreSQL judges a row anew that was changed while it waited for
it.  One that was only locked it does not, so the clock is asked behind the lock: *next* asks again, and where the lease
ran out meanwhile undoes the call (``serialization_failure``), which is made again and then finds that.  A call holds
the lock of one head, or waits for a new head while it holds none, so it cannot lock out others (see `_judge`).
"""

from __future__ import annotations

from typing import Final

from strata_core.rows import ANY
from strata_postgres._facets import DUE_AT, LAG, RUNNING
from strata_postgres._function import DIGEST_SIZE

__all__ = ["ALONE"]

_SETTINGS: Final = """
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off"""
_CLOCK: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_COMMON: Final = """
    thread_id text, head bytea, after bigint, token bigint, whole integer, updated bigint, version text, facts text,
    envelope bytea, body bytea"""
"""The arguments of all three, as `NUMBERS` and `TEXTS` have them; what goes first of an item's bytes is ``head``."""
_LISTED: Final = """,
    state smallint, facets bigint[], due bigint, graph_id text, graph_version text, metadata jsonb"""
"""More of them, where the listing changes: what ``facts`` say, but that ``facets`` are as they will be."""

_HAND_ON: Final = """
        RETURN {s}.strata_commit_1(
            ARRAY[after, token, whole, updated, 1, length(head), length(envelope), length(body), {ordinary}],
            ARRAY[thread_id, version, facts], head || envelope || body);"""
_LIVE: Final = f"(token = 0 OR h.expires > {_CLOCK})"
_PASSES: Final = f"""
        position(substr(head, 1, 8) IN h.write_ids) = 0
        AND h.token = token AND {_LIVE}
        AND (after = h.sequence OR after = {ANY})
        AND substr(h.write_ids, 1, length(head) - {8 + DIGEST_SIZE}) = substr(head, {9 + DIGEST_SIZE})"""
_NEW_IDS: Final = "substr(substr(head, 1, 8) || h.write_ids, 1, 64)"
_ADD_ROW: Final = """
    INSERT INTO {s}.strata_rows(thread, sequence, whole_at, write_id, version, envelope, body)
    VALUES (number, at, base, substr(head, 1, 8), version, envelope, body);"""
_LIST: Final = f"""
    INSERT INTO {{s}}.strata_listing(facet, state, place, thread_id)
    SELECT f, state, CASE f WHEN {DUE_AT} THEN due ELSE updated END, thread_id FROM unnest(facets) AS f;"""  # noqa: S608  # put together from our own text

_FIRST: Final = f"""
CREATE FUNCTION {{s}}.strata_commit_first_1({_COMMON}{_LISTED}, owner text, ttl bigint) RETURNS text LANGUAGE plpgsql
{_SETTINGS}
AS $strata$
#variable_conflict use_variable
DECLARE
    number bigint;
    at integer := 0;
    base integer;
    taken bigint;
    until bigint;
BEGIN
    INSERT INTO {{s}}.strata_heads AS h(
        thread, updated, place, token, expires, sequence, whole_at, state, external, closing, thread_id, write_ids,
        owner, lease_id, facets, due, graph_id, graph_version, metadata, facts)
    VALUES (
        nextval('{{s}}.strata_threads'), updated, updated,
        CASE WHEN ttl > 0 THEN nextval('{{s}}.strata_tokens') ELSE 0 END,
        CASE WHEN ttl > 0 THEN {_CLOCK} + ttl ELSE 0 END,
        0, whole - 1, state, false, false, thread_id, substr(head, 1, 8),
        owner, substr(head, 1, CASE WHEN ttl > 0 THEN 8 ELSE 0 END), facets, due, graph_id, graph_version, metadata,
        substr(head, 9, {DIGEST_SIZE}))
    ON CONFLICT DO NOTHING
    RETURNING h.thread, h.whole_at, h.token, h.expires INTO number, base, taken, until;
    IF number IS NULL THEN{_HAND_ON.replace("{ordinary}", "0")}
    END IF;{_ADD_ROW}{_LIST}
    RETURN concat('[0,0,', taken, ',', until, ',0]');
END $strata$
"""  # noqa: S608

_NEXT: Final = f"""
CREATE FUNCTION {{s}}.strata_commit_next_1({_COMMON}) RETURNS text LANGUAGE plpgsql
{_SETTINGS}
AS $strata$
#variable_conflict use_variable
DECLARE
    number bigint;
    at integer;
    base integer;
    until bigint;
BEGIN
    UPDATE {{s}}.strata_heads AS h
    SET updated = updated, sequence = h.sequence + 1, write_ids = {_NEW_IDS},
        whole_at = CASE whole WHEN 1 THEN h.sequence + 1 ELSE h.whole_at END
    WHERE h.thread_id = thread_id AND {_PASSES}
        AND h.state = {RUNNING} AND h.facts = substr(head, 9, {DIGEST_SIZE})
        AND updated >= h.place AND updated < h.place + {LAG}
    RETURNING CASE WHEN {_LIVE} THEN h.thread END, h.sequence, h.whole_at, h.expires INTO number, at, base, until;
    IF number IS NULL THEN
        IF at IS NOT NULL THEN
            RAISE serialization_failure USING MESSAGE = 'the lease ran out behind a lock';
        END IF;{_HAND_ON.replace("{ordinary}", "1")}
    END IF;{_ADD_ROW}
    RETURN concat('[0,', at, ',', token, ',', until, ',0]');
END $strata$
"""  # noqa: S608

_LAST: Final = f"""
CREATE FUNCTION {{s}}.strata_commit_last_1({_COMMON}{_LISTED}) RETURNS text LANGUAGE plpgsql
{_SETTINGS}
AS $strata$
#variable_conflict use_variable
DECLARE
    number bigint;
    at integer;
    base integer;
    old_state smallint;
    old_place bigint;
    old_facets bigint[];
BEGIN
    SELECT h.thread, h.sequence + 1, CASE whole WHEN 1 THEN h.sequence + 1 ELSE h.whole_at END,
           h.state, h.place, h.facets
    INTO number, at, base, old_state, old_place, old_facets
    FROM (SELECT h.thread, h.sequence, h.whole_at, h.state, h.place, h.facets, h.due, h.token, h.expires, h.write_ids
          FROM {{s}}.strata_heads AS h WHERE h.thread_id = thread_id FOR UPDATE OFFSET 0) AS h
    WHERE {_PASSES} AND h.due IS NULL;
    IF number IS NULL THEN{_HAND_ON.replace("{ordinary}", "0")}
    END IF;
    UPDATE {{s}}.strata_heads AS h
    SET updated = updated, place = updated, token = 0, expires = 0, sequence = at, whole_at = base, state = state,
        closing = false, write_ids = {_NEW_IDS}, owner = '', lease_id = '', facets = facets, due = due,
        graph_id = graph_id, graph_version = graph_version, metadata = metadata, facts = substr(head, 9, {DIGEST_SIZE})
    WHERE h.thread_id = thread_id;
    DELETE FROM {{s}}.strata_listing AS l
    WHERE l.facet = ANY (old_facets) AND l.state = old_state AND l.place = old_place AND l.thread_id = thread_id;
    {_LIST}{_ADD_ROW}
    RETURN concat('[0,', at, ',0,0,0]');
END $strata$
"""  # noqa: S608

ALONE: Final = (_FIRST, _NEXT, _LAST)
"""The statements that make the functions; ``{s}`` stands for the schema.  They answer as `strata_commit_1` does."""
