"""Commits: held against the rule book and against the memory backend, on a real file."""

import asyncio
import random
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from sqlite_support import EXAMPLE_TIME, opened, row, save, with_backend, writer_of

from strata_core.errors import InvalidInputError, StoreUnavailableError
from strata_core.memory import MemoryBackend
from strata_core.rows import (
    ANY,
    NOTHING,
    Commit,
    Committed,
    Drop,
    Extend,
    Head,
    HeadQuery,
    Refusal,
    Refused,
    RowBackend,
    Take,
)
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend
from strata_sqlite._known import KnownHeads

THREADS = ("a", "A", "ä", "日本", "a b'\"%_;--", "x" * 512)
PAIRS = (("tenant", "acme"), ("tenant", "globex"), ("tier", "gold"), ("Ünïcode", "\U0001f600"))


class RandomCommits:
    """Makes commits that are often right and often wrong, from what the model knows."""

    def __init__(self, seed: int, model: MemoryBackend) -> None:
        self.random = random.Random(seed)
        self.model = model
        self.used: list[bytes] = [self.random.randbytes(8)]

    async def batch(self) -> list[Commit]:
        threads = self.random.sample(THREADS, self.random.randint(1, len(THREADS)))
        return [await self.commit(thread_id) for thread_id in threads]

    async def commit(self, thread_id: str) -> Commit:
        choose = self.random
        head = await self.model.read_head(thread_id)
        write_id = choose.choice(self.used) if choose.random() < 0.15 else choose.randbytes(8)
        self.used = [*self.used[-30:], write_id]
        known = head if head is not None else Head(thread_id)
        after = choose.choice([ANY, ANY, known.sequence, known.sequence, NOTHING, known.sequence + 1])
        lease = choose.choice(
            [None, None, None, Take("me", 2_000_000), Take("you", 1_000_000, True), Extend(3_000_000), Drop()]
        )
        token = known.token if isinstance(lease, Extend | Drop) else choose.choice([0, 0, known.token, 999])
        if isinstance(lease, Extend | Drop) and not token:
            lease = None
        erase = choose.random() < 0.1
        new = None if erase or choose.random() < 0.2 else self.row(thread_id, known)
        blob = choose.randrange(4)
        return Commit(
            thread_id,
            write_id,
            after=after,
            after_id=known.write_ids[:8] if after >= 0 and choose.random() < 0.7 else b"",
            token=token,
            free=choose.random() < 0.2,
            row=new,
            blobs=[(f"sha256:{blob:064x}", bytes([blob]) * 20)] if new is not None and choose.random() < 0.2 else [],
            external=choose.random() < 0.1,
            lease=lease,
            erase=erase,
        )

    def row(self, thread_id: str, known: Head) -> Any:
        choose = self.random
        if choose.random() < 0.5:  # an ordinary save: little but the state changes
            return row(
                thread_id,
                choose.choice(["running", "running", "completed"]),
                updated=EXAMPLE_TIME + choose.randrange(5),
                whole=known.sequence < 0,
                metadata=known.metadata,
                due=known.due,
                graph_id=known.graph_id,
                graph_version=known.graph_version,
            )
        return row(
            thread_id,
            choose.choice(["running", "interrupted", "completed", "resumed", "a state of the future"]),
            updated=EXAMPLE_TIME + choose.randrange(5),
            body=b'{"text":"\xe6\x97\xa5\\u0000 %d"}' % choose.randrange(100),
            whole=known.sequence < 0 or choose.random() < 0.4,
            metadata=dict(choose.sample(PAIRS, choose.randrange(3))),
            due=choose.choice([None, None, EXAMPLE_TIME, EXAMPLE_TIME + 9]),
            graph_id=choose.choice([None, "g", "h"]),
            graph_version=choose.choice([None, "1", "2"]),
        )


def outcome_of(outcome: Committed | Refused) -> object:
    if isinstance(outcome, Committed):
        return outcome.sequence, outcome.token, outcome.expires, outcome.repeated
    head = outcome.head
    if head is None:
        return outcome.why, None
    judged = ("sequence", "write_ids", "token", "owner", "expires", "external", "closing", "now")
    return outcome.why, *(getattr(head, name) for name in judged)


