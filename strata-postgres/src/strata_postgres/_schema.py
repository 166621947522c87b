"""The tables, and the steps that make them.

Everything lies in one schema, whose name stands for ``{s}`` below.  The version of the schema is the one row of
`strata_version`.

A thread has a number, under which its rows and blobs lie.  `strata_heads` has one index, on the thread's ID, and no
save ever changes that: so every update of a head is a HOT update, which writes no index, as long as its page has room
(`fillfactor`).

A head has the digest of its facts, that is metadata, graph and due time: whether any of them changes, a save tells by
that, without a look at them (see `_function`).

What is listed by stands in `strata_listing`, an entry for each thread and *facet*: one facet that all threads have, one
for each metadata pair, for the graph, for being leased, for being due.  Its key is (facet, state, place, thread ID), so
each listing is a range, or a few that are merged, in the order in which it is wanted.  The *place* is the time of
update, with one exception that makes an ordinary save cheap: a thread that goes on running keeps its entries for up to
`_facets.LAG`, so its place may be that much too early.  Measured, per save of 1 KB in a batch of fifty, with one pair
and a graph: 11 pages touched, 5 records of the log and 1,590 bytes of it, against 46, 20 and 2,800 where the entries
move.  `_list` sets the order right.

Envelopes and bodies are bytes, not text, since they are opaque: whatever was written comes back.  Views show them as
text.  (``jsonb`` could not hold a NUL in a string of the state.)
"""

from __future__ import annotations

from typing import Final

from strata_postgres._alone import ALONE
from strata_postgres._function import COMMIT
from strata_postgres._judge import JUDGE
from strata_postgres._list import LIST

__all__ = ["NAMES", "STEPS", "VERSION", "quoted"]

NAMES: Final = (
    "strata_heads",
    "strata_rows",
    "strata_listing",
    "strata_blobs",
    "checkpoints",
    "checkpoint_blobs",
    "threads",
)
"""The tables and views; in a schema without `strata_version`, one of these is somebody else's."""


