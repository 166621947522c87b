"""Ten nodes with a checkpoint after every node; freeze and resume; leases.  On any database, with durable settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import langgraph_peer
import strata_peer
from databases import Database
from harness import Measure, Peer, at_once, compare, timed

from strata_core import Checkpoint, CheckpointPolicy, CheckpointStatus, Deltas, Offload

ONE, MANY = 20, 4


def _both(run: Callable[[str], Awaitable[object]], parallel: int) -> Measure:
    """Return a measure of ONE runs one by one, or of MANY times `parallel` runs at once, in seconds a run."""

    async def work(turn: int) -> None:
        if parallel == 1:
            for number in range(ONE):
                await run(f"{parallel}-{turn}-{number}")
        else:
            for batch in range(MANY):
                await at_once(parallel, lambda number, batch=batch: run(f"{parallel}-{turn}-{batch}-{number}"))

    async def measure(turn: int) -> float:
        return await timed(work)(turn) / (ONE if parallel == 1 else MANY * parallel)

    return measure


def strata(database: Database, parallel: int, **options: Any) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        store = await database.strata(stack, folder, **options)
        graph = strata_peer.build()
        return _both(lambda thread: strata_peer.run(graph, thread, store), parallel)

    return peer


def langgraph(database: Database, parallel: int) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        graph = langgraph_peer.build(await database.saver(stack, folder))
        return _both(lambda thread: langgraph_peer.run(graph, thread), parallel)

    return peer


def floor(database: Database, parallel: int) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        return _both((await database.floor(stack, folder)).run, parallel)

    return peer


def strata_waiting(database: Database, step: str, policy: CheckpointPolicy) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        store = await database.strata(stack, folder)
        graph = strata_peer.build_waiting(policy)

        async def measure(turn: int) -> float:
            async def freeze(_: int) -> None:
                for batch in range(MANY):
                    await at_once(50, lambda n, batch=batch: strata_peer.run(graph, f"{turn}-{batch}-{n}", store))

            async def answer(_: int) -> None:
                for batch in range(MANY):
                    await at_once(50, lambda n, batch=batch: strata_peer.resume(graph, f"{turn}-{batch}-{n}", store))

            froze, answered = await timed(freeze)(turn), await timed(answer)(turn)
            return (froze if step == "freeze" else answered) / MANY / 50

        return measure

    return peer


def langgraph_waiting(database: Database, step: str) -> Peer:
    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        graph = langgraph_peer.build_waiting(await database.saver(stack, folder))

        async def measure(turn: int) -> float:
            async def freeze(_: int) -> None:
                await at_once(50, lambda n: langgraph_peer.run(graph, f"{turn}-{n}"))

            async def answer(_: int) -> None:
                await at_once(50, lambda n: langgraph_peer.resume(graph, f"{turn}-{n}"))

            froze, answered = await timed(freeze)(turn), await timed(answer)(turn)
            return (froze if step == "freeze" else answered) / 50

        return measure

    return peer


def saves(database: Database, *, leased: bool, parallel: int) -> Peer:
    """Return a peer that appends 20 checkpoints to each of `parallel` threads, with or without a lease."""

    async def peer(stack: AsyncExitStack, folder: Path) -> Measure:
        store = await database.strata(stack, folder)

        async def thread(name: str) -> None:
            checkpoint = Checkpoint(name, CheckpointStatus.RUNNING, {"text": "x" * 900}, datetime.now(UTC))
            if not leased:
                for _ in range(20):
                    await store.save(checkpoint)
                return
            lease = await store.acquire_lease(name, owner="bench", ttl=timedelta(minutes=1), save=checkpoint)
            assert lease is not None
            for number in range(19):
                await store.save_under_lease(checkpoint, lease, release=number == 18)

        async def work(turn: int) -> None:
            await at_once(parallel, lambda number: thread(f"{turn}-{number}"))

        async def measure(turn: int) -> float:
            return await timed(work)(turn) / parallel / 20

        return measure

    return peer


async def compare_runs(database: Database) -> None:
    """Print the tables of one database."""
    everything = {"deltas": Deltas(), "offload": Offload()}
    for parallel, title in ((1, "one run at a time"), (50, "fifty runs at once")):
        await compare(
            f"{database.name}: ten nodes of 1 KB, EVERY_NODE, {title}",
            {
                "Strata": strata(database, parallel),
                "Strata, deltas and offload on": strata(database, parallel, **everything),
                "LangGraph, durability=sync": langgraph(database, parallel),
                "floor": floor(database, parallel),
            },
            unit="us a run",
            scale=1e6,
        )
    for step in ("freeze", "resume"):
        await compare(
            f"{database.name}: {step}, fifty threads at once",
            {
                "Strata, BOUNDARIES": strata_waiting(database, step, CheckpointPolicy.BOUNDARIES),
                "Strata, EVERY_NODE": strata_waiting(database, step, CheckpointPolicy.EVERY_NODE),
                "LangGraph": langgraph_waiting(database, step),
            },
            unit="us a thread",
            scale=1e6,
        )
    for parallel in (1, 50):
        await compare(
            f"{database.name}: a save under a lease, {parallel} threads at once",
            {
                "without a lease": saves(database, leased=False, parallel=parallel),
                "with a lease": saves(database, leased=True, parallel=parallel),
            },
            unit="us a save",
            scale=1e6,
        )
