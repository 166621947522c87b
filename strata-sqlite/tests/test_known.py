"""Heads that are kept from batch to batch: whatever comes between two batches, no commit is judged by a stale one."""

import asyncio
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlite_support import FailingCommit, finish, opened, query, save, start, traced, with_backend, writer_of

from strata_core.errors import StoreBusyError, StoreUnavailableError
from strata_core.options import Setup
from strata_core.rows import NOTHING, Commit, Committed, Drop, HeadQuery, Refusal, Refused, Take
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend, SqliteOptions
from strata_sqlite._known import KnownHeads


async def answer(backend: SqliteBackend, commit: Commit) -> tuple[object, ...]:
    """Return the sequence of a commit that was done, or why it was refused and the sequence that was found instead."""
    (outcome,) = await backend.commit([commit])
    if isinstance(outcome, Refused):
        return outcome.why, None if outcome.head is None else outcome.head.sequence
    return (outcome.sequence,)


def by_a_backend(path: Path) -> None:
    with_backend(path, lambda other: other.commit([save("w")]))


def by_a_process(path: Path) -> None:
    finish(start("commit_many.py", path, "w", 1))


def by_a_killed_process(path: Path) -> None:
    process = start("commit_many.py", path, "w", 10**9)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("write", [by_a_backend, by_a_process, by_a_killed_process])