def _text(moment: str) -> str:
    """Return the SQL for microseconds since 1970 as text; exact, also before 1970 and in the year 9999."""
    whole = f"({moment} / 1000000) * interval '1 second'"
    rest = f"({moment} % 1000000) * interval '1 microsecond'"
    return f"""to_char(timestamp 'epoch' + {whole} + {rest}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


_COMPRESSED: Final = """
    DO $strata$
    BEGIN
        ALTER TABLE {s}.%s ALTER COLUMN %s SET COMPRESSION lz4;
    EXCEPTION WHEN feature_not_supported OR syntax_error OR invalid_parameter_value THEN
        NULL;  -- before 14, or built without: then it is pglz
    END $strata$
    """

_VERSION_1: Final = (
    "CREATE TABLE {s}.strata_version(version integer NOT NULL)",
    "CREATE SEQUENCE {s}.strata_tokens",
    "CREATE SEQUENCE {s}.strata_threads",
    """
    CREATE TABLE {s}.strata_heads(
        thread        bigint NOT NULL,
        updated       bigint NOT NULL,
        place         bigint NOT NULL,
        token         bigint NOT NULL,
        expires       bigint NOT NULL,
        sequence      integer NOT NULL,
        whole_at      integer NOT NULL,
        state         smallint NOT NULL,
        external      boolean NOT NULL,
        closing       boolean NOT NULL,
        thread_id     text COLLATE "C" PRIMARY KEY,
        write_ids     bytea NOT NULL,
        owner         text NOT NULL,
        lease_id      bytea NOT NULL,
        facets        bigint[] NOT NULL,
        due           bigint,
        graph_id      text,
        graph_version text,
        metadata      jsonb)
    WITH (fillfactor = 60)
    """,
    """
    CREATE TABLE {s}.strata_listing(
        facet     bigint NOT NULL,
        place     bigint NOT NULL,
        state     smallint NOT NULL,
        thread_id text COLLATE "C" NOT NULL,
        PRIMARY KEY (facet, state, place, thread_id))
    """,
    """
    CREATE TABLE {s}.strata_rows(
        thread   bigint NOT NULL,
        sequence integer NOT NULL,
        whole_at integer NOT NULL,
        write_id bytea NOT NULL,
        version  text NOT NULL,
        envelope bytea NOT NULL,
        body     bytea NOT NULL,
        PRIMARY KEY (thread, sequence))
    """,
    _COMPRESSED % ("strata_rows", "body"),
    """
    CREATE FUNCTION {s}.strata_text(content bytea) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $strata$
    BEGIN
        RETURN convert_from(content, 'UTF8');
    EXCEPTION WHEN OTHERS THEN
        RETURN NULL;  -- a damaged row must not hide the others
    END $strata$
    """,
    r"""
    CREATE FUNCTION {s}.strata_json(content bytea) RETURNS json LANGUAGE plpgsql STABLE PARALLEL SAFE AS $strata$
    BEGIN
        -- Operators of json cannot pass over an escaped NUL, wherever in the record it is; it shows as U+FFFD.
        RETURN regexp_replace(convert_from(content, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::json;
    EXCEPTION WHEN OTHERS THEN
        RETURN NULL;
    END $strata$
    """,
    """
    CREATE VIEW {s}.checkpoints AS
    SELECT h.thread_id,
           r.sequence,
           e.record ->> 'status' AS status,
           r.version AS schema_version,
           {s}.strata_text(r.body) AS frozen_state,
           e.record ->> 'created_at' AS created_at,
           e.record ->> 'suspended_node' AS suspended_node,
           e.record ->> 'next_node' AS next_node,
           e.record -> 'metadata' AS metadata,
           e.record -> 'decision' AS decision,
           e.record -> 'wait' AS wait,
           e.record -> 'graph' ->> 'id' AS graph_id,
           e.record -> 'graph' ->> 'version' AS graph_version,
           e.record ->> 'resumed_at' AS resumed_at,
           {s}.strata_text(r.envelope) AS envelope
    FROM {s}.strata_heads AS h
    JOIN {s}.strata_rows AS r ON r.thread = h.thread
    CROSS JOIN LATERAL (SELECT {s}.strata_json(r.envelope) AS record OFFSET 0) AS e
    """,
    LIST,
)
_VERSION_2: Final = (
    """
    CREATE TABLE {s}.strata_blobs(
        thread  bigint NOT NULL,
        digest  text COLLATE "C" NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (thread, digest))
    """,
    _COMPRESSED % ("strata_blobs", "content"),
    """
    CREATE VIEW {s}.checkpoint_blobs AS
    SELECT h.thread_id, b.digest AS hash, b.content
    FROM {s}.strata_heads AS h
    JOIN {s}.strata_blobs AS b ON b.thread = h.thread
    """,
    f"""
    CREATE VIEW {{s}}.threads AS
    SELECT h.thread_id,
           CASE h.state
               WHEN 1 THEN 'interrupted' WHEN 2 THEN 'failed' WHEN 3 THEN 'cancelled' WHEN 4 THEN 'running'
               WHEN 5 THEN 'completed' WHEN 6 THEN 'ended' WHEN 7 THEN 'resumed' END AS state,
           {_text("h.updated")} AS updated_at,
           h.sequence + 1 AS checkpoints,
           {_text("h.due")} AS due_at,
           h.graph_id,
           h.graph_version,
           h.metadata,
           CASE WHEN h.token <> 0 THEN h.owner END AS lease_owner,
           CASE WHEN h.token <> 0 THEN {_text("h.expires")} END AS lease_expires_at
    FROM {{s}}.strata_heads AS h
    WHERE h.sequence >= 0
    """,  # noqa: S608  # put together from our own text
    "ALTER TABLE {s}.strata_heads ADD COLUMN facts bytea NOT NULL DEFAULT ''",
    JUDGE,
    COMMIT,
    *ALONE,
    # A block with EXCEPTION must not run in a parallel plan; and see `_function` about the search path.
    *(
        f"ALTER FUNCTION {{s}}.{function} PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp"
        for function in ("strata_text(bytea)", "strata_json(bytea)", "strata_list_1(text, jsonb)")
    ),
)

STEPS: Final = (_VERSION_1, _VERSION_2)
"""What leads from each version to the next; a new schema takes all of them.

What holds nothing, such as the function, can be made anew by any step; releases beside each other call their own.
"""
VERSION: Final = len(STEPS)
"""The version this release writes."""


def quoted(schema: str) -> str:
    """Return the name of a schema as an identifier; `check_schema` has passed it, so it holds no quotation mark."""
    return f'"{schema}"'
