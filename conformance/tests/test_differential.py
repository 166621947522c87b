"""One random program on every installed store at once: each call comes to the same outcome, or error, everywhere."""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strata_core
from strata_conformance.servers.fixtures import postgres_server, redis_server, valkey_server
from strata_conformance.stores import FaultyStore, RecordingStore
from strata_core.clock import Clock, SystemClock
from strata_core.errors import ConflictError, InvalidInputError, StrataError
from strata_core.memory import MemoryBackend
from strata_core.options import Deltas, Offload
from strata_core.ports import ANY
from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    Lease,
    LogEntry,
    LogPage,
    Revision,
    ThreadPage,
    ThreadQuery,
    ThreadState,
)
from strata_core.rows import Batching, RowBackend
from strata_core.store import RowStore
from strata_core.testing import FakeClock
from strata_folder import FolderBackend
from strata_sqlite import SqliteBackend, SqliteOptions, Synchronous

__all__ = ["postgres_server", "redis_server", "valkey_server"]

BASE = datetime(2026, 3, 1, 12, tzinfo=UTC)
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
SOAK = "STRATA_SOAK" in os.environ
NESTED: Any = []
for _ in range(250):
    NESTED = [NESTED]


class Suspending(MemoryBackend):
    """Waits before each commit, as a database does."""

    batching = Batching(max_items=8, in_flight=2)  # type: ignore[assignment]  # unlike its base, it suspends

    async def commit(self, batch: Any) -> Any:
        await asyncio.sleep(0)
        return await super().commit(batch)


BACKENDS: dict[str, Callable[[Path, FakeClock], RowBackend]] = {
    "memory": lambda _, clock: MemoryBackend(clock),
    "suspending memory": lambda _, clock: Suspending(clock),
    "recording": lambda _, clock: MemoryBackend(clock),
    "faulty": lambda _, clock: MemoryBackend(clock),
    "deltas": lambda _, clock: MemoryBackend(clock),
    "SQLite": lambda folder, clock: SqliteBackend(
        folder / "threads.db", options=SqliteOptions(synchronous=Synchronous.NORMAL), clock=clock
    ),
    "folder": lambda folder, clock: FolderBackend(folder / "threads", clock=clock),
}
SERVERS = {
    "Postgres": ("postgres_server", "schema"),
    "Valkey": ("valkey_server", "prefix"),
    "Redis": ("redis_server", "prefix"),
}
"""The stores on servers: the fixture of the server, and what of the URL sets a store apart."""
NEAR = timedelta(seconds=30)
"""Clocks of servers go on by themselves."""
WRAPPERS: dict[str, Callable[[RowStore], Any]] = {"recording": RecordingStore, "faulty": FaultyStore}
OPTIONS: dict[str, dict[str, Any]] = {"deltas": {"deltas": Deltas(full_every=3), "offload": Offload(threshold=20)}}


def mostly(good: st.SearchStrategy[Any], *bad: Any, times: int = 15) -> st.SearchStrategy[Any]:
    """Return good values, and one of the bad ones now and then."""
    return st.sampled_from([good] * times + [st.sampled_from(bad)]).flatmap(lambda chosen: chosen)


