"""What the tests and the programs they start have in common."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

from strata_core import (
    Checkpoint,
    CheckpointPolicy,
    CheckpointStatus,
    CompiledGraph,
    GraphIdentity,
    NodeContext,
    StateGraph,
    Wait,
    WaitKind,
    open_store,
)

logging.getLogger("strata_core.graph").setLevel(logging.ERROR)  # that a lease is lost is what these tests are about

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "processes" / "programs"
PATIENCE = 600.0 if os.environ.get("STRATA_SOAK") == "1" else 60.0
"""How many seconds anything here may take at most."""

STEPS = ("Reserve", "Charge", "Pack", "Ship", "Invoice", "Close")


@attrs.frozen
class Order:
    done: tuple[str, ...] = ()


def say(*words: object) -> None:
    """Tell the parent in one write, which no death can cut in two."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def shop(lease_ttl: timedelta) -> CompiledGraph[Order]:
    """A graph whose nodes tell the parent what they do to the outside world, before it is committed."""

    async def work(order: Order, ctx: NodeContext[Order]) -> Order:
        say("effect", ctx.thread_id, ctx.node, ctx.idempotency_key)
        await asyncio.sleep(0)
        return attrs.evolve(order, done=(*order.done, ctx.node))

    graph = StateGraph(Order)
    for name in STEPS:
        graph.add_node(name, work)
    for source, target in pairwise(STEPS):
        graph.add_edge(source, target)
    return graph.compile(
        identity=GraphIdentity("shop", "1"), checkpointing=CheckpointPolicy.EVERY_NODE, lease_ttl=lease_ttl
    )


DOINGS = ("In", "Deep", "Deeper", "Left", "Right", "Each0", "Each1", "Out", "Last")
"""What `nested_shop` does, in its order; Left and Right are done at once, and so are the two of Each."""


def nested_shop(lease_ttl: timedelta) -> CompiledGraph[Order]:
    """A graph whose nodes tell the parent what they do: two levels deep, in a parallel group, in a map, and around."""

    async def work(order: Order, ctx: NodeContext[Order], name: str | None = None) -> Order:
        name = name or ctx.node
        say("effect", ctx.thread_id, name, ctx.idempotency_key)
        await asyncio.sleep(0)
        return attrs.evolve(order, done=(*order.done, name))

    def branch(name: str) -> Callable[[Order, NodeContext[Order]], Awaitable[Order]]:
        async def handler(order: Order, ctx: NodeContext[Order]) -> Order:
            return await work(order, ctx, name)

        return handler

    async def each(item: Order, ctx: NodeContext[Order]) -> Order:
        return await work(item, ctx, f"Each{item.done[0]}")

    def joined(order: Order, results: Sequence[Order]) -> Order:
        return attrs.evolve(order, done=(*order.done, *(result.done[-1] for result in results)))

    def whole(order: Order) -> Order:
        return order

    def back(order: Order, inner: Order) -> Order:
        return inner

    deep = StateGraph(Order).add_node("Deep", work).add_node("Deeper", work).add_edge("Deep", "Deeper").compile()
    item = StateGraph(Order).add_node("Each", each).compile()
    middle = (
        StateGraph(Order)
        .add_subgraph("Inner", deep, enter=whole, leave=back)
        .add_parallel_group("Group", {"Left": branch("Left"), "Right": branch("Right")}, joined)
        .add_map("Map", item, lambda order: [Order(("0",)), Order(("1",))], joined)
        .add_node("Out", work)
        .add_edge("Inner", "Group")
        .add_edge("Group", "Map")
        .add_edge("Map", "Out")
        .compile()
    )
    return (
        StateGraph(Order)
        .add_node("In", work)
        .add_subgraph("Work", middle, enter=whole, leave=back)
        .add_node("Last", work)
        .add_edge("In", "Work")
        .add_edge("Work", "Last")
        .compile(identity=GraphIdentity("nested", "1"), checkpointing=CheckpointPolicy.EVERY_NODE, lease_ttl=lease_ttl)
    )


GRAPHS = {"shop": shop, "nested": nested_shop}
"""What the programs run, by name."""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start one of the programs; warnings are errors in it."""
    command = [sys.executable, "-W", "error", str(PROGRAMS / program), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    """Wait for a program, require that it did well and said nothing on stderr, and return the lines it printed."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()

    assert (0, "") == (process.returncode, err)
    return out.splitlines()


def with_store(url: str, use: Callable[[Any], Awaitable[Any]]) -> Any:
    """Run `use` with the store open, in a loop of its own."""

    async def main() -> Any:
        async with open_store(url) as store:
            return await use(store)

    return asyncio.run(main())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not await condition():
        assert time.monotonic() < end, "it did not come to that in time"
        await asyncio.sleep(0.01)


async def lease_runs_out(store: Any, thread_id: str) -> None:
    """Wait until nobody's live lease is on a thread."""

    async def is_free() -> bool:
        return await store.live_lease(thread_id) is None

    await until(is_free)


def race_graph(owner: str) -> CompiledGraph[Order]:
    """A graph that waits for a person after its first node, for an hour at most."""

    async def work(order: Order, ctx: NodeContext[Order]) -> Order:
        await asyncio.sleep(0)
        return attrs.evolve(order, done=(*order.done, ctx.node))

    return (
        StateGraph(Order)
        .add_node("Ask", work)
        .add_interrupt_boundary("Ask", timeout=timedelta(hours=1), on_timeout="Pay")
        .add_node("Pay", work)
        .add_node("Ship", work)
        .add_edge("Ask", "Pay")
        .add_edge("Pay", "Ship")
        .compile(checkpointing=CheckpointPolicy.EVERY_NODE, owner=owner)
    )


def race_row(thread_id: str) -> Checkpoint:
    """A thread whose process died in `Pay`, or one that has waited for too long."""
    at = datetime.now(UTC) - timedelta(hours=2)
    row = Checkpoint(thread_id, CheckpointStatus.RUNNING, {"done": ["Ask"]}, at, "Ask", "Pay")
    if thread_id.startswith("dead"):
        return row
    wait = Wait(WaitKind.PERSON, due_at=at + timedelta(hours=1), on_timeout="Pay")
    return attrs.evolve(row, status=CheckpointStatus.INTERRUPTED, wait=wait)
