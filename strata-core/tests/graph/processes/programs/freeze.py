"""Runs a thread whose first node is frozen by the parent, or takes a lease and tries to use it afterwards."""

import asyncio
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from process_support import Order, say

from strata_core import Checkpoint, CheckpointPolicy, CheckpointStatus, LeaseLostError, StateGraph, open_store
from strata_core.ports import CheckpointStore

TTL = timedelta(seconds=0.4)


async def run(store: CheckpointStore, kind: str) -> None:
    over = threading.Event()

    async def wait(order: Order) -> Order:
        say("frozen")
        await asyncio.Event().wait()
        return order

    def block(order: Order) -> Order:
        say("frozen")
        over.wait()
        return order

    def work(order: Order) -> Order:
        say("frozen")
        sys.stdin.readline()
        return order

    ways: dict[str, Any] = {"await": wait, "thread": block, "loop": work}
    graph = (
        StateGraph(Order)
        .add_node("Freeze", ways[kind], blocking=kind == "thread")
        .add_node("Last", lambda order: order)
        .add_edge("Freeze", "Last")
        .compile(checkpointing=CheckpointPolicy.EVERY_NODE, lease_ttl=TTL)
    )
    result = await graph.run("t", Order(), store)
    over.set()
    say(type(result).__name__, getattr(result, "reason", ""))


async def use_the_lease(store: CheckpointStore) -> None:
    row = Checkpoint("t", CheckpointStatus.RUNNING, {"done": []}, datetime.now(UTC), None, "Freeze")
    lease = await store.acquire_lease("t", owner="frozen", ttl=TTL, save=row)
    assert lease is not None
    say("frozen")
    sys.stdin.readline()
    for name, call in (
        ("save", store.save_under_lease(row, lease)),
        ("renew", store.renew_lease(lease, ttl=TTL)),
        ("release", store.release_lease(lease)),
    ):
        try:
            await call
        except LeaseLostError:
            say(name, "lost")
        else:
            say(name, "done")


async def main(url: str, kind: str) -> None:
    async with open_store(url) as store:
        await (use_the_lease(store) if kind == "lease" else run(store, kind))


asyncio.run(main(*sys.argv[1:]))