good_times = st.sampled_from(
    [BASE] * 3 + [BASE + timedelta(microseconds=1), BASE - timedelta(days=1), EARLIEST, LATEST]
)
thread_ids = mostly(
    st.sampled_from(["t"] * 6 + ["T", "t ", "../t", "*", "caf\u00e9", "cafe\u0301", "x" * 512]),
    *["", "a\0", "\ud800", "x" * 513, "\u00e9" * 257, None, 5, b"t", True],
)
scalars: list[Any] = [0, 1.0, True, "x" * 40, [], {"b": 1, "a": -0.0}, 10**4000, "\0"]
states = mostly(
    st.dictionaries(st.sampled_from(["n", "", "set", "base", "\u00e9"]), st.sampled_from(scalars)),
    *[{"n": float("nan")}, {"n": [float("inf")]}, {"a": "\ud800"}, {"\udfff": 1}, {1: 2}, {None: 1}, {"n": b""}],
    *[{"n": {1}}, {"n": 10**4300}, {"n": (1,)}, {"n": NESTED}, [], None, "state", 5],
)
metadata = mostly(
    st.sampled_from([{}, {}, {"k": "v"}, {"k": "V", "": ""}, {"k" * 128: "v" * 1024}, {"%": "_", "'": '"'}]),
    *[{"k": 1}, {1: "v"}, {"k\0": "v"}, {"k": "\ud800"}, {"k" * 129: ""}, {"": "v" * 1025}, None, [], "k"],
)
times = mostly(good_times, BASE.replace(tzinfo=None), None, "2026-03-01T12:00:00Z", 5)
limits = mostly(st.sampled_from([1, 2, 1000]), 0, -1, 1001, True, 1.0, None, "5", 10**5000)
sequences = mostly(st.sampled_from([None, 0, 1, 2, 2**31 - 1]), 2**31, -1, True, 0.0, "0", 10**5000)
starts = mostly(st.sampled_from([0, 0, 1, 2, 2**31 - 1]), 2**31, -1, True, None, "0", 10**5000)
cursors = mostly(st.sampled_from([None, "given"]), "", "x", "W10=", "WzAsICJ0Il0=", "\ud800", 5, b"")
write_ids = mostly(st.sampled_from([0, 0, 0, 1, 2]), b"", b"short", "8 chars!", 8, bytearray(8))
"""The nth of a handful of good ones, None for 0, or a bad one."""
expectations = mostly(
    st.sampled_from(["latest", "revision", "latest", "revision", None, 0, 1, 7, Revision(0, b"another!")]),
    *[-1, True, "0", 2**40, Revision(0, b"short"), ANY],
)
ttls = mostly(st.sampled_from([timedelta(seconds=10), timedelta(seconds=60)]), timedelta(0), timedelta(4000), 10, None)
owners = mostly(st.just("o"), "", "a\0", "\ud800", None, 5)
filters = mostly(
    st.sampled_from([None, set(ThreadState), {ThreadState.RUNNING}, {ThreadState.COMPLETED}, set()]),
    *["running", {"running"}, 5],
)
checkpoints = mostly(
    st.builds(
        Checkpoint,
        thread_ids,
        mostly(st.sampled_from(list(CheckpointStatus)), "running", None),
        states,
        times,
        metadata=metadata,
        next_node=mostly(st.sampled_from([None, "Next", ""]), "\ud800", "a\0", 5),
    ),
    *[None, {}, "checkpoint"],
)
leases = mostly(
    st.sampled_from([0, 0, 1, 2]),
    *[None, "lease", Lease("t", 2**70, "o", BASE), Lease("t", 0, "o", BASE), Lease("", 1, "o", BASE)],
)
queries = mostly(
    st.builds(
        ThreadQuery,
        states=filters,
        metadata=metadata,
        updated_after=st.none() | mostly(good_times, BASE.replace(tzinfo=None), 5),
        updated_before=st.none() | mostly(good_times, BASE.replace(tzinfo=None), 5),
        graph_id=mostly(st.sampled_from([None] * 5 + ["g"]), 5, "\ud800"),
        due_before=mostly(st.sampled_from([None] * 5 + [BASE]), BASE.replace(tzinfo=None), "x"),
        leased=mostly(st.sampled_from([None, None, True, False]), 1, "no"),
        limit=limits,
        cursor=cursors,
    ),
    *[None, "all", {}],
)


