"""Hops, transactions and statements do not vary from machine to machine, so they are pinned."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlite_support import EXAMPLE_TIME, query, save, traced, with_backend, writer_of

from strata_core.rows import Commit, Committed, Drop, HeadQuery, Take
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend, _files
from strata_sqlite._commit import commit
from strata_sqlite._connection import Connection
from strata_sqlite._schema import VERSION

DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that were sent to a connection's thread."""
    sent: list[str] = []
    original = Connection._hop

    async def count(self: Connection, function: Callable[..., Any], *args: Any) -> Any:
        sent.append(str(args[1]) if len(args) > 1 else "")
        return await original(self, function, *args)

    monkeypatch.setattr(Connection, "_hop", count)
    return sent


def test_a_save_is_one_hop_one_transaction_and_five_statements(tmp_path: Path, hops: list[str]) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        hops.clear()
        with traced(writer_of(backend)) as statements:
            await backend.commit([save("t", updated=EXAMPLE_TIME + 1)])

        assert 1 == len(hops)
        assert ["BEGIN", "PRAGMA", "INSERT", "INSERT", "COMMIT"] == [text.split()[0] for text in statements]

    with_backend(tmp_path / "store.db", check)


def test_fifty_saves_are_one_hop_one_transaction_and_seven_statements(tmp_path: Path, hops: list[str]) -> None:
    async def check(backend: SqliteBackend) -> None:
        threads = [f"t{number}" for number in range(50)]
        await backend.commit([save(thread_id) for thread_id in threads])
        hops.clear()
        with traced(writer_of(backend)) as statements:
            await backend.commit([save(thread_id, updated=EXAMPLE_TIME + 1) for thread_id in threads])

        assert 1 == len(hops)
        assert ["BEGIN", "PRAGMA", *["INSERT"] * 4, "COMMIT"] == [text.split()[0] for text in statements]

    with_backend(tmp_path / "store.db", check)


class Recording:
    """A connection that remembers the values of each statement that writes."""

    def __init__(self, driver: sqlite3.Connection) -> None:
        self.driver = driver
        self.values: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        if statement.startswith("INSERT"):
            self.values += values
        return self.driver.execute(statement, values)


