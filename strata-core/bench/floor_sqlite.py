"""The bare sqlite3 module, on a thread of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

from floor import Floor, Step

_HEAD = (
    "insert into heads values(?,?,?)"
    " on conflict(thread) do update set sequence=excluded.sequence, status=excluded.status"
)


async def open_floor(stack: AsyncExitStack, folder: Path) -> Floor:
    """Return a floor on a file below `folder`."""
    thread = stack.enter_context(ThreadPoolExecutor(1))
    database = thread.submit(_connect, folder / "floor.db").result()
    stack.callback(lambda: thread.submit(database.close).result())
    loop = asyncio.get_running_loop()

    async def write(steps: list[Step]) -> None:
        await loop.run_in_executor(thread, _write, database, steps)

    return Floor(write)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("pragma journal_mode=wal")
    database.execute("pragma synchronous=full")
    database.execute("create table heads(thread text primary key, sequence integer, status text)")
    database.execute("create table rows(thread text, sequence integer, state text, primary key(thread, sequence))")
    return database


def _write(database: sqlite3.Connection, steps: list[Step]) -> None:
    run = database.execute
    run("begin immediate")
    for thread, sequence, status, text in steps:
        run(_HEAD, (thread, sequence, status))
        run("insert into rows values(?,?,?)", (thread, sequence, text))
    run("commit")
