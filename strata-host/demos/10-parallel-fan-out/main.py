"""Three checks of an order run at once, then one graph for each of its items; reducers make one state of the results.

Shows that branches overlap, that their results come in the order of declaration, whichever was through first, that
`max_concurrency` holds, and what becomes of the others when one fails.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs

from strata_core import (
    Cancelled,
    CheckpointPolicy,
    CompiledGraph,
    Completed,
    Failed,
    GraphIdentity,
    Interrupted,
    NodeContext,
    RunResult,
    StateGraph,
    open_store,
)

PATIENCE = timedelta(seconds=30)
"""How long a branch waits for another; far more than it takes, so that a fault is no hang."""
PRICES = {"desk": 600, "lamp": 30, "chair": 150, "rug": 80}


@attrs.frozen
class Order:
    items: tuple[str, ...]
    checks: tuple[str, ...] = ()
    total: int = 0


@attrs.frozen
class Quote:
    item: str
    price: int = 0


class World:
    """What the branches do, and in which order they are through."""

    def __init__(self) -> None:
        self.through: list[str] = []
        self.stopped: list[str] = []
        self.keys: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.card_is_good = False
        self.stock_is_through = asyncio.Event()
        self.fraud_is_through = asyncio.Event()
        self.lamp_is_through = asyncio.Event()

    def start_over(self) -> None:
        """Forget what is through, so that the branches wait for each other again."""
        self.through.clear()
        self.stock_is_through.clear()
        self.fraud_is_through.clear()


def order_graph(world: World, graph_id: str) -> CompiledGraph[Order]:
    async def credit(order: Order, ctx: NodeContext[Order]) -> Order:
        world.keys.append(ctx.idempotency_key)
        async with asyncio.timeout(PATIENCE.total_seconds()):
            await world.fraud_is_through.wait()  # so this branch is the first declared and the last through
        if not world.card_is_good:
            raise PermissionError("the card was declined")
        world.through.append("credit")
        return attrs.evolve(order, checks=("credit is good",))

    async def stock(order: Order) -> Order:
        world.through.append("stock")
        world.stock_is_through.set()
        return attrs.evolve(order, checks=("all in stock",))

    async def fraud(order: Order) -> Order:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            await world.stock_is_through.wait()
        world.fraud_is_through.set()
        if not world.card_is_good:
            try:
                await asyncio.Event().wait()  # it would take for ever, but another branch fails
            finally:
                world.stopped.append("fraud")
        world.through.append("fraud")
        return attrs.evolve(order, checks=("no fraud",))

    def all_checks(before: Order, results: Sequence[Order]) -> Order:
        return attrs.evolve(before, checks=tuple(check for result in results for check in result.checks))

    async def ask(quote: Quote) -> Quote:
        world.at_once += 1
        world.most_at_once = max(world.most_at_once, world.at_once)
        if quote.item == "chair":
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await world.lamp_is_through.wait()  # so the first of the list is the last through
        else:
            await asyncio.sleep(0)  # whoever else may run does
        world.at_once -= 1
        world.through.append(quote.item)
        if quote.item == "lamp":
            world.lamp_is_through.set()
        return attrs.evolve(quote, price=PRICES[quote.item])

    def sum_up(before: Order, quotes: Sequence[Quote]) -> Order:
        if [quote.item for quote in quotes] != list(before.items):
            raise RuntimeError("the results do not stand in the order of the list")
        return attrs.evolve(before, total=sum(quote.price for quote in quotes))

    return (
        StateGraph(Order)
        .add_parallel_group("Checks", {"credit": credit, "stock": stock, "fraud": fraud}, all_checks)
        .add_edge("Checks", "Prices")
        .add_map(
            "Prices",
            StateGraph(Quote).add_node("Ask", ask).compile(),
            lambda order: [Quote(item) for item in order.items],
            sum_up,
            max_concurrency=2,
        )
        .compile(identity=GraphIdentity(graph_id, "1"), checkpointing=CheckpointPolicy.EVERY_NODE)
    )


async def demonstrate(storage: str, suffix: str) -> None:
    world = World()
    graph = order_graph(world, f"parallel-fan-out{suffix}")
    thread_id = f"order-1{suffix}"
    order = Order(("chair", "rug", "desk", "lamp"))
    async with open_store(storage) as store:
        print("1. Three checks run at once.  One fails: the one that still runs is stopped, and nothing counts.")
        result = await graph.run(thread_id, order, store, if_exists="error")
        expect(told(result), f"{thread_id} node_failed at Checks: PermissionError: the card was declined")
        expect(
            f"through: {', '.join(world.through)}; stopped: {', '.join(world.stopped)}",
            "through: stock; stopped: fraud",
        )

        print("\n2. The card is good now.  A resume runs all three again, with the keys that they had.")
        world.start_over()
        world.card_is_good = True
        result = await graph.resume(thread_id, None, store)
        expect(told(result), f"{thread_id} completed: credit is good, all in stock, no fraud; 860 for 4 items")
        expect(f"credit: {len(world.keys)} x, {len(set(world.keys))} key", "credit: 2 x, 1 key")

        print("\n3. The reducer got the results as declared, and not as they were through.")
        expect(f"through: {', '.join(world.through[:3])}", "through: stock, fraud, credit")

        print("\n4. The map ran a graph for each item, two at a time, and summed up in the order of the list.")
        expect(f"through: {', '.join(world.through[3:])}", "through: rug, desk, lamp, chair")
        expect(f"at most {world.most_at_once} at once", "at most 2 at once")

        print("\n5. A group is one step, and so is a map.")
        log = [entry.checkpoint for entry in (await store.get_log(thread_id)).entries]
        expect(
            ", ".join(f"{at.state} {at.suspended_node or ''}".strip() for at in log),
            "running, failed Checks, running, running Checks, completed Prices",
        )


def told(result: RunResult[Order]) -> str:
    match result:
        case Completed(thread_id, order):
            return f"{thread_id} completed: {', '.join(order.checks)}; {order.total} for {len(order.items)} items"
        case Interrupted(thread_id, node):
            return f"{thread_id} waits at {node}"
        case Failed(thread_id, code, _, node, detail):
            return f"{thread_id} {code} at {node}: {detail}"
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"


def expect(shown: str, expected: str) -> None:
    print(f"   {shown}", flush=True)
    if shown != expected:
        sys.exit(f"The demo failed; expected: {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks of an order run at once, then one graph for each item.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: a temporary SQLite file)")
    storage = parser.parse_args().storage
    with tempfile.TemporaryDirectory() as folder:
        # In a store of yours the thread stays, each time under a new ID.
        suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
        asyncio.run(demonstrate(storage or str(Path(folder) / "orders.db"), suffix))
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