def step(op: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return calls of a port."""
    return st.tuples(st.just(op), st.fixed_dictionaries(arguments))


steps = st.one_of(
    step("save", checkpoint=checkpoints, write_id=write_ids),
    step("save", checkpoint=checkpoints, write_id=write_ids),
    step("save_if_latest", checkpoint=checkpoints, expected=expectations, unleased=st.booleans(), write_id=write_ids),
    step(
        "save_under_lease",
        checkpoint=checkpoints,
        lease=leases,
        expected=expectations,
        release=st.booleans(),
        write_id=write_ids,
    ),
    step(
        "acquire_lease",
        thread_id=thread_ids,
        owner=owners,
        ttl=ttls,
        save=st.none() | checkpoints,
        expected=st.just(ANY) | expectations,
        write_id=write_ids,
    ),
    step("renew_lease", lease=leases, ttl=ttls),
    step("release_lease", lease=leases),
    step("live_lease", thread_id=thread_ids),
    step("load", thread_id=thread_ids, at=sequences),
    step("get_log", thread_id=thread_ids, start=starts, limit=limits),
    step("list_threads", query=queries),
    step("purge", older_than=times, states=filters.filter(lambda states: states is not None), limit=limits),
    step("advance", seconds=st.sampled_from([1, 10, 60])),
)


@attrs.frozen(eq=False)
class Left:
    """How long a lease lives on."""

    time: timedelta

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Left) and abs(self.time - other.time) < NEAR

    __hash__ = None  # type: ignore[assignment]


@attrs.define
class Side:
    """One of the stores, and what it gave that later calls give back: leases in order, and the latest cursor."""

    store: Any
    clock: Clock
    leases: list[Lease] = attrs.field(factory=list)
    tokens: dict[int, int] = attrs.field(factory=dict)
    cursor: str | None = None

    async def call(self, op: str, arguments: dict[str, Any]) -> Any:
        """Make a call, and return what must be the same on every side."""
        arguments = dict(arguments)
        lease = arguments.get("lease")
        if type(lease) is int:
            arguments["lease"] = self.leases[-1 - lease] if lease < len(self.leases) else Lease("t", 999, "o", BASE)
        if type(arguments.get("write_id")) is int and arguments["write_id"] < 3:
            arguments["write_id"] = bytes([arguments["write_id"]] * 8) if arguments["write_id"] else None
        target = arguments.get("checkpoint") or arguments.get("save")
        if isinstance(target, Checkpoint) and target.status is not CheckpointStatus.INTERRUPTED:  # mostly what fits
            if op == "acquire_lease":
                arguments["thread_id"] = target.thread_id
            if op == "save_under_lease" and isinstance(arguments["lease"], Lease):
                target = arguments["checkpoint"] = attrs.evolve(target, thread_id=arguments["lease"].thread_id)
        thread_id = arguments.get("thread_id", getattr(target, "thread_id", None))
        if arguments.get("expected") in ("latest", "revision"):
            arguments["expected"] = await self._latest(thread_id, arguments["expected"])
        query = arguments.get("query")
        if isinstance(query, ThreadQuery) and query.cursor == "given":
            arguments["query"] = attrs.evolve(query, cursor=self.cursor)
        positional = [arguments.pop(name) for name in ("query", "older_than") if name in arguments]
        try:
            outcome = await getattr(self.store, op)(*positional, **arguments)
        except StrataError as error:
            return self.error(error)
        if isinstance(outcome, Lease) and op == "acquire_lease":
            self.leases.append(outcome)
        if isinstance(outcome, ThreadPage):
            self.cursor = outcome.next_cursor
        return self.comparable(outcome)

    async def _latest(self, thread_id: Any, kind: str) -> Any:
        try:
            entry = await self.store.load(thread_id)
        except StrataError:
            return None
        return entry and (entry.sequence if kind == "latest" else entry.revision)

    @staticmethod
    def error(error: StrataError) -> tuple[Any, ...]:
        """Return the type of an error, and its facts."""
        if isinstance(error, InvalidInputError):
            return type(error).__name__, error.argument
        return type(error).__name__, error.latest if type(error) is ConflictError else None

    def comparable(self, value: Any) -> Any:
        """Return an outcome with tokens as ranks, and without write IDs of the store's own making."""
        if isinstance(value, Lease):
            rank = self.tokens.setdefault(value.token, len(self.tokens))
            return value.thread_id, rank, value.owner, Left(value.expires_at - self.clock.now()), value.saved
        if isinstance(value, LogEntry):
            return value.sequence, value.checkpoint, repr(value.checkpoint.frozen_state)
        if isinstance(value, LogPage):
            return [self.comparable(entry) for entry in value.entries], value.next_start
        if isinstance(value, ThreadPage):
            threads = [(attrs.evolve(t, lease=None), self.comparable(t.lease)) for t in value.threads]
            return threads, value.next_cursor is not None
        return value


async def run(program: list[tuple[str, dict[str, Any]]], folder: Path) -> None:
    """Run a program on all stores that are files or memory, call by call."""
    clock = FakeClock()
    async with AsyncExitStack() as stack:
        sides = {}
        for name, make in BACKENDS.items():
            store: Any = await stack.enter_async_context(RowStore(make(folder, clock), **OPTIONS.get(name, {})))
            sides[name] = Side(WRAPPERS[name](store) if name in WRAPPERS else store, clock)
        await compare_calls(program, sides, clock)


async def compare_calls(program: list[tuple[str, dict[str, Any]]], sides: dict[str, Side], clock: FakeClock) -> None:
    for number, (op, arguments) in enumerate(program):
        if op == "advance":
            clock.advance(arguments["seconds"])
            continue
        outcomes = {name: await side.call(op, arguments) for name, side in sides.items()}
        odd = {name: outcome for name, outcome in outcomes.items() if outcome != outcomes["memory"]}

        assert not odd, f"{odd} in call {number}, {op}, where memory came to {outcomes['memory']}"


@pytest.mark.parametrize("length", [6, 25])
def test_all_stores_come_to_the_same_outcomes(length: int) -> None:
    """A random program, hostile inputs among it, gives the same answers and errors in every store."""

    @settings(
        max_examples=1000 if SOAK else 40,
        derandomize=not SOAK,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(steps, min_size=length, max_size=length))
    def compare(program: list[tuple[str, dict[str, Any]]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(run(program, Path(folder)))

    compare()


@pytest.mark.parametrize("store", SERVERS)
def test_a_store_on_a_server_comes_to_the_same_outcomes(store: str, request: pytest.FixtureRequest) -> None:
    """As memory does; time stands still, as no test can move a server's clock."""
    fixture, apart = SERVERS[store]
    server = request.getfixturevalue(fixture)
    names = itertools.count()

    async def on_server(program: list[tuple[str, dict[str, Any]]]) -> None:
        memory_clock, url = FakeClock(), f"{server.url}?{apart}=differ_{os.getpid()}_{next(names)}"
        async with RowStore(MemoryBackend(memory_clock)) as memory, strata_core.open_store(url) as other:
            sides = {"memory": Side(memory, memory_clock), store: Side(other, SystemClock())}
            await compare_calls(program, sides, memory_clock)

    @settings(
        max_examples=500 if SOAK else 8,
        derandomize=not SOAK,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(steps.filter(lambda step: step[0] != "advance"), min_size=30, max_size=30))
    def compare(program: list[tuple[str, dict[str, Any]]]) -> None:
        asyncio.run(on_server(program))

    compare()


class LosesMetadata(MemoryBackend):
    """Is not as the others are."""

    async def commit(self, batch: Any) -> Any:
        for commit in batch:
            if commit.row is not None:
                commit.row.metadata = {}
        return await super().commit(batch)


def test_a_store_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A call that comes out otherwise in one store fails, and names it."""
    monkeypatch.setitem(BACKENDS, "another", lambda _, clock: LosesMetadata(clock))
    checkpoint = Checkpoint("t", CheckpointStatus.RUNNING, {}, BASE, metadata={"k": "v"})
    program: list[tuple[str, dict[str, Any]]] = [
        ("save", {"checkpoint": checkpoint}),
        ("list_threads", {"query": ThreadQuery(metadata={"k": "v"})}),
    ]
    with pytest.raises(AssertionError, match=r"another.*call 1, list_threads"):
        asyncio.run(run(program, tmp_path))
