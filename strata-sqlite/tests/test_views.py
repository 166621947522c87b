"""What people see with any SQLite client, and what a thread costs on the disk."""

import json
from datetime import UTC, datetime
from pathlib import Path

from sqlite_support import EXAMPLE_TIME, golden_version_1, query, save, with_backend

from strata_core.clock import micros
from strata_core.rows import Commit, Take
from strata_sqlite import SqliteBackend

ROWS = "SELECT sequence, status, schema_version, length(frozen_state) FROM checkpoints WHERE thread_id = 'report-1';"
BLOBS = "SELECT hash, length(content) FROM checkpoint_blobs;"


async def write_report(backend: SqliteBackend) -> None:
    digest = "sha256:55bb3c98333f4f20aa23ec49458f604541b9b5413cdf3b90ad17ceae5653b036"
    content = json.dumps("x" * 100_000).encode()
    for number in range(3):  # other threads in between
        await backend.commit([save(f"report-{number + 2}")])
    await backend.commit([save("report-1", body=b'{"evidence":"","step":0}', metadata={"tenant": "acme"})])
    await backend.commit([save("report-1", version="1.9.0", body=b'{"whole":{}}', blobs=((digest, content),))])
    await backend.commit([save("report-1", version="1.8.0", whole=False, body=b'{"base":1,"set":{"step":1}}')])
    await backend.commit([save("report-2")])
    await backend.commit([save("report-1", "completed", body='{"text":"日本"}'.encode())])


def test_the_two_documented_queries_run_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with_backend(path, write_report)

    assert [
        (0, "running", "1.7.0", 24),
        (1, "running", "1.9.0", 12),
        (2, "running", "1.8.0", 27),
        (3, "completed", "1.7.0", 13),
    ] == query(path, ROWS)
    assert [("sha256:55bb3c98333f4f20aa23ec49458f604541b9b5413cdf3b90ad17ceae5653b036", 100_002)] == query(path, BLOBS)


def test_the_documented_query_of_a_thread_looks_at_that_thread_only_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with_backend(path, write_report)
    plan = [record[3] for record in query(path, "EXPLAIN QUERY PLAN " + ROWS)]

    assert [
        "SEARCH h USING COVERING INDEX sqlite_autoindex_strata_heads_1 (thread_id=?)",
        "SEARCH r USING INDEX strata_rows_by_place (thread=?)",
    ] == plan


def test_the_views_show_the_record_and_the_thread(tmp_path: Path) -> None:
    async def write(backend: SqliteBackend) -> None:
        await backend.commit([save("t", "interrupted", due=EXAMPLE_TIME + 1, graph_id="g", graph_version="2")])
        await backend.commit([Commit("t", b"take0000", lease=Take("worker-7", 5_000_000))])
        await backend.commit([Commit("u", b"take0000", lease=Take("worker-7", 5_000_000))])

    path = tmp_path / "store.db"
    with_backend(path, write)

    assert [("t", 0, "interrupted", "2026-10-30T14:49:52.000000Z", None, '{"step":1}')] == query(
        path, "SELECT thread_id, sequence, status, created_at, suspended_node, frozen_state FROM checkpoints"
    )
    assert [
        ("t", "interrupted", "2026-10-30T14:49:52.000000Z", 1, "2026-10-30T14:49:52.000001Z", "g", "2", "worker-7")
    ] == query(
        path,
        "SELECT thread_id, state, updated_at, checkpoints, due_at, graph_id, graph_version, lease_owner FROM threads",
    )
    assert {"text"} == {each for (each,) in query(path, "SELECT DISTINCT typeof(frozen_state) FROM checkpoints")}


def test_times_before_1970_and_at_the_ends_of_the_calendar_read_as_they_are(tmp_path: Path) -> None:
    times = {
        -1: "1969-12-31T23:59:59.999999Z",
        -500_000: "1969-12-31T23:59:59.500000Z",
        -1_000_000: "1969-12-31T23:59:59.000000Z",
        -1_500_000: "1969-12-31T23:59:58.500000Z",
        0: "1970-01-01T00:00:00.000000Z",
        micros(datetime.min.replace(tzinfo=UTC)): "0001-01-01T00:00:00.000000Z",
        micros(datetime.max.replace(tzinfo=UTC)): "9999-12-31T23:59:59.999999Z",
    }

    async def write(backend: SqliteBackend) -> None:
        await backend.commit([save(text, updated=time, due=time) for time, text in times.items()])

    path = tmp_path / "store.db"
    with_backend(path, write)

    expected = [(text, text, text) for text in sorted(times.values())]
    assert expected == query(path, "SELECT thread_id, updated_at, due_at FROM threads ORDER BY thread_id")


def test_an_upgraded_file_reads_times_before_1970_too(tmp_path: Path) -> None:
    async def write(backend: SqliteBackend) -> None:
        await backend.commit([save("old", updated=-500_000)])

    path = golden_version_1(tmp_path / "store.db")
    with_backend(path, write)

    assert [("1969-12-31T23:59:59.500000Z",)] == query(path, "SELECT updated_at FROM threads WHERE thread_id = 'old'")


def test_ten_thousand_frozen_threads_take_at_most_1550_bytes_each(tmp_path: Path) -> None:
    """The whole record is 1,280 bytes of JSON, with one metadata pair."""

    async def write(backend: SqliteBackend) -> None:
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
        whole = record | {"frozen_state": json.loads(commit.row.body)}
        assert 1_280 == len(json.dumps(whole, separators=(",", ":")))
        return commit

    count = 10_000
    path = tmp_path / "store.db"
    with_backend(path, write)

    assert [path] == list(tmp_path.iterdir())
    assert path.stat().st_size / count <= 1_550
