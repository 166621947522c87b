"""Several processes on one database."""

from collections import Counter

from postgres_support import finish, golden_version_1, query, start, with_backend

from strata_core.rows import HeadQuery
from strata_postgres import PostgresBackend
from strata_postgres._schema import VERSION


def test_four_processes_that_write_own_and_shared_threads_lose_nothing(url: str) -> None:
    async def check(backend: PostgresBackend) -> None:
        assert 5 == len(await backend.list_heads(HeadQuery()))
        for thread_id, count in acknowledged.items():
            rows = await backend.read(thread_id, 0, None)

            assert list(range(count)) == [row.sequence for row in rows]
            assert count == len({row.write_id for row in rows})

    processes = [start("commit_many.py", url, f"worker-{number}", 25) for number in range(4)]
    lines = [line.split() for process in processes for line in finish(process).splitlines()]
    acknowledged = Counter(thread_id for thread_id, _ in lines)

    assert 100 == acknowledged["shared"]
    assert set(range(100)) == {int(sequence) for thread_id, sequence in lines if thread_id == "shared"}
    with_backend(url, check)


def test_twenty_processes_that_open_a_new_schema_together_set_it_up_once(url: str) -> None:
    finish(start("open_and_close.py", url, 20))

    assert [(20,)] == query(url, "SELECT count(*) FROM checkpoints")
    assert [(VERSION,)] == query(url, "SELECT version FROM strata_version")


def test_processes_that_open_an_old_schema_together_upgrade_it_once(url: str) -> None:
    golden_version_1(url)
    before = query(url, "SELECT * FROM strata_rows ORDER BY thread, sequence")
    finish(start("open_and_close.py", url, 6))

    assert [(VERSION,)] == query(url, "SELECT version FROM strata_version")
    old = "SELECT r.* FROM strata_rows AS r JOIN strata_heads AS h USING (thread) WHERE h.thread_id !~ '^t[0-9]'"
    assert before == query(url, f"{old} ORDER BY r.thread, r.sequence")
    assert [(6,)] == query(url, "SELECT count(*) FROM checkpoints WHERE thread_id ~ '^t[0-9]'")