def test_a_commit_is_judged_by_what_another_connection_wrote_since(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    async def check(backend: SqliteBackend) -> None:
        assert (0,) == await answer(backend, save("w"))
        await asyncio.to_thread(write, path)
        (last,) = query(path, "SELECT max(sequence) FROM checkpoints WHERE thread_id = 'w'")[0]

        assert last > 0
        assert (Refusal.CHANGED, last) == await answer(backend, save("w", after=0))
        assert (last + 1,) == await answer(backend, save("w", after=last))

    path = tmp_path / "store.db"
    with_backend(path, check)


def test_a_lease_that_another_connection_took_is_in_the_way_and_its_token_is_not_given_again(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(path) as one, opened(path) as two:
            await one.commit([save("t"), save("u", lease=Take("one", 10**9))])
            await two.commit([Commit("t", b"taken000", lease=Take("two", 10**9))])

            assert (Refusal.HELD, 0) == await answer(one, Commit("t", b"taken001", lease=Take("one", 10**9)))
            (outcome,) = await one.commit([save("v", lease=Take("one", 10**9))])
            assert isinstance(outcome, Committed)
            assert 3 == outcome.token

    path = tmp_path / "store.db"
    asyncio.run(check())


def test_a_thread_that_another_connection_purged_begins_anew(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(path) as one, opened(path) as two:
            await one.commit([save("t", metadata={"tenant": "acme"})])
            await two.commit([Commit("t", b"purged00", erase=True)])

            assert (Refusal.CHANGED, None) == await answer(one, save("t", after=0))
            await two.commit([save("u")])  # gets the number that is free again
            assert (0,) == await answer(one, save("t", after=NOTHING))
            assert (1,) == await answer(two, save("u", after=0))

    path = tmp_path / "store.db"
    asyncio.run(check())
    assert [("t", 0), ("u", 0), ("u", 1)] == query(path, "SELECT thread_id, sequence FROM checkpoints ORDER BY 1, 2")


def test_a_thread_purged_by_the_same_backend_begins_anew(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t"), save("u")])
        await backend.commit([Commit("t", b"take0000", lease=Take("purge", 10**9, closing=True), erase=True)])
        assert (Refusal.CLOSING, NOTHING) == await answer(backend, save("t"))
        await backend.commit([Commit("t", b"drop0000", token=1, lease=Drop(), erase=True)])

        assert (Refusal.CHANGED, None) == await answer(backend, save("t", after=0))
        assert (0,) == await answer(backend, save("t", after=NOTHING))

    with_backend(tmp_path / "store.db", check)


def test_a_file_that_was_vacuumed_or_restored_from_a_copy_is_judged_as_it_is_now(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t"), save("gone")])
        await backend.commit([Commit("gone", b"erased00", erase=True)])
        with closing(sqlite3.connect(path)) as file, closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            file.backup(copy)
            await backend.commit([save("t", after=0)])
            file.execute("VACUUM")
            assert (2,) == await answer(backend, save("t", after=1))
            copy.backup(file)

        assert (Refusal.CHANGED, 0) == await answer(backend, save("t", after=2))
        assert (1,) == await answer(backend, save("t", after=0))

    path = tmp_path / "store.db"
    with_backend(path, check)


def test_what_was_written_while_a_commit_found_the_file_locked_is_seen_by_the_next(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t", write_id=b"12345678")])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusyError):
                await backend.commit([save("t")])
            other.execute("UPDATE strata_heads SET closing = 1")
            other.execute("COMMIT")

        assert (Refusal.CLOSING, 0) == await answer(backend, save("t"))

    path = tmp_path / "store.db"
    with_backend(path, check, options=SqliteOptions(busy_timeout=timedelta(0)))


def test_a_batch_that_was_rolled_back_leaves_no_head_and_no_token_behind(tmp_path: Path) -> None:
    def refuse(action: int, first: str | None, *_: str | None) -> int:
        return sqlite3.SQLITE_DENY if (action, first) == (sqlite3.SQLITE_INSERT, "strata_blobs") else sqlite3.SQLITE_OK

    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        writer_of(backend).set_authorizer(refuse)
        blobs = (("sha256:" + "0" * 64, b"content"),)
        with pytest.raises(StoreUnavailableError):
            await backend.commit([save("t", blobs=blobs, lease=Take("me", 10**9)), save("u")])
        writer_of(backend).set_authorizer(None)
        outcomes = await backend.commit([save("t", lease=Take("me", 10**9)), save("u", after=NOTHING)])

        assert [(1, 1), (0, 0)] == [(each.sequence, each.token) for each in outcomes if isinstance(each, Committed)]

    with_backend(tmp_path / "store.db", check)


@pytest.mark.parametrize("done", [True, False])
def test_a_commit_of_unknown_outcome_is_looked_up_in_the_file(tmp_path: Path, done: bool) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        writer = writer_of(backend)
        assert backend._writer is not None
        backend._writer._connection = FailingCommit(writer, done=done)  # type: ignore[assignment]
        commit = save("t", after=0)
        with pytest.raises(StoreUnavailableError):
            await backend.commit([commit])
        backend._writer._connection = writer
        (outcome,) = await backend.commit([commit])

        assert isinstance(outcome, Committed)
        assert (1, done) == (outcome.sequence, outcome.repeated)

    with_backend(tmp_path / "store.db", check)


def test_a_backend_that_is_opened_again_knows_nothing_of_its_earlier_connection(tmp_path: Path) -> None:
    """The number that tells a change belongs to a connection, and a new one may well begin with the same."""

    async def check() -> None:
        backend = SqliteBackend(path)
        for after in (NOTHING, 1):
            async with opened(path) as other:
                if after != NOTHING:
                    await other.commit([save("t")])
            await backend.open(read_only=False, setup=Setup.AUTO)
            found = await answer(backend, save("t", after=after))
            await backend.close()

            assert (after + 1,) == found

    path = tmp_path / "store.db"
    asyncio.run(check())


def test_metadata_that_the_caller_changes_after_a_save_is_not_taken_for_what_is_stored(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        metadata = {"tenant": "acme"}
        await backend.commit([save("t", metadata=metadata)])
        await backend.commit([save("t", metadata=metadata)])
        metadata["tenant"] = "globex"
        await backend.commit([save("t", metadata=metadata)])
        (head,) = await backend.list_heads(HeadQuery(metadata={"tenant": "globex"}))

        assert {"tenant": "globex"} == head.metadata
        assert [] == await backend.list_heads(HeadQuery(metadata={"tenant": "acme"}))

    with_backend(tmp_path / "store.db", check)


def test_every_refusal_shows_the_time_at_which_it_was_judged(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("t")])
        heads = []
        for _ in range(2):
            (outcome,) = await backend.commit([save("t", after=7)])
            assert isinstance(outcome, Refused)
            heads.append(outcome.head)
            clock.advance(5)

        assert [5_000_000] == [two.now - one.now for one, two in [heads] if one is not None and two is not None]

    clock = FakeClock()
    with_backend(tmp_path / "store.db", check, clock=clock)


def test_only_heads_that_are_not_known_are_looked_up(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("long", metadata={"text": "x" * 1_000}), save("t")])
        with traced(writer_of(backend)) as statements:
            await backend.commit([save("long", metadata={"text": "x" * 1_000}), save("t"), save("new")])
            await backend.commit([save("new"), save("t")])

        assert [["long", "new"]] == [
            [name for name in ("long", "new", "t") if f'"{name}"' in text] for text in statements if "SELECT" in text
        ]

    with_backend(tmp_path / "store.db", check)


def test_of_many_heads_those_written_last_are_kept(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        backend._known = known = KnownHeads(limit=10)
        for number in range(100):
            await backend.commit([save(f"t{number}"), save("always")])
        kept = known._young.keys() | known._old.keys()

        assert 10 <= len(kept) <= 22
        assert {"always", "t99", "t90"} <= kept

    with_backend(tmp_path / "store.db", check)


def test_a_thread_that_waits_or_has_ended_is_not_kept(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        known = backend._known
        for state in ("interrupted", "completed", "failed"):
            await backend.commit([save(state, lease=Take("me", 10**9)), save("t")])
            held = set(known._young)
            await backend.commit([save(state, state, token=known.token, lease=Drop())])

            assert ({state, "t"}, {"t"}) == (held, set(known._young))

    with_backend(tmp_path / "store.db", check)
