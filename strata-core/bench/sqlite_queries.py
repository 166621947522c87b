"""Listings, loads, purge and thread length."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from databases import Sqlite
from harness import Measure, Peer, compare, timed

from strata_core import Checkpoint, CheckpointStatus, ThreadQuery, ThreadState

THREADS = int(os.environ.get("STRATA_BENCH_THREADS", "10000"))
START = datetime(2026, 1, 1, tzinfo=UTC)


async def fill(store: Any, threads: int, rows: int = 5, *, waiting_every: int = 10) -> None:
    """Write threads of `rows` checkpoints; every tenth waits, the others completed."""

    async def thread(number: int) -> None:
        for row in range(rows):
            last = row == rows - 1
            waits = number % waiting_every == 0
            status = "running" if not last else "interrupted" if waits else "completed"
            await store.save(
                Checkpoint(
                    f"thread-{number:07}",
                    CheckpointStatus(status),
                    {"step": row, "text": "x" * 200},
                    START + timedelta(milliseconds=number),
                    "work",
                    "next" if status != "completed" else None,
                    {"tenant": f"t{number % 100}"},
                )
            )

    for first in range(0, threads, 500):
        await asyncio.gather(*(thread(number) for number in range(first, min(first + 500, threads))))


def strata(call: Callable[[Any], Awaitable[object]], threads: int, repeat: int = 20) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        store = await Sqlite().strata(stack, folder)
        await fill(store, threads)

        async def work(_: int) -> None:
            for _ in range(repeat):
                await call(store)

        async def measure(turn: int) -> float:
            return await timed(work)(turn) / repeat

        return measure

    return peer


def langgraph(call: Callable[[Any], Awaitable[object]], threads: int) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        saver = await Sqlite().saver(stack, folder)
        _fill_langgraph(folder / "langgraph.db", threads)
        return timed(lambda _: call(saver))

    return peer


def _fill_langgraph(path: Path, threads: int) -> None:
    """Write the rows that the saver itself writes: its own serialised checkpoints, five a thread."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.base.id import uuid6
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    serde = JsonPlusSerializer()
    with sqlite3.connect(path) as database:
        for number in range(threads):
            for row in range(5):
                checkpoint = {
                    **empty_checkpoint(),
                    "id": str(uuid6(clock_seq=row)),
                    "channel_values": {"text": "x" * 200},
                }
                kind, content = serde.dumps_typed(checkpoint)
                metadata = json.dumps({"step": row, "tenant": f"t{number % 100}"}).encode()
                database.execute(
                    "insert into checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata)"
                    " values (?, '', ?, ?, ?, ?)",
                    (f"thread-{number:07}", checkpoint["id"], kind, content, metadata),
                )


async def _newest_langgraph(saver: Any, **filters: Any) -> None:
    """The saver lists checkpoints, newest first; the newest 50 threads are the first 50 different ones."""
    seen: set[str] = set()
    async with contextlib.aclosing(saver.alist(None, **filters)) as items:
        async for item in items:
            seen.add(item.config["configurable"]["thread_id"])
            if len(seen) == 50:
                return


async def run() -> None:
    newest = ThreadQuery(limit=50)
    waiting = ThreadQuery(states={ThreadState.INTERRUPTED}, limit=50)
    tenant = ThreadQuery(metadata={"tenant": "t10"}, limit=50)
    for title, query, filters in (
        ("Newest 50 threads", newest, {}),
        ("Newest 50 of a tenant", tenant, {"filter": {"tenant": "t10"}}),
    ):
        await compare(
            f"{title}, {THREADS:,} threads of five checkpoints",
            {
                "Strata": strata(lambda store, query=query: store.list_threads(query), THREADS),
                "LangGraph": langgraph(lambda saver, filters=filters: _newest_langgraph(saver, **filters), THREADS),
            },
            unit="us",
            scale=1e6,
            rounds=3,
        )
    for title, query in (("newest", newest), ("waiting", waiting), ("of a tenant", tenant)):
        await compare(
            f"50 threads ({title}), by the number of threads in the store",
            {
                f"{count:,}": strata(lambda store, query=query: store.list_threads(query), count)
                for count in (1_000, THREADS)
            },
            unit="us",
            scale=1e6,
        )
    await compare(
        "The latest checkpoint of a thread",
        {
            "Strata": strata(lambda store: store.load("thread-0000100"), THREADS),
            "LangGraph": langgraph(
                lambda saver: saver.aget_tuple({"configurable": {"thread_id": "thread-0000100"}}), THREADS
            ),
        },
        unit="us",
        scale=1e6,
    )
    await compare(
        "Deleting a thread of five checkpoints",
        {"Strata, purge in batches": _purge(), "LangGraph, one by one": _delete_langgraph()},
        unit="us a thread",
        scale=1e6,
    )
    for what in ("save", "load"):
        await compare(
            f"A {what}, by the length of the thread",
            {"10": _length(10, what), "10,000": _length(10_000, what)},
            unit="us",
            scale=1e6,
        )


def _purge() -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        store = await Sqlite().strata(stack, folder)
        await fill(store, 5_000, waiting_every=10**9)

        async def measure(turn: int) -> float:
            return await timed(lambda _: store.purge(datetime.now(UTC), limit=1_000))(turn) / 1_000

        return measure

    return peer


def _delete_langgraph() -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        saver = await Sqlite().saver(stack, folder)
        _fill_langgraph(folder / "langgraph.db", 1_000)

        async def measure(turn: int) -> float:
            async def work(_: int) -> None:
                for number in range(100):
                    await saver.adelete_thread(f"thread-{100 * turn + number:07}")

            return await timed(work)(turn) / 100

        return measure

    return peer


def _length(length: int, what: str) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        store = await Sqlite().strata(stack, folder)
        checkpoint = Checkpoint("t", CheckpointStatus.RUNNING, {"text": "x" * 900}, START)
        for first in range(0, length, 500):
            await asyncio.gather(*(store.save(checkpoint) for _ in range(min(500, length - first))))

        async def work(_: int) -> None:
            for _ in range(200):
                await (store.save(checkpoint) if what == "save" else store.load("t"))

        async def measure(turn: int) -> float:
            return await timed(work)(turn) / 200

        return measure

    return peer
