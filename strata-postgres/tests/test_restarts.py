"""A server that stops at once in the middle of writes, and comes back: what it acknowledged is there, once."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, TypeVar

import attrs
import pytest
from postgres_faults import COMPLETED, LATER, LONG, checkpoint, store_at
from postgres_support import query

from strata_conformance.servers import PostgresServer
from strata_conformance.servers.fixtures import server_or_outcome
from strata_core.errors import StoreUnavailableError
from strata_core.records import Revision
from strata_core.store import RowStore

T = TypeVar("T")
WRITERS = 20
ROUNDS = int(os.environ.get("STRATA_SOAK") == "1") * 9 + 1
PATIENT = timedelta(seconds=30)
SOON = timedelta(seconds=0.2)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this module's own, that flushes its log before it acknowledges."""
    with server_or_outcome(PostgresServer(durable=True)) as server:
        yield server


@attrs.define
class Journal:
    """What writers were told."""

    rows: dict[str, dict[int, int]] = attrs.Factory(dict)
    finished: set[str] = attrs.Factory(set)
    purged: int = 0
    failures: int = 0
    calls: int = 0
    stops: bool = False

    async def until_answered(self, call: Any) -> Any:
        """Make a call again, with the same write ID, until the server can be used."""
        while True:
            self.calls += 1
            try:
                return await call()
            except StoreUnavailableError:
                self.failures += 1
                await asyncio.sleep(0)

    async def save(self, store: RowStore, thread_id: str, number: int) -> None:
        write_id = os.urandom(8)
        sequence = await self.until_answered(lambda: store.save(checkpoint(thread_id, number), write_id=write_id))
        self.rows.setdefault(thread_id, {})[sequence] = number

    async def write(self, store: RowStore, thread_id: str) -> None:
        for number in itertools.count():
            if self.stops:
                return
            await self.save(store, thread_id, number)

    async def write_conditionally(self, store: RowStore, thread_id: str) -> None:
        """Each row after the one before, by its write ID."""
        expected: Revision | None = None
        for number in itertools.count():
            if self.stops:
                return
            write_id, after = os.urandom(8), expected
            row = checkpoint(thread_id, number)
            sequence = await self.until_answered(
                lambda row=row, after=after, write_id=write_id: store.save_if_latest(row, after, write_id=write_id)
            )
            self.rows.setdefault(thread_id, {})[sequence] = number
            expected = Revision(sequence, write_id)

    async def write_under_lease(self, store: RowStore, thread_id: str) -> None:
        first, first_id = checkpoint(thread_id, 0), os.urandom(8)
        lease = await self.until_answered(
            lambda: store.acquire_lease(thread_id, owner="o", ttl=LONG, save=first, write_id=first_id)
        )
        self.rows[thread_id] = {0: 0}
        for number in itertools.count(1):
            if self.stops:
                break
            write_id, row, held = os.urandom(8), checkpoint(thread_id, number), lease
            sequence = await self.until_answered(
                lambda row=row, held=held, write_id=write_id: store.save_under_lease(row, held, write_id=write_id)
            )
            self.rows[thread_id][sequence] = number
            if number % 5 == 0:
                lease = await self.until_answered(lambda held=held: store.renew_lease(held, ttl=LONG))
        await self.until_answered(lambda: store.release_lease(lease))

    async def purge(self, store: RowStore, name: str) -> None:
        """Finish threads, and purge what anybody has finished."""
        for number in itertools.count():
            if self.stops:
                return
            thread_id, write_id = f"{name}-{number}", os.urandom(8)
            row = checkpoint(thread_id, 0, COMPLETED)
            assert 0 == await self.until_answered(lambda row=row, write_id=write_id: store.save(row, write_id=write_id))
            self.finished.add(thread_id)
            if number % 3 == 2:
                gone = await self.until_answered(lambda: store.purge(LATER))
                self.purged += gone


async def reached(journal: Journal, calls: int) -> None:
    while journal.calls < calls:
        await asyncio.sleep(0.001)


