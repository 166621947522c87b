"""The rule book in the database: `strata_core.rows.decide`, transcribed, for what of a batch is no ordinary save.

`strata_commit_1` calls it, when it has locked the heads of the whole batch (see `_function`).

It cannot deadlock with itself.  Heads that exist are locked first, in the order of thread IDs; only then come new ones,
in the same order.  Whoever waits for a new head waits for a call that has all its locks on heads; and a call never
waits for a lock on a new head, which it cannot see.  A head that somebody else was first to make undoes the whole call
(``serialization_failure``), which is made again and then finds it.
"""

from __future__ import annotations

from typing import Final

from strata_core.rows import ANY
from strata_postgres._facets import DUE_AT, LAG, LEASED, RUNNING
from strata_postgres._function import DIGEST_SIZE, ITEMS, SETTINGS

__all__ = ["JUDGE"]

_JUDGE: Final = """
CREATE FUNCTION {s}.strata_judge_1(numbers bigint[], texts text[], contents bytea, done integer[], locked integer[])
RETURNS text LANGUAGE plpgsql
{settings}
AS $strata$
#variable_conflict use_variable
DECLARE
    item record;
    was {s}.strata_heads;       -- the head as it is
    head {s}.strata_heads;      -- and as it will be
    clock bigint;
    known boolean;
    live boolean;
    own boolean;                -- this very commit took the live lease
    taking boolean;
    seen integer;               -- where in its write IDs, from 1
    again integer;
    refusal text;
    answers text[];
    created {s}.strata_heads[];
    kept {s}.strata_heads[];
    unlisted {s}.strata_heads[];
    listed {s}.strata_heads[];
    new_rows {s}.strata_rows[];
    new_blobs {s}.strata_blobs[];
    gone text[];
    erased bigint[];
    start integer;
    made integer;
BEGIN
    clock := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

    FOR item IN
        SELECT i.*, x.*, h.was, substr(contents, i.start, 8) AS write_id,
               substr(contents, i.start + {head}, i.skip - {head}) AS after_id
        FROM ({items}) AS i
        CROSS JOIN LATERAL json_to_record(i.facts::json) AS x(
            free boolean, external boolean, lease text, owner text, ttl bigint, closing boolean, erase boolean,
            state smallint, due bigint, graph_id text, graph_version text, metadata jsonb, facets bigint[],
            digests text[], sizes integer[])
        LEFT JOIN LATERAL (
            SELECT h AS was FROM {s}.strata_heads AS h
            WHERE h.thread_id = i.thread_id AND i.at = ANY (locked) OFFSET 0) AS h ON true
        WHERE i.at <> ALL (done)
    LOOP
        known := (item.was).thread IS NOT NULL;
        IF known THEN
            was := item.was;
        ELSE
            was := ROW(NULL, 0, 0, 0, 0, -1, -1, 0, false, false, item.thread_id, '', '', '', '{0}',
                       NULL, NULL, NULL, NULL, '');
        END IF;
        taking := coalesce(item.lease = 'take', false);
        live := was.token <> 0 AND was.expires > clock;
        own := taking AND live AND was.lease_id = item.write_id;

        -- 1. Repeated.
        again := NULL;
        IF item.version IS NOT NULL THEN
            seen := position(item.write_id IN was.write_ids);
            WHILE seen > 0 AND (seen - 1) % 8 <> 0 LOOP
                made := position(item.write_id IN substr(was.write_ids, seen + 1));
                seen := CASE WHEN made = 0 THEN 0 ELSE seen + made END;
            END LOOP;
            IF seen > 0 THEN
                again := was.sequence - (seen - 1) / 8;
            END IF;
        ELSIF own THEN
            again := was.sequence;
        END IF;
        IF again IS NOT NULL THEN
            IF taking AND NOT own THEN
                answers := answers || concat('[', item.at, ',', again, ',0,0,1]');
            ELSE
                answers := answers || concat('[', item.at, ',', again, ',', was.token, ',', was.expires, ',1]');
            END IF;
            CONTINUE;
        END IF;

        refusal := NULL;
        IF item.token <> 0 THEN
            -- 2. Lost.
            IF NOT live OR was.token <> item.token THEN
                refusal := 'lost';
            END IF;
        ELSIF was.closing AND NOT (taking AND coalesce(item.closing, false) AND NOT live) THEN
            -- 3. Closing.
            refusal := 'closing';
        ELSIF live AND (item.free OR taking) THEN
            -- 4. Held.
            refusal := 'held';
        END IF;
        -- 5. Changed.
        IF refusal IS NULL AND item.after <> {any} AND (
                item.after <> was.sequence
                OR known AND item.after_id <> substr(was.write_ids, 1, length(item.after_id))) THEN
            refusal := 'changed';
        END IF;
        IF refusal IS NOT NULL THEN
            answers := answers || CASE WHEN known THEN
                json_build_array(item.at, refusal, was.sequence, encode(was.write_ids, 'hex'), was.token, was.owner,
                                 was.expires, was.external, was.closing, clock)::text
                ELSE json_build_array(item.at, refusal)::text END;
            CONTINUE;
        END IF;

        head := was;
        head.external := was.external OR coalesce(item.external, false);
        IF taking THEN
            head.token := nextval('{s}.strata_tokens');
            head.owner := item.owner;
            head.expires := clock + item.ttl;
            head.lease_id := item.write_id;
            head.closing := was.closing OR coalesce(item.closing, false);
        ELSIF item.lease = 'extend' THEN
            head.expires := clock + item.ttl;
        ELSIF item.lease = 'drop' THEN
            head.token := 0; head.owner := ''; head.expires := 0; head.lease_id := ''; head.closing := false;
        END IF;
        IF item.erase THEN
            IF known THEN
                erased := erased || was.thread;
            END IF;
            head.updated := 0; head.place := 0; head.sequence := -1; head.whole_at := -1; head.state := 0;
            head.write_ids := ''; head.facets := '{0}'; head.facts := '';
            head.due := NULL; head.graph_id := NULL; head.graph_version := NULL; head.metadata := NULL;
            IF NOT taking THEN
                head.token := 0; head.expires := 0;
            END IF;
        ELSIF item.version IS NOT NULL THEN
            head.sequence := was.sequence + 1;
            IF item.whole = 1 THEN
                head.whole_at := head.sequence;
            END IF;
            head.write_ids := substr(item.write_id || was.write_ids, 1, 64);
            head.state := item.state;
            head.updated := item.updated;
            head.due := item.due;
            head.graph_id := item.graph_id;
            head.graph_version := item.graph_version;
            head.metadata := item.metadata;
            head.facets := item.facets;
            head.facts := substr(contents, item.start + 8, {digest});
            IF NOT (item.state = {running} AND was.state = {running}
                    AND item.updated >= was.place AND item.updated < was.place + {lag}) THEN
                head.place := item.updated;
            END IF;
        END IF;

        answers := answers || concat('[', item.at, ',', head.sequence, ',', head.token, ',', head.expires, ',0]');
        IF head.sequence < 0 AND head.token = 0 THEN
            IF known THEN
                gone := gone || was.thread_id;
                unlisted := unlisted || was;
            END IF;
            CONTINUE;
        END IF;
        IF head.sequence >= 0 AND (item.version IS NOT NULL OR item.lease IS NOT NULL) THEN
            head.facets := array_remove(head.facets, {leased});
            IF head.token <> 0 THEN
                head.facets := head.facets || {leased}::bigint;
            END IF;
        END IF;
        IF NOT known THEN
            head.thread := nextval('{s}.strata_threads');
            created := created || head;
            listed := listed || head;
        ELSE
            kept := kept || head;
            IF head.place <> was.place OR head.state <> was.state OR head.facets <> was.facets
               OR head.due IS DISTINCT FROM was.due THEN
                unlisted := unlisted || was;
                listed := listed || head;
            END IF;
        END IF;
        IF item.version IS NOT NULL THEN
            start := item.start + item.skip;
            new_rows := new_rows || ROW(head.thread, head.sequence, head.whole_at, item.write_id, item.version,
                                substr(contents, start, item.envelope),
                                substr(contents, start + item.envelope, item.body))::{s}.strata_rows;
            start := start + item.envelope + item.body;
            FOR each IN 1 .. coalesce(cardinality(item.digests), 0) LOOP
                new_blobs := new_blobs || ROW(head.thread, item.digests[each],
                                      substr(contents, start, item.sizes[each]))::{s}.strata_blobs;
                start := start + item.sizes[each];
            END LOOP;
        END IF;
    END LOOP;

    IF created IS NOT NULL THEN
        INSERT INTO {s}.strata_heads SELECT n.* FROM unnest(created) AS n ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS made = ROW_COUNT;
        IF made < cardinality(created) THEN
            RAISE serialization_failure USING MESSAGE = 'somebody else was first to create a thread';
        END IF;
    END IF;
    IF kept IS NOT NULL THEN
        UPDATE {s}.strata_heads AS h
        SET updated = n.updated, place = n.place, token = n.token, expires = n.expires, sequence = n.sequence,
            whole_at = n.whole_at, state = n.state, external = n.external, closing = n.closing,
            write_ids = n.write_ids, owner = n.owner, lease_id = n.lease_id, facets = n.facets, due = n.due,
            graph_id = n.graph_id, graph_version = n.graph_version, metadata = n.metadata, facts = n.facts
        FROM unnest(kept) AS n WHERE h.thread_id = n.thread_id;
    END IF;
    IF gone IS NOT NULL THEN
        DELETE FROM {s}.strata_heads AS h WHERE h.thread_id = ANY (gone);
    END IF;
    IF erased IS NOT NULL THEN
        DELETE FROM {s}.strata_rows AS r WHERE r.thread = ANY (erased);
        DELETE FROM {s}.strata_blobs AS b WHERE b.thread = ANY (erased);
    END IF;
    IF unlisted IS NOT NULL THEN
        DELETE FROM {s}.strata_listing AS l
        USING (SELECT f.facet, n.state, CASE f.facet WHEN {due_at} THEN n.due ELSE n.place END AS place, n.thread_id
               FROM unnest(unlisted) AS n CROSS JOIN LATERAL unnest(n.facets) AS f(facet)) AS o
        WHERE l.facet = o.facet AND l.state = o.state AND l.place = o.place AND l.thread_id = o.thread_id;
    END IF;
    IF listed IS NOT NULL THEN
        INSERT INTO {s}.strata_listing(facet, state, place, thread_id)
        SELECT f.facet, n.state, CASE f.facet WHEN {due_at} THEN n.due ELSE n.place END, n.thread_id
        FROM unnest(listed) AS n CROSS JOIN LATERAL unnest(n.facets) AS f(facet);
    END IF;
    IF new_rows IS NOT NULL THEN
        INSERT INTO {s}.strata_rows SELECT r.* FROM unnest(new_rows) AS r;
    END IF;
    IF new_blobs IS NOT NULL THEN
        INSERT INTO {s}.strata_blobs SELECT b.* FROM unnest(new_blobs) AS b ON CONFLICT DO NOTHING;
    END IF;
    RETURN array_to_string(answers, ',');
END $strata$
"""

JUDGE: Final = (
    _JUDGE.replace("{settings}", SETTINGS)
    .replace("{items}", ITEMS)
    .replace("{head}", str(8 + DIGEST_SIZE))
    .replace("{digest}", str(DIGEST_SIZE))
    .replace("{any}", str(ANY))
    .replace("{running}", str(RUNNING))
    .replace("{lag}", str(LAG))
    .replace("{leased}", str(LEASED))
    .replace("{due_at}", str(DUE_AT))
)
"""The statement that makes the function; ``{s}`` stands for the schema.

It takes what `strata_commit_1` was given, which items are done, and of which a head is locked.  Its answer for an item
is ``[at, sequence, token, expires, repeated]``, or ``[at, why, ...]`` with the head that it was refused by, if there
was one.
"""