async def everything(backend: RowBackend) -> object:
    """Return all that can be read, as plain values."""
    digests = [f"sha256:{number:064x}" for number in range(4)]
    found = []
    for thread_id in THREADS:
        head = await backend.read_head(thread_id)
        last = -1 if head is None else head.sequence
        rows = [await backend.read(thread_id, first, None) for first in (None, -1, 0, last // 2, last, last + 1)]
        part = await backend.read(thread_id, last // 3, last // 2)
        blobs = dict(await backend.read_blobs(thread_id, digests))
        found.append(
            (head and attrs.asdict(head), [[attrs.asdict(each) for each in some] for some in (*rows, part)], blobs)
        )
    listed = [
        [attrs.asdict(head) for head in await backend.list_heads(HeadQuery(rowless=rowless, oldest_first=rowless))]
        for rowless in (False, True)
    ]
    return found, listed


@pytest.mark.parametrize("seed", range(8))
def test_random_commits_come_out_and_read_back_as_in_the_memory_backend(tmp_path: Path, seed: int) -> None:
    """Written through two backends, of which each keeps few heads, so that some are known, some stale and some gone."""

    async def compare(backend: SqliteBackend) -> None:
        async with opened(tmp_path / "store.db", clock=clock) as other:
            for each in (backend, other):
                each._known = KnownHeads(limit=1 + seed)
            await write(backend, other)

    async def write(backend: SqliteBackend, other: SqliteBackend) -> None:
        model = MemoryBackend(clock)
        commits = RandomCommits(seed, model)
        for turn in range(120):
            batch = await commits.batch()
            expected = [outcome_of(outcome) for outcome in await model.commit(batch)]

            writing = other if commits.random.random() < 0.2 else backend
            assert expected == [outcome_of(outcome) for outcome in await writing.commit(batch)]
            if turn % 10 == 9:
                assert await everything(model) == await everything(backend)
            clock.advance(0.4)

    clock = FakeClock()
    with_backend(tmp_path / "store.db", compare, clock=clock)


def test_every_commit_of_a_batch_keeps_its_own_outcome(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        await backend.commit([save("taken")])
        batch = [save(f"t{number}", after=NOTHING) for number in range(49)]
        outcomes = await backend.commit([*batch[:20], save("taken", after=NOTHING), *batch[20:]])

        refused = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
        assert [(20, Refusal.CHANGED)] == [(outcomes.index(outcome), outcome.why) for outcome in refused]
        assert [0] * 49 == [outcome.sequence for outcome in outcomes if isinstance(outcome, Committed)]
        assert 50 == len(await backend.list_heads(HeadQuery(limit=100)))

    with_backend(tmp_path / "store.db", check)


def test_a_batch_larger_than_a_statement_takes_is_one_step_all_the_same(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        for sequence in range(2):
            batch = [save(f"t{number}", metadata={"number": str(number)}) for number in range(2_500)]
            outcomes = await backend.commit(batch)

            assert {sequence} == {outcome.sequence for outcome in outcomes if isinstance(outcome, Committed)}
        assert 1_000 == len(await backend.list_heads(HeadQuery(limit=1_000)))

    with_backend(tmp_path / "store.db", check)


def test_a_batch_with_two_commits_of_one_thread_is_refused_whole(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        with pytest.raises(InvalidInputError, match="two commits of one thread"):
            await backend.commit([save("t"), save("u"), save("t")])

        assert [] == await backend.list_heads(HeadQuery())

    with_backend(tmp_path / "store.db", check)


def test_a_save_that_changes_little_leaves_everything_else_of_every_head_as_it_is(tmp_path: Path) -> None:
    """Whatever the thread is called: a head that is there is found by its number."""

    async def check(backend: SqliteBackend) -> None:
        more: dict[str, Any] = {"metadata": {"tenant": "acme", "tier": "gold"}, "due": EXAMPLE_TIME, "graph_id": "g"}
        threads = ["0", "", "-1", "t"]
        await backend.commit([save(each, lease=Take(each, 10**12), **more) for each in threads])
        before = [await backend.read_head(each) for each in threads]
        more["metadata"] = {"tier": "gold", "tenant": "acme"}  # the same, in another order
        await backend.commit([save(each, **more) for each in threads])
        await backend.commit(
            [Commit(each, b"extended", token=at, lease=Extend(10**12)) for at, each in enumerate(threads, 1)]
        )
        after = [await backend.read_head(each) for each in threads]

        for old, new in zip(before, after, strict=True):
            assert old is not None
            assert new is not None
            assert 1 == new.sequence
            changed = {"sequence": 1, "whole_at": 1, "write_ids": new.write_ids, "expires": new.expires, "now": new.now}
            assert attrs.asdict(old) | changed == attrs.asdict(new)

    with_backend(tmp_path / "store.db", check)


class WatchedClock(FakeClock):
    """Remembers whether the writer was in a transaction when the clock was read."""

    def __init__(self) -> None:
        super().__init__()
        self.writer: sqlite3.Connection | None = None
        self.in_transaction: list[bool] = []

    def now(self) -> datetime:
        if self.writer is not None:
            self.in_transaction.append(self.writer.in_transaction)
        return super().now()


def test_leases_are_judged_by_the_clock_as_it_is_once_the_lock_is_held(tmp_path: Path) -> None:
    """Whoever waits ten seconds for another process must not be judged by the time at which the wait began."""

    async def check(backend: SqliteBackend) -> None:
        clock.writer = writer_of(backend)
        await backend.commit([save("t")])
        await backend.commit([save("t"), save("u")])

        assert [True, True] == clock.in_transaction

    clock = WatchedClock()
    with_backend(tmp_path / "store.db", check, clock=clock)


def test_a_transaction_that_could_not_be_ended_does_not_stand_in_the_way_of_the_next(tmp_path: Path) -> None:
    def refuse(action: int, first: str | None, *_: str | None) -> int:
        row = action == sqlite3.SQLITE_INSERT and first == "strata_rows"
        end = action == sqlite3.SQLITE_TRANSACTION and first == "ROLLBACK"
        return sqlite3.SQLITE_DENY if row or end else sqlite3.SQLITE_OK

    async def check(backend: SqliteBackend) -> None:
        writer = writer_of(backend)
        writer.set_authorizer(refuse)
        with pytest.raises(StoreUnavailableError):
            await backend.commit([save("lost")])
        left_open = writer.in_transaction
        writer.set_authorizer(None)
        await backend.commit([save("kept")])

        assert left_open
        assert ["kept"] == [head.thread_id for head in await backend.list_heads(HeadQuery())]

    with_backend(tmp_path / "store.db", check)


def test_an_empty_batch_is_no_transaction(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        assert [] == await backend.commit([])

    with_backend(tmp_path / "store.db", check)


def test_a_thread_that_was_erased_and_begins_again_finds_nothing_of_its_earlier_life(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        digest = "sha256:" + "0" * 64
        for other in ("u", "t"):  # with and without the highest thread number
            await backend.commit([save("t", blobs=((digest, b"old"),), metadata={"tenant": "acme"})])
            await backend.commit([save("t"), save(other + "2")])
            await backend.commit([Commit("t", b"erase000", erase=True)])

            assert (None, []) == (await backend.read_head("t"), await backend.read("t", 0, None))
            await backend.commit([save("t")])

            assert 1 == len(await backend.read("t", 0, None))
            assert {} == await backend.read_blobs("t", [digest])
            assert [] == await backend.list_heads(HeadQuery(metadata={"tenant": "acme"}))
            await backend.commit([Commit("t", b"erase001", erase=True)])

    with_backend(tmp_path / "store.db", check)


def test_an_erased_thread_leaves_no_residue_in_any_table(tmp_path: Path) -> None:
    async def check(backend: SqliteBackend) -> None:
        digest = "sha256:" + "0" * 64
        for sequence in range(20):
            await backend.commit(
                [save("t", whole=sequence % 5 == 0, blobs=((digest, b"x"),), metadata={"k": str(sequence)})]
            )
        await backend.commit([Commit("t", b"take0000", lease=Take("purge", 1_000_000, closing=True), erase=True)])
        head = await backend.read_head("t")

        assert head is not None
        assert (NOTHING, True) == (head.sequence, head.closing)
        await backend.commit([Commit("t", b"drop0000", token=head.token, lease=Drop())])
        assert backend._writer is not None
        for table in ("strata_heads", "strata_rows", "strata_blobs", "strata_metadata"):
            left = await backend._writer.run(lambda db, name=table: db.execute(f"SELECT * FROM {name}").fetchall())

            assert (table, []) == (table, left)

    with_backend(tmp_path / "store.db", check)


def test_tokens_grow_across_release_erasure_and_reopening(tmp_path: Path) -> None:
    async def take(backend: SqliteBackend) -> int:
        (outcome,) = await backend.commit([Commit("t", random.randbytes(8), lease=Take("me", 1_000_000))])
        assert isinstance(outcome, Committed)
        await backend.commit([Commit("t", random.randbytes(8), token=outcome.token, lease=Drop(), erase=True)])
        return outcome.token

    tokens = [with_backend(tmp_path / "store.db", take) for _ in range(3)]

    assert [1, 2, 3] == tokens


def test_two_backends_on_one_file_see_each_other_at_once(tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as one, opened(path) as two:
            for sequence in range(0, 20, 2):
                await one.commit([save("t")])
                (outcome,) = await two.commit([save("t", after=sequence)])

                assert isinstance(outcome, Committed)
                assert [sequence + 1] == [each.sequence for each in await one.read("t", None, None)]

    asyncio.run(check())