def test_an_ordinary_save_binds_thirteen_values_none_of_which_the_driver_has_to_adapt(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        threads = [f"t{number}" for number in range(50)]
        take = Take("me", 10**9)
        more: dict[str, Any] = {"metadata": {"tenant": "acme"}, "graph_id": "g"}
        outcomes = await backend.commit([save(each, lease=take, **more) for each in threads])
        driver = Recording(writer_of(backend))
        tokens = [outcome.token for outcome in outcomes if isinstance(outcome, Committed)]
        commit(
            driver,  # type: ignore[arg-type]  # passes everything on
            backend._known,
            FakeClock(),
            [save(each, token=token, **more) for each, token in zip(threads, tokens, strict=True)],
        )

        assert 13 * 50 == len(driver.values)
        assert {int, str, bytearray} == {type(value) for value in driver.values}

    with_backend(tmp_path / "store.db", check, clock=FakeClock())


def test_a_lease_taken_with_the_first_row_costs_one_statement_more(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        with traced(writer_of(backend)) as statements:
            await backend.commit([save(f"t{number}", lease=Take("me", 10**9)) for number in range(50)])

        kinds = [text.split()[0] for text in statements]
        assert ["BEGIN", "PRAGMA", "SELECT", *["INSERT"] * 4, "UPDATE", "COMMIT"] == kinds

    with_backend(tmp_path / "store.db", check)


def test_a_lease_given_back_with_the_last_row_costs_no_statement_more(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t", lease=Take("me", 10**9), metadata={"tenant": "acme"})])
        with traced(writer_of(backend)) as statements:
            await backend.commit([save("t", "completed", token=1, lease=Drop(), metadata={"tenant": "acme"})])

        assert ["BEGIN", "PRAGMA", "INSERT", "INSERT", "COMMIT"] == [text.split()[0] for text in statements]

    with_backend(tmp_path / "store.db", check)


def test_only_a_save_that_changes_metadata_writes_the_index_of_metadata(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t", metadata={"a": "1", "b": "1"})])
        with traced(writer_of(backend)) as same:
            await backend.commit([save("t", updated=EXAMPLE_TIME + 9, metadata={"a": "1", "b": "1"})])
        with traced(writer_of(backend)) as changed:
            await backend.commit([save("t", metadata={"a": "1", "b": "2"})])

        assert [] == [text for text in same if "strata_metadata" in text]
        assert [
            "DELETE FROM strata_metadata WHERE key = 'b' AND value = '1' AND thread = 1",
            "INSERT OR IGNORE INTO strata_metadata(key, value, thread) VALUES ('b', '2', 1)",
        ] == [text for text in changed if "strata_metadata" in text]

    with_backend(tmp_path / "store.db", check)


def test_refused_and_repeated_commits_write_nothing(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        first = save("t")
        await backend.commit([first])
        with traced(writer_of(backend)) as statements:
            await backend.commit([first])
            await backend.commit([save("t", after=7)])
            await backend.commit([Commit("u", b"12345678", token=5, lease=Drop())])

        known = ["BEGIN", "PRAGMA", "COMMIT"]
        assert [*known, *known, "BEGIN", "PRAGMA", "SELECT", "COMMIT"] == [text.split()[0] for text in statements]

    with_backend(tmp_path / "store.db", check)


def test_erasing_sixty_four_threads_is_six_statements(tmp_path: Path) -> None:
    """Taken first, as a purge does, then let go of with all that is left."""

    async def check(backend: SqliteBackend) -> None:
        threads = [f"t{number}" for number in range(64)]
        await backend.commit([save(thread_id, blobs=((DIGEST, b"content"),)) for thread_id in threads])
        with traced(writer_of(backend)) as statements:
            take = Take("purge", 10**9, closing=True)
            await backend.commit([Commit(thread_id, b"take0000", lease=take, erase=True) for thread_id in threads])
        with traced(writer_of(backend)) as last:
            await backend.commit(
                [
                    Commit(thread_id, b"drop0000", token=token, lease=Drop(), erase=True)
                    for token, thread_id in enumerate(threads, start=1)
                ]
            )

        assert ["BEGIN", "PRAGMA", "DELETE", "DELETE", "INSERT", "UPDATE", "COMMIT"] == [
            text.split()[0] for text in statements
        ]
        assert ["BEGIN", "PRAGMA", "DELETE", "DELETE", "DELETE", "COMMIT"] == [text.split()[0] for text in last]

    with_backend(tmp_path / "store.db", check)
    for table in ("strata_rows", "strata_blobs", "strata_heads"):
        assert [(0,)] == query(tmp_path / "store.db", f"SELECT count(*) FROM {table}")


def test_opening_a_file_looks_at_its_schema_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has to be set up is looked at again in the transaction that does it."""
    versions: list[int] = []

    def identify(db: sqlite3.Connection, path: str) -> int:
        versions.append(_identify(db, path))
        return versions[-1]

    async def nothing(backend: SqliteBackend) -> None:
        pass

    _identify = _files.identify
    monkeypatch.setattr(_files, "identify", identify)
    with_backend(tmp_path / "store.db", nothing)
    with_backend(tmp_path / "store.db", nothing)

    assert [0, 0, VERSION] == versions


def test_every_read_is_one_hop(tmp_path: Path, hops: list[str]) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        for read in (
            backend.read_head("t"),
            backend.read("t", None, None),
            backend.read("t", 0, 5),
            backend.read_blobs("t", ["sha256:0"]),
            backend.list_heads(HeadQuery(metadata={"a": "b"}, due_until=5)),
        ):
            hops.clear()
            await read

            assert 1 == len(hops)

    with_backend(tmp_path / "store.db", check)
