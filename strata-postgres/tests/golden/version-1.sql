-- A store of schema version 1, which had no blobs; SCHEMA stands for its schema.
CREATE SCHEMA "SCHEMA";
CREATE TABLE "SCHEMA".strata_version(version integer NOT NULL);
CREATE SEQUENCE "SCHEMA".strata_tokens;
CREATE SEQUENCE "SCHEMA".strata_threads;
CREATE TABLE "SCHEMA".strata_heads(
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
WITH (fillfactor = 60);
CREATE TABLE "SCHEMA".strata_listing(
    facet     bigint NOT NULL,
    place     bigint NOT NULL,
    state     smallint NOT NULL,
    thread_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (facet, state, place, thread_id));
CREATE TABLE "SCHEMA".strata_rows(
    thread   bigint NOT NULL,
    sequence integer NOT NULL,
    whole_at integer NOT NULL,
    write_id bytea NOT NULL,
    version  text NOT NULL,
    envelope bytea NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (thread, sequence));
DO $strata$
BEGIN
    ALTER TABLE "SCHEMA".strata_rows ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR syntax_error OR invalid_parameter_value THEN
    NULL;  -- before 14, or built without: then it is pglz
END $strata$;
CREATE FUNCTION "SCHEMA".strata_text(content bytea) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $strata$
BEGIN
    RETURN convert_from(content, 'UTF8');
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;  -- a damaged row must not hide the others
END $strata$;
CREATE FUNCTION "SCHEMA".strata_json(content bytea) RETURNS json LANGUAGE plpgsql STABLE PARALLEL SAFE AS $strata$
BEGIN
    -- Operators of json cannot pass over an escaped NUL, wherever in the record it is; it shows as U+FFFD.
    RETURN regexp_replace(convert_from(content, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::json;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $strata$;
CREATE VIEW "SCHEMA".checkpoints AS
SELECT h.thread_id,
       r.sequence,
       e.record ->> 'status' AS status,
       r.version AS schema_version,
       "SCHEMA".strata_text(r.body) AS frozen_state,
       e.record ->> 'created_at' AS created_at,
       e.record ->> 'suspended_node' AS suspended_node,
       e.record ->> 'next_node' AS next_node,
       e.record -> 'metadata' AS metadata,
       e.record -> 'decision' AS decision,
       e.record -> 'wait' AS wait,
       e.record -> 'graph' ->> 'id' AS graph_id,
       e.record -> 'graph' ->> 'version' AS graph_version,
       e.record ->> 'resumed_at' AS resumed_at,
       "SCHEMA".strata_text(r.envelope) AS envelope
FROM "SCHEMA".strata_heads AS h
JOIN "SCHEMA".strata_rows AS r ON r.thread = h.thread
CROSS JOIN LATERAL (SELECT "SCHEMA".strata_json(r.envelope) AS record OFFSET 0) AS e;
CREATE FUNCTION "SCHEMA".strata_list_1(statement text, arguments jsonb) RETURNS SETOF record LANGUAGE plpgsql
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET max_parallel_workers_per_gather = 0 SET jit = off
AS $strata$
BEGIN
    RETURN QUERY EXECUTE statement USING arguments;
END $strata$;
INSERT INTO "SCHEMA".strata_version VALUES (1);
INSERT INTO "SCHEMA".strata_heads(thread, updated, place, token, expires, sequence, whole_at, state, external, closing, thread_id, write_ids, owner, lease_id, facets, due, graph_id, graph_version, metadata)
    VALUES ('1', '1793371792000005', '1793371792000005', '0', '0', '2', '2', '5', 'false', 'false', 'order-1', E'\\x000000000000000300000000000000020000000000000001', '', E'\\x', '{0}', NULL, NULL, NULL, NULL);
INSERT INTO "SCHEMA".strata_heads(thread, updated, place, token, expires, sequence, whole_at, state, external, closing, thread_id, write_ids, owner, lease_id, facets, due, graph_id, graph_version, metadata)
    VALUES ('2', '1793371791999993', '1793371791999993', '0', '0', '0', '0', '1', 'false', 'false', '注文-2', E'\\x0000000000000004', '', E'\\x', '{-1800138864216794336,-480341759752681739,0,2,3,845736580437495443,1611147389211741542,4193996195775876676}', '1793371792000010', 'orders', '3', '{"tier": "gold", "tenant": "acme"}');
INSERT INTO "SCHEMA".strata_heads(thread, updated, place, token, expires, sequence, whole_at, state, external, closing, thread_id, write_ids, owner, lease_id, facets, due, graph_id, graph_version, metadata)
    VALUES ('3', '1793371792000009', '1793371792000009', '1', '1793371852000000', '0', '0', '4', 'false', 'false', 'order-3', E'\\x0000000000000005', 'worker-7', E'\\x0000000000000005', '{0,1}', NULL, NULL, NULL, NULL);
INSERT INTO "SCHEMA".strata_heads(thread, updated, place, token, expires, sequence, whole_at, state, external, closing, thread_id, write_ids, owner, lease_id, facets, due, graph_id, graph_version, metadata)
    VALUES ('4', '0', '0', '2', '1793371852000000', '-1', '-1', '0', 'false', 'false', 'order-4', E'\\x', 'worker-8', E'\\x0000000000000006', '{0}', NULL, NULL, NULL, NULL);
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('-1800138864216794336', '1793371791999993', '1', '注文-2');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('-480341759752681739', '1793371791999993', '1', '注文-2');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('0', '0', '0', 'order-4');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('0', '1793371791999993', '1', '注文-2');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('0', '1793371792000005', '5', 'order-1');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('0', '1793371792000009', '4', 'order-3');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('1', '1793371792000009', '4', 'order-3');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('1611147389211741542', '1793371791999993', '1', '注文-2');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('2', '1793371791999993', '1', '注文-2');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('3', '1793371792000010', '1', '注文-2');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('4193996195775876676', '1793371791999993', '1', '注文-2');
INSERT INTO "SCHEMA".strata_listing(facet, place, state, thread_id)
    VALUES ('845736580437495443', '1793371791999993', '1', '注文-2');
INSERT INTO "SCHEMA".strata_rows(thread, sequence, whole_at, write_id, version, envelope, body)
    VALUES ('1', '0', '0', E'\\x0000000000000001', '1.7.0', E'\\x7b22736368656d615f76657273696f6e223a22312e372e30222c227468726561645f6964223a226f726465722d31222c22737461747573223a2272756e6e696e67222c22637265617465645f6174223a22323032362d31302d33305431343a34393a35322e3030303030305a227d', E'\\x7b22616d6f756e74223a3130302c226e6f7465223a22615c753030303062227d');
INSERT INTO "SCHEMA".strata_rows(thread, sequence, whole_at, write_id, version, envelope, body)
    VALUES ('1', '1', '0', E'\\x0000000000000002', '1.8.0', E'\\x7b22736368656d615f76657273696f6e223a22312e372e30222c227468726561645f6964223a226f726465722d31222c22737461747573223a2272756e6e696e67222c22637265617465645f6174223a22323032362d31302d33305431343a34393a35322e3030303030305a227d', E'\\x7b2262617365223a302c22736574223a7b22616d6f756e74223a3230307d2c22756e736574223a5b5d7d');
INSERT INTO "SCHEMA".strata_rows(thread, sequence, whole_at, write_id, version, envelope, body)
    VALUES ('1', '2', '2', E'\\x0000000000000003', '1.7.0', E'\\x7b22736368656d615f76657273696f6e223a22312e372e30222c227468726561645f6964223a226f726465722d31222c22737461747573223a22636f6d706c65746564222c22637265617465645f6174223a22323032362d31302d33305431343a34393a35322e3030303030305a227d', E'\\x7b22616d6f756e74223a3230302c226e6f7465223a22646f6e65227d');
INSERT INTO "SCHEMA".strata_rows(thread, sequence, whole_at, write_id, version, envelope, body)
    VALUES ('2', '0', '0', E'\\x0000000000000004', '1.7.0', E'\\x7b22736368656d615f76657273696f6e223a22312e372e30222c227468726561645f6964223a22e6b3a8e696872d32222c22737461747573223a22696e746572727570746564222c22637265617465645f6174223a22323032362d31302d33305431343a34393a35322e3030303030305a227d', E'\\x7b2273746570223a317d');
INSERT INTO "SCHEMA".strata_rows(thread, sequence, whole_at, write_id, version, envelope, body)
    VALUES ('3', '0', '0', E'\\x0000000000000005', '1.7.0', E'\\x7b22736368656d615f76657273696f6e223a22312e372e30222c227468726561645f6964223a226f726465722d33222c22737461747573223a2272756e6e696e67222c22637265617465645f6174223a22323032362d31302d33305431343a34393a35322e3030303030305a227d', E'\\x7b2273746570223a317d');
SELECT setval('"SCHEMA".strata_tokens', 2);
SELECT setval('"SCHEMA".strata_threads', 4);
