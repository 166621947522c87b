"""The bare driver at its best: one row a step, written on a thread of its own, waiting writes in one transaction."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workload import advance_dict, order_dict

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HEAD = (
    "insert into heads values(?,?,?)"
    " on conflict(thread) do update set sequence=excluded.sequence, status=excluded.status"
)


class Floor:
    """A minimal store: heads and rows, group commit, no conditions, no checks."""

    def __init__(self, path: Path) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._database = self._thread.submit(self._open, path).result()
        self._waiting: list[tuple[tuple[object, ...], asyncio.Future[None]]] = []
        self._busy = False

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection:
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("pragma journal_mode=wal")
        database.execute("pragma synchronous=full")
        database.execute("create table heads(thread text primary key, sequence integer, status text)")
        database.execute("create table rows(thread text, sequence integer, state text, primary key(thread, sequence))")
        return database

    def _write(self, items: list[tuple[object, ...]]) -> None:
        run = self._database.execute
        run("begin immediate")
        for thread, sequence, status, text in items:
            run(_HEAD, (thread, sequence, status))
            run("insert into rows values(?,?,?)", (thread, sequence, text))
        run("commit")

    async def save(self, *item: object) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._flush)
        await future

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(self._thread, self._write, [item for item, _ in batch])

        def done(finished: asyncio.Future[None]) -> None:
            finished.result()
            for _, future in batch:
                future.set_result(None)
            self._busy = bool(self._waiting)
            if self._busy:
                loop.call_soon(self._flush)

        job.add_done_callback(done)

    async def run(self, thread: str) -> None:
        """Ten steps, eleven rows."""
        state = dict(order_dict())
        await self.save(thread, 0, "running", _encode(state))
        for sequence in range(1, 11):
            state |= advance_dict(state)  # type: ignore[arg-type]
            await self.save(thread, sequence, "running" if sequence < 10 else "completed", _encode(state))

    def close(self) -> None:
        self._thread.submit(self._database.close).result()
        self._thread.shutdown()
