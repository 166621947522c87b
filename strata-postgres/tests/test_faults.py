"""Faults on the wire, at each message of a thread's life: nothing acknowledged is lost, nothing is written twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from postgres_support import query

from strata_conformance.servers import FaultProxy, PostgresServer, WireFault
from strata_core.errors import StoreUnavailableError
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus, Lease, LogEntry, LogPage, ThreadPage, ThreadQuery
from strata_core.store import RowStore
from strata_postgres import PostgresBackend, PostgresOptions

START = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
LONG = timedelta(minutes=5)
RUNNING, COMPLETED = CheckpointStatus.RUNNING, CheckpointStatus.COMPLETED
WRITE = b"strata_commit"
Step = Callable[[], Awaitable[Any]]
Break = Callable[[FaultProxy, int], WireFault]


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    with FaultProxy.before(postgres_server) as proxy:
        yield proxy


def checkpoint(thread_id: str, number: int, status: CheckpointStatus = RUNNING) -> Checkpoint:
    return Checkpoint(thread_id, status, {"step": number, "text": "x" * 400}, START, metadata={"thread": thread_id})


@asynccontextmanager
async def store_at(url: str, **more: Any) -> AsyncIterator[RowStore]:
    """A store with deltas and offload, and little patience."""
    options = PostgresOptions(
        **{"command_timeout": timedelta(seconds=0.25), "pool_timeout": timedelta(seconds=5)} | more
    )
    async with RowStore(PostgresBackend(url, options=options), deltas=Deltas(), offload=Offload(threshold=300)) as store:
        yield store


class Life:
    """All that can happen to a thread, one message each."""

    def __init__(self, store: RowStore, thread_id: str) -> None:
        self.store = store
        self.thread_id = thread_id
        self._lease: Any = None
        self._entry: Any = None

    def steps(self) -> dict[str, Step]:
        store, thread_id = self.store, self.thread_id
        metadata = {"thread": thread_id}

        async def acquire() -> Lease:
            self._lease = await store.acquire_lease(thread_id, owner="o", ttl=LONG, save=checkpoint(thread_id, 0))
            return self._lease  # type: ignore[no-any-return]

        async def renew() -> Lease:
            self._lease = await store.renew_lease(self._lease, ttl=LONG)
            return self._lease  # type: ignore[no-any-return]

        async def load() -> LogEntry:
            self._entry = await store.load(thread_id)
            return self._entry  # type: ignore[no-any-return]

        return {
            "acquire with the first row": acquire,
            "fenced save": lambda: store.save_under_lease(checkpoint(thread_id, 1), self._lease),
            "renew": renew,
            "live lease": lambda: store.live_lease(thread_id),
            "release": lambda: store.release_lease(self._lease),
            "save": lambda: store.save(checkpoint(thread_id, 2)),
            "load": load,
            "load of blobs": lambda: store.load(thread_id, at=1),
            "conditional save": lambda: store.save_if_latest(checkpoint(thread_id, 3), self._entry.revision),
            "last save": lambda: store.save(checkpoint(thread_id, 4, COMPLETED)),
            "list": lambda: store.list_threads(ThreadQuery(metadata=metadata)),
            "log": lambda: store.get_log(thread_id),
            "purge": lambda: store.purge(START + timedelta(days=1)),
        }

    async def run(self) -> dict[str, Any]:
        """Live it through; what each step came to."""
        return {name: comparable(await step()) for name, step in self.steps().items()}


def comparable(outcome: Any) -> Any:
    """An outcome without what differs from thread to thread."""
    if isinstance(outcome, Lease):
        return "lease", outcome.saved
    if isinstance(outcome, LogEntry):
        return outcome.sequence, dict(outcome.checkpoint.frozen_state)
    if isinstance(outcome, LogPage):
        return [comparable(entry) for entry in outcome.entries]
    if isinstance(outcome, ThreadPage):
        return [(thread.state, thread.sequence) for thread in outcome.threads]
    return outcome


STATE = {"text": "x" * 400}
LIVED = {
    "acquire with the first row": ("lease", 0),
    "fenced save": 1,
    "renew": ("lease", 0),
    "live lease": ("lease", None),
    "release": None,
    "save": 2,
    "load": (2, {"step": 2} | STATE),
    "load of blobs": (1, {"step": 1} | STATE),
    "conditional save": 3,
    "last save": 4,
    "log": [(number, {"step": number} | STATE) for number in range(5)],
    "purge": 1,
}
FAULTS: dict[str, Break] = {
    "request reset": lambda proxy, nth: proxy.reset("request", nth),
    "answer lost": lambda proxy, nth: proxy.reset("reply", nth),
    "request cut short": lambda proxy, nth: proxy.cut("request", 11, nth),
    "answer cut short": lambda proxy, nth: proxy.cut("reply", 11, nth),
}
HANGS: dict[str, Break] = {
    "request hangs": lambda proxy, nth: proxy.hang("request", nth),
    "answer hangs": lambda proxy, nth: proxy.hang("reply", nth),
}


async def fault_free(proxy: FaultProxy, store: RowStore) -> int:
    """Live once without a fault; return how many messages that took."""
    before = proxy.requests
    lived = await Life(store, "first").run()
    listed = lived.pop("list")

    assert LIVED == lived
    assert [("completed", 4)] == listed
    return proxy.requests - before


def left(url: str) -> list[tuple[int, ...]]:
    """What tables hold beyond what a purged store has."""
    return query(
        url,
        "SELECT (SELECT count(*) FROM strata_heads), (SELECT count(*) FROM strata_rows), "
        "(SELECT count(*) FROM strata_blobs), (SELECT count(*) FROM strata_listing)",
    )


@pytest.mark.parametrize("kind", FAULTS)
def test_one_fault_at_any_message_changes_no_outcome(proxy: FaultProxy, url: str, kind: str) -> None:
    """The store asks again by itself, under the same write ID."""

    async def check() -> None:
        async with store_at(proxy.url(url), max_connections=1) as store:
            for nth in range(1, await fault_free(proxy, store) + 1):
                fault = FAULTS[kind](proxy, nth)
                lived = await Life(store, f"{nth}").run()

                assert 1 == fault.fired
                assert LIVED | {"list": [("completed", 4)]} == lived, f"{kind} at message {nth}"

    asyncio.run(check())

    assert [(0, 0, 0, 0)] == left(url)


@pytest.mark.parametrize("kind", HANGS)
def test_a_server_that_hangs_at_any_message_changes_no_outcome(proxy: FaultProxy, url: str, kind: str) -> None:
    """Fourteen threads at once, each with its hang: the command timeout is waited for once."""

    async def check() -> None:
        async with store_at(proxy.url(url)) as store:
            await fault_free(proxy, store)
            faults = []
            for number in range(1, 6):
                faults += [HANGS[kind](proxy, number * 11)]
            lives = [Life(store, f"{number}") for number in range(8)]
            for life in lives:
                steps = life.steps()
                del steps["purge"]
                life.steps = lambda steps=steps: steps  # type: ignore[method-assign,misc]
            for lived in await asyncio.gather(*(life.run() for life in lives)):
                assert LIVED | {"list": [("completed", 4)]} == lived | {"purge": 1}
            assert 8 == await store.purge(START + timedelta(days=1))
            for fault in faults:
                proxy.release(fault)

    asyncio.run(check())

    assert [(0, 0, 0, 0)] == left(url)
