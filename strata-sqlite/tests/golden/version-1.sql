-- A database of schema version 1, as SQL.  Never changed: what upgrades and reads old files is tested with it.
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE strata_counters(token INTEGER NOT NULL);
INSERT INTO "strata_counters" VALUES(2);
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
        closing       INTEGER NOT NULL);
INSERT INTO "strata_heads" VALUES(1,'order-1',2,2,X'777269746530303277726974653030317772697465303030',5,1793371792000002,NULL,NULL,NULL,NULL,0,0,'',0,X'',0);
INSERT INTO "strata_heads" VALUES(2,'注文-2',0,0,X'7772697465303033',1,1793371792000003,1793371792000010,'orders','3','{"tenant":"acme","tier":"gold"}',0,0,'',0,X'',0);
INSERT INTO "strata_heads" VALUES(3,'order-3',0,0,X'7772697465303034',4,1793371792000000,NULL,NULL,NULL,NULL,0,1,'worker-7',1793371852000000,X'7772697465303034',0);
INSERT INTO "strata_heads" VALUES(4,'order-4',-1,-1,X'','',0,NULL,NULL,NULL,NULL,0,2,'worker-8',1793371852000000,X'7772697465303035',0);
CREATE TABLE strata_metadata(
        key    TEXT NOT NULL,
        value  TEXT NOT NULL,
        thread INTEGER NOT NULL,
        PRIMARY KEY (key, value, thread)) WITHOUT ROWID
    ;
INSERT INTO "strata_metadata" VALUES('tenant','acme',2);
INSERT INTO "strata_metadata" VALUES('tier','gold',2);
CREATE TABLE strata_rows(
        number   INTEGER PRIMARY KEY,
        thread   INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        whole_at INTEGER NOT NULL,
        write_id BLOB NOT NULL,
        version  TEXT NOT NULL,
        envelope TEXT NOT NULL,
        body     TEXT NOT NULL);
INSERT INTO "strata_rows" VALUES(1,1,0,0,X'7772697465303030','1.7.0','{"schema_version":"1.7.0","thread_id":"order-1","status":"running","created_at":"2026-10-30T14:49:52.000000Z"}','{"amount":100,"note":"a\u0000b"}');
INSERT INTO "strata_rows" VALUES(2,1,1,0,X'7772697465303031','1.8.0','{"schema_version":"1.7.0","thread_id":"order-1","status":"running","created_at":"2026-10-30T14:49:52.000000Z"}','{"base":0,"set":{"amount":120},"unset":[]}');
INSERT INTO "strata_rows" VALUES(3,1,2,2,X'7772697465303032','1.7.0','{"schema_version":"1.7.0","thread_id":"order-1","status":"completed","created_at":"2026-10-30T14:49:52.000000Z"}','{"amount":120,"note":"a\u0000b"}');
INSERT INTO "strata_rows" VALUES(4,2,0,0,X'7772697465303033','1.7.0','{"schema_version":"1.7.0","thread_id":"注文-2","status":"interrupted","created_at":"2026-10-30T14:49:52.000000Z"}','{"step":1}');
INSERT INTO "strata_rows" VALUES(5,3,0,0,X'7772697465303034','1.7.0','{"schema_version":"1.7.0","thread_id":"order-3","status":"running","created_at":"2026-10-30T14:49:52.000000Z"}','{"step":1}');
CREATE INDEX strata_heads_by_state ON strata_heads(state, updated, thread_id);
CREATE INDEX strata_heads_by_due ON strata_heads(due) WHERE due IS NOT NULL;
CREATE INDEX strata_heads_by_graph ON strata_heads(graph_id, graph_version) WHERE graph_id IS NOT NULL;
CREATE INDEX strata_heads_by_lease ON strata_heads(expires) WHERE token <> 0;
CREATE UNIQUE INDEX strata_rows_by_place ON strata_rows(thread, sequence);
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
    CROSS JOIN strata_rows AS r ON r.thread = h.thread;
CREATE VIEW threads AS
    SELECT h.thread_id,
           CASE h.state
               WHEN 1 THEN 'interrupted' WHEN 2 THEN 'failed' WHEN 3 THEN 'cancelled' WHEN 4 THEN 'running'
               WHEN 5 THEN 'completed' WHEN 6 THEN 'ended' WHEN 7 THEN 'resumed' ELSE h.state END AS state,
           strftime('%Y-%m-%dT%H:%M:%S', h.updated / 1000000, 'unixepoch')
               || printf('.%06dZ', h.updated % 1000000) AS updated_at,
           h.sequence + 1 AS checkpoints,
           strftime('%Y-%m-%dT%H:%M:%S', h.due / 1000000, 'unixepoch')
               || printf('.%06dZ', h.due % 1000000) AS due_at,
           h.graph_id,
           h.graph_version,
           h.metadata,
           CASE WHEN h.token <> 0 THEN h.owner END AS lease_owner,
           CASE WHEN h.token <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', h.expires / 1000000, 'unixepoch')
               || printf('.%06dZ', h.expires % 1000000) END AS lease_expires_at
    FROM strata_heads AS h
    WHERE h.sequence >= 0;
PRAGMA application_id = 1398035009;
PRAGMA user_version = 1;
COMMIT;
