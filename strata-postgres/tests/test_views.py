"""What people see with any PostgreSQL client, and what a thread costs on the disk."""

import json
from datetime import UTC, datetime

from postgres_support import EXAMPLE_TIME, query, save, with_backend

from strata_core.clock import micros
from strata_core.rows import Commit, Take
from strata_postgres import PostgresBackend

ROWS = "SELECT sequence, status, schema_version, length(frozen_state) FROM checkpoints WHERE thread_id = 'report-1';"
BLOBS = "SELECT hash, length(content) FROM checkpoint_blobs;"
EVIDENCE = "sha256:55bb3c98333f4f20aa23ec49458f604541b9b5413cdf3b90ad17ceae5653b036"


async def write_report(backend: PostgresBackend) -> None:
    content = json.dumps("x" * 100_000).encode()
    await backend.commit([save(f"report-{number + 2}") for number in range(3)])
    await backend.commit([save("report-1", body=b'{"evidence":"","step":0}', metadata={"tenant": "acme"})])
    await backend.commit([save("report-1", version="1.9.0", body=b'{"whole":{}}', blobs=((EVIDENCE, content),))])
    await backend.commit([save("report-1", version="1.8.0", whole=False, body=b'{"base":1,"set":{"step":1}}')])
    await backend.commit([save("report-1", "completed", body='{"text":"日本"}'.encode())])


def test_the_two_documented_queries_run_unchanged(url: str) -> None:
    with_backend(url, write_report)

    assert [
        (0, "running", "1.7.0", 24),
        (1, "running", "1.9.0", 12),
        (2, "running", "1.8.0", 27),
        (3, "completed", "1.7.0", 13),
    ] == sorted(query(url, ROWS))
    assert [(EVIDENCE, 100_002)] == query(url, BLOBS)


def test_the_documented_query_of_a_thread_looks_at_that_thread_only(url: str) -> None:
    with_backend(url, write_report)
    query(
        url, "INSERT INTO strata_rows SELECT 1000 + n, 0, 0, '', '1.7.0', '{}', '{}' FROM generate_series(1, 5000) AS n"
    )
    query(url, "ANALYZE strata_heads, strata_rows")
    plan = "\n".join(line for (line,) in query(url, "EXPLAIN " + ROWS))

    assert "Seq Scan on strata_rows" not in plan
    assert "strata_rows_pkey" in plan


def test_the_views_show_the_record_and_the_thread(url: str) -> None:
    async def write(backend: PostgresBackend) -> None:
        more = {"due": EXAMPLE_TIME + 1, "graph_id": "g", "graph_version": "2", "metadata": {"tenant": "acme"}}
        await backend.commit([save("t", "interrupted", **more)])  # type: ignore[arg-type]
        await backend.commit([Commit("t", b"take0000", lease=Take("worker-7", 5_000_000))])
        await backend.commit([Commit("u", b"take0000", lease=Take("worker-7", 5_000_000))])

    with_backend(url, write)

    assert [("t", 0, "interrupted", "2026-10-30T14:49:52.000000Z", None, '{"step":1}')] == query(
        url, "SELECT thread_id, sequence, status, created_at, suspended_node, frozen_state FROM checkpoints"
    )
    assert [
        ("t", "interrupted", "2026-10-30T14:49:52.000000Z", 1, "2026-10-30T14:49:52.000001Z", "g", "2", "worker-7")
    ] == query(
        url,
        "SELECT thread_id, state, updated_at, checkpoints, due_at, graph_id, graph_version, lease_owner FROM threads",
    )
    assert [("t",)] == query(url, "SELECT thread_id FROM threads WHERE metadata ->> 'tenant' = 'acme'")


def test_every_part_of_a_record_has_its_column(url: str) -> None:
    record = {
        "suspended_node": "Check",
        "next_node": "Pay",
        "metadata": {"tenant": "acme"},
        "decision": {"boundary": "Check", "overrides": {"note": "a\0b\\u0000\\\0"}},
        "wait": {"kind": "timer"},
        "graph": {"id": "g", "version": "2"},
        "resumed_at": "2026-10-30T14:49:53.000000Z",
    }

    async def write(backend: PostgresBackend) -> None:
        commit = save("t", "interrupted")
        assert commit.row is not None
        commit.row.envelope = json.dumps(json.loads(commit.row.envelope) | record).encode()
        await backend.commit([commit])

    with_backend(url, write)
    columns = "suspended_node, next_node, metadata, decision, wait, graph_id, graph_version, resumed_at"
    ((*values, envelope),) = query(url, f"SELECT {columns}, envelope FROM checkpoints")

    decision = {"boundary": "Check", "overrides": {"note": "a\ufffdb\\u0000\\\ufffd"}}  # NUL has no place in a text
    assert ["Check", "Pay", record["metadata"], decision, record["wait"], "g", "2", record["resumed_at"]] == values
    assert record.items() <= json.loads(envelope).items()


def test_a_damaged_row_does_not_hide_the_others(url: str) -> None:
    async def write(backend: PostgresBackend) -> None:
        damaged = save("t", body=b"\xff\xfe")
        assert damaged.row is not None
        damaged.row.envelope = b"\x80\0"
        await backend.commit([save("s")])
        await backend.commit([damaged])

    with_backend(url, write)

    assert [("s", "running", '{"step":1}'), ("t", None, None)] == query(
        url, "SELECT thread_id, status, frozen_state FROM checkpoints ORDER BY thread_id"
    )


def test_times_before_1970_and_at_the_ends_of_the_calendar_read_as_they_are(url: str) -> None:
    times = {
        -1: "1969-12-31T23:59:59.999999Z",
        -500_000: "1969-12-31T23:59:59.500000Z",
        -1_000_000: "1969-12-31T23:59:59.000000Z",
        -1_500_000: "1969-12-31T23:59:58.500000Z",
        0: "1970-01-01T00:00:00.000000Z",
        micros(datetime.min.replace(tzinfo=UTC)): "0001-01-01T00:00:00.000000Z",
        micros(datetime.max.replace(tzinfo=UTC)): "9999-12-31T23:59:59.999999Z",
    }

    async def write(backend: PostgresBackend) -> None:
        await backend.commit([save(text, updated=time, due=time) for time, text in times.items()])

    with_backend(url, write)

    expected = [(text, text, text) for text in sorted(times.values())]
    assert expected == query(url, "SELECT thread_id, updated_at, due_at FROM threads ORDER BY thread_id")


def test_five_thousand_frozen_threads_take_at_most_2500_bytes_each(url: str) -> None:
    """The whole record is 1,280 bytes of JSON, with one metadata pair; indexes and free space counted."""

    async def write(backend: PostgresBackend) -> None:
        for start in range(0, count, 50):
            await backend.commit([frozen(f"thread-{number:05d}") for number in range(start, start + 50)])

    def frozen(thread_id: str) -> Commit:
        commit = save(thread_id, "interrupted", metadata={"tenant": "acme"})
        assert commit.row is not None
        record = json.loads(commit.row.envelope) | {"suspended_node": "Check", "next_node": "Approve"}
        record |= {"metadata": {"tenant": "acme"}}
        commit.row.envelope = json.dumps(record, separators=(",", ":")).encode()
        rest = 1_280 - len(json.dumps(record | {"frozen_state": {"note": ""}}, separators=(",", ":")))
        commit.row.body = json.dumps({"note": "x" * rest}, separators=(",", ":")).encode()
        return commit

    count = 5_000
    with_backend(url, write)
    sizes = {
        name: size / count
        for name, size in query(
            url,
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace",
        )
    }

    assert sum(sizes.values()) <= 2_500, sizes