def test_an_immediate_stop_under_twenty_writers_loses_and_doubles_nothing(server: PostgresServer) -> None:
    async def check(url: str) -> tuple[Journal, list[int]]:
        journal = Journal()
        async with AsyncExitStack() as stack:
            patience = {"command_timeout": PATIENT, "pool_timeout": SOON}
            stores = [
                await stack.enter_async_context(store_at(url, encoded=each, **patience)) for each in (True, False)
            ]
            work: list[Awaitable[None]] = []
            for number in range(WRITERS):
                store = stores[number % 2]
                kind = (journal.write, journal.write_conditionally, journal.write_under_lease, journal.purge)
                work.append(kind[number // 2 % 4](store, f"{number}"))
            tasks = [asyncio.ensure_future(each) for each in work]
            failures: list[int] = []
            for _ in range(ROUNDS):
                await reached(journal, journal.calls + 200)
                await asyncio.to_thread(server.stop, immediate=True)
                while not journal.failures > sum(failures):
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.start)
                failures.append(journal.failures - sum(failures))
                answered = journal.calls - journal.failures
                while journal.calls - journal.failures < answered + 200:
                    await asyncio.sleep(0.001)
            journal.stops = True
            await asyncio.gather(*tasks)
        async with store_at(url) as clean:
            await clean.purge(LATER)
            for thread_id, told in journal.rows.items():
                entries = [entry async for entry in whole_log(clean, thread_id)]

                assert list(range(len(entries))) == [entry.sequence for entry in entries]
                found = {entry.sequence: entry.checkpoint.frozen_state["step"] for entry in entries}
                assert told == found
                assert list(range(len(entries))) == list(found.values())
                assert len(entries) == len({entry.revision.write_id for entry in entries})
        return journal, failures

    with server.fresh_database() as database:
        journal, failures = asyncio.run(check(database.url))

        assert min(failures) > 0
        assert 16 == len(journal.rows)
        # Of two purges whose answers were lost, both may count a thread: neither can tell whose erasure it was.
        assert 0 < journal.purged < 2 * len(journal.finished)
        assert [(16,)] == query(database.url, "SELECT count(*) FROM strata_heads")
        assert [(0, 0)] == query(
            database.url,
            "SELECT (SELECT count(*) FROM strata_rows WHERE thread NOT IN (SELECT thread FROM strata_heads)), "
            "(SELECT count(*) FROM strata_blobs WHERE thread NOT IN (SELECT thread FROM strata_heads))",
        )
        assert server.execute("SHOW fsync") == server.execute("SHOW synchronous_commit") == [("on",)]


async def whole_log(store: RowStore, thread_id: str) -> AsyncIterator[Any]:
    start: int | None = 0
    while start is not None:
        page = await store.get_log(thread_id, start=start, limit=1000)
        for entry in page.entries:
            yield entry
        start = page.next_start


def test_a_restart_while_nothing_happens_is_not_noticed(server: PostgresServer) -> None:
    """All connections of the pool are stale then; each is found to be so before anything is sent on it."""

    async def check(url: str) -> None:
        async with store_at(url, min_connections=3) as store:
            await asyncio.gather(*(store.save(checkpoint(f"t{number}", 0)) for number in range(10)))
            await asyncio.gather(*(store.load(f"t{number}") for number in range(10)))
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)

            assert [1] * 10 == await asyncio.gather(*(store.save(checkpoint(f"t{n}", 1)) for n in range(10)))
            assert {1} == {entry.sequence for entry in await asyncio.gather(*(store.load(f"t{n}") for n in range(10)))}  # type: ignore[union-attr]

    with server.fresh_database() as database:
        asyncio.run(check(database.url))


def test_all_connections_ended_again_and_again_lose_nothing(url: str, server_url: str) -> None:
    """By the administrator, in the middle of whatever goes on."""
    end = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    async def check() -> Journal:
        journal = Journal()
        async with store_at(url) as store:
            tasks = [asyncio.ensure_future(journal.write(store, f"t{number}")) for number in range(10)]
            for _ in range(10 * ROUNDS):
                await reached(journal, journal.calls + 20)
                await asyncio.to_thread(query, server_url, end)
            journal.stops = True
            await asyncio.gather(*tasks)
            for thread_id, told in journal.rows.items():
                entries = [entry async for entry in whole_log(store, thread_id)]
                assert told == {entry.sequence: entry.checkpoint.frozen_state["step"] for entry in entries}
                assert list(told.values()) == list(range(len(told)))
        return journal

    assert 0 == asyncio.run(check()).failures
