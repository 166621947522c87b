"""Several processes on one file."""

from collections import Counter
from pathlib import Path

from sqlite_support import finish, golden_version_1, query, start, with_backend

from strata_core.rows import HeadQuery
from strata_sqlite import SqliteBackend


def test_eight_processes_that_write_own_and_shared_threads_lose_nothing(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        assert 9 == len(await backend.list_heads(HeadQuery()))
        for thread_id, count in acknowledged.items():
            rows = await backend.read(thread_id, 0, None)

            assert list(range(count)) == [row.sequence for row in rows]
            assert count == len({row.write_id for row in rows})

    path = tmp_path / "store.db"
    processes = [start("commit_many.py", path, f"worker-{number}", 50) for number in range(8)]
    lines = [line.split() for process in processes for line in finish(process).splitlines()]
    acknowledged = Counter(thread_id for thread_id, _ in lines)

    assert 400 == acknowledged["shared"]
    assert set(range(400)) == {int(sequence) for thread_id, sequence in lines if thread_id == "shared"}
    with_backend(path, check)


def test_twenty_processes_that_open_a_new_file_together_set_it_up_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for process in [start("open_and_close.py", path, f"t{number}") for number in range(20)]:
        finish(process)

    assert [(20,)] == query(path, "SELECT count(*) FROM checkpoints")
    assert [(1,)] == query(path, "SELECT count(*) FROM strata_counters")


def test_twenty_processes_that_open_an_old_file_together_upgrade_it_once(tmp_path: Path) -> None:
    path = golden_version_1(tmp_path / "store.db")
    before = query(path, "SELECT * FROM checkpoints ORDER BY thread_id, sequence")
    for process in [start("open_and_close.py", path, f"t{number}") for number in range(20)]:
        finish(process)

    assert [(2,)] == query(path, "PRAGMA user_version")
    assert before == query(path, "SELECT * FROM checkpoints WHERE thread_id NOT LIKE 't%' ORDER BY thread_id, sequence")
    assert [(20,)] == query(path, "SELECT count(*) FROM checkpoints WHERE thread_id LIKE 't%'")
