"""The connection, and what it leans on inside aiosqlite."""

import asyncio
import gc
import logging
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from aiosqlite import core
from sqlite_support import finish, save, start, with_backend

from strata_core.errors import StoreClosedError, UsageError
from strata_core.options import Setup
from strata_sqlite import SqliteBackend
from strata_sqlite._connection import Connection


def until(condition: Callable[[], bool]) -> None:
    """Poll for at most ten seconds: a thread ends a moment after it said so."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> object:
    before = set(threading.enumerate())
    yield
    gc.collect()
    until(lambda: set(threading.enumerate()) <= before)


def memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def test_aiosqlite_is_of_the_minor_version_whose_inside_is_known() -> None:
    assert version("aiosqlite").startswith("0.22.")


def test_the_thread_of_aiosqlite_calls_what_is_queued_and_ends_on_the_sentinel() -> None:
    connection = aiosqlite.Connection(memory, iter_chunk_size=64)
    calls: queue.SimpleQueue[int] = queue.SimpleQueue()

    assert (None, None) == (connection._thread.ident, connection._connection)
    connection._thread.start()
    connection._tx.put_nowait((None, lambda: calls.put(threading.get_ident())))
    connection._tx.put_nowait((None, lambda: core._STOP_RUNNING_SENTINEL))
    connection._thread.join(10)

    assert (connection._thread.ident, False) == (calls.get(timeout=10), connection._thread.is_alive())


def test_a_function_runs_on_a_daemon_thread_and_its_answer_or_error_comes_back() -> None:
    async def check() -> None:
        connection = Connection(memory)
        await connection.open()
        thread = await connection.run(lambda _: threading.current_thread())

        assert thread is not threading.current_thread()
        assert thread.daemon
        assert [(5,)] == await connection.run(lambda db, more: db.execute("SELECT 2 + ?", (more,)).fetchall(), 3)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await connection.run(lambda db: db.execute("SELECT * FROM missing"))
        await connection.close()
        await connection.close()
        with pytest.raises(sqlite3.ProgrammingError, match="the connection is closed"):
            await connection.run(lambda _: None)

    asyncio.run(check())


def test_a_call_cancelled_while_it_waits_is_not_made_and_one_under_way_is_finished() -> None:
    async def check() -> None:
        connection = Connection(memory)
        await connection.open()
        entered, go_on = threading.Event(), threading.Event()
        made = []

        def block(_: sqlite3.Connection) -> None:
            entered.set()
            assert go_on.wait(10)
            made.append("under way")

        under_way = asyncio.ensure_future(connection.run(block))
        waiting = asyncio.ensure_future(connection.run(lambda _: made.append("waiting")))
        await asyncio.to_thread(entered.wait, 10)
        under_way.cancel()
        waiting.cancel()
        await asyncio.wait([under_way, waiting])
        go_on.set()
        await connection.run(lambda _: made.append("after"))
        await connection.close()

        assert ["under way", "after"] == made

    asyncio.run(check())


def test_a_loop_that_is_closed_under_a_pending_call_does_not_end_the_thread() -> None:
    connection = Connection(memory)
    entered, go_on = threading.Event(), threading.Event()

    def block(_: sqlite3.Connection) -> None:
        entered.set()
        assert go_on.wait(10)

    async def leave() -> None:
        await connection.open()
        asyncio.ensure_future(connection.run(block)).add_done_callback(lambda _: None)
        await asyncio.to_thread(entered.wait, 10)

    asyncio.run(leave())
    go_on.set()

    assert 7 == asyncio.run(connection.run(lambda _: 7))
    asyncio.run(connection.close())


def test_what_was_called_is_let_go_of_afterwards() -> None:
    class Large:
        pass

    async def check() -> None:
        connection = Connection(memory)
        await connection.open()
        large = Large()
        seen = weakref.ref(large)
        await connection.run(lambda _, thing: thing, large)
        del large
        await connection.run(id)  # by now the thread has come back from the call before
        gc.collect()

        assert seen() is None
        await connection.close()

    asyncio.run(check())


def test_a_forgotten_connection_ends_its_thread_and_warns_nobody() -> None:
    async def forget() -> None:
        await Connection(memory).open()

    asyncio.run(forget())  # the fixture sees the thread end, and pytest would see a warning


def test_state_and_metadata_never_reach_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(backend: SqliteBackend) -> None:
        await backend.commit([save("t", body=b'{"secret":"swordfish"}', metadata={"key": "swordfish"})])
        await backend.read("t", None, None)

    with caplog.at_level(logging.DEBUG):
        with_backend(tmp_path / "store.db", work)

    assert "executing" in caplog.text
    assert "swordfish" not in caplog.text


@pytest.mark.parametrize("way", ["local", "global", "pending", "exception"])
def test_a_process_that_forgets_to_close_exits_and_says_nothing(tmp_path: Path, way: str) -> None:
    out = finish(start("forget.py", tmp_path / "store.db", way), seconds=30)

    assert ("" if way == "exception" else "done\n") == out
    with_backend(tmp_path / "store.db", lambda backend: backend.commit([save("t")]))


class Cancelling:
    """Drives a coroutine by hand and cancels it at its n-th await."""

    def __init__(self, at: int) -> None:
        self.left = at

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(coroutine)
        while not task.done():
            if self.left == 0:
                task.cancel()
            self.left -= 1
            await asyncio.sleep(0)
            if self.left < 0:
                break
        await asyncio.wait([task])
        self.was_cancelled = task.cancelled()
        if not task.cancelled():
            task.result()


@pytest.mark.parametrize("read_only", [False, True])
def test_an_open_that_is_cancelled_at_any_point_leaves_no_thread_and_can_be_done_again(
    tmp_path: Path, read_only: bool
) -> None:
    async def check() -> int:
        cancelled = 0
        for at in range(40):
            backend = SqliteBackend(path)
            cancelling = Cancelling(at)
            await cancelling.run(backend.open(read_only=read_only, setup=Setup.AUTO))
            cancelled += cancelling.was_cancelled
            if cancelling.was_cancelled:
                with pytest.raises(StoreClosedError):
                    await backend.read_head("t")
                await backend.open(read_only=read_only, setup=Setup.AUTO)

            assert await backend.read_head("t") is not None
            await backend.close()
        return cancelled

    path = tmp_path / "store.db"
    with_backend(path, lambda backend: backend.commit([save("t")]))

    assert asyncio.run(check()) > 3


def test_a_close_that_is_cancelled_at_any_point_can_be_done_again(tmp_path: Path) -> None:
    async def check() -> None:
        for at in range(20):
            backend = SqliteBackend(tmp_path / "store.db")
            await backend.open(read_only=False, setup=Setup.AUTO)
            await backend.commit([save("t")])
            await Cancelling(at).run(backend.close())
            await backend.close()

            assert ["store.db"] == [path.name for path in tmp_path.iterdir()]

    asyncio.run(check())


def test_a_backend_is_closed_before_it_is_opened_and_twice_and_opened_again(tmp_path: Path) -> None:
    async def check() -> None:
        backend = SqliteBackend(tmp_path / "store.db")
        await backend.close()
        for _ in range(2):
            await backend.open(read_only=False, setup=Setup.AUTO)
            with pytest.raises(UsageError, match="is open already"):
                await backend.open(read_only=False, setup=Setup.AUTO)
            await backend.commit([save("t")])
            await backend.close()
            await backend.close()
            with pytest.raises(StoreClosedError, match="the store is not open"):
                await backend.commit([save("t")])

    asyncio.run(check())


@pytest.mark.parametrize("count", [1, 50])
def test_a_commit_that_is_cancelled_at_any_point_is_done_or_not_done_and_the_backend_goes_on(
    tmp_path: Path, count: int
) -> None:
    async def check() -> None:
        backend, other = SqliteBackend(tmp_path / "store.db"), SqliteBackend(tmp_path / "store.db")
        await backend.open(read_only=False, setup=Setup.AUTO)
        await other.open(read_only=False, setup=Setup.AUTO)
        for at in range(30):
            threads = [f"{at}-{number}" for number in range(count)]
            await Cancelling(at % 6).run(backend.commit([save(thread_id) for thread_id in threads]))
            await other.commit([save(f"{at}-other")])
            await backend.commit([save(f"{at}-after")])  # behind the cancelled one on the same thread
            written = [await other.read_head(thread_id) is not None for thread_id in threads]

            assert written in ([True] * count, [False] * count)
        await backend.close()
        await other.close()

    asyncio.run(check())
