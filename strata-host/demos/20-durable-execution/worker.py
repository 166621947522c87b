"""A worker that takes orders: reserve, charge, ship.  Each call is a process of its own.

python worker.py start ID    begin an order; get stuck in the middle of Charge, for somebody to kill the process
python worker.py recover     find the orders whose process died, and finish them
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from datetime import timedelta
from pathlib import Path

import attrs

from strata_core import (
    CheckpointPolicy,
    CompiledGraph,
    Completed,
    GraphIdentity,
    NodeContext,
    RunResult,
    StateGraph,
    open_store,
)

LEASE = timedelta(seconds=2)
"""How long the process that will be killed keeps its thread; 30 seconds by default, and short so that nobody waits."""


@attrs.frozen
class Order:
    item: str
    done: tuple[str, ...] = ()


@attrs.frozen
class World:
    """What the nodes do to the outside world: a file, with a line for each call."""

    path: Path

    def call(self, what: str, key: str) -> None:
        with self.path.open("a") as calls:
            calls.write(json.dumps({"what": what, "key": key}) + "\n")

    def calls(self) -> list[tuple[str, str]]:
        return [(call["what"], call["key"]) for call in map(json.loads, self.path.read_text().splitlines())]


def order_graph(
    graph_id: str, world: World, *, stuck: bool = False, lease_ttl: timedelta = timedelta(seconds=30)
) -> CompiledGraph[Order]:
    def reserve(order: Order, ctx: NodeContext[Order]) -> Order:
        world.call("reserve", ctx.idempotency_key)
        return attrs.evolve(order, done=(*order.done, "reserved"))

    async def charge(order: Order, ctx: NodeContext[Order]) -> Order:
        world.call("charge", ctx.idempotency_key)
        if stuck:
            print("charged, and about to commit that", flush=True)
            await asyncio.Event().wait()
        return attrs.evolve(order, done=(*order.done, "charged"))

    def ship(order: Order, ctx: NodeContext[Order]) -> Order:
        world.call("ship", ctx.idempotency_key)
        return attrs.evolve(order, done=(*order.done, "shipped"))

    return (
        StateGraph(Order)
        .add_node("Reserve", reserve)
        .add_edge("Reserve", "Charge")
        .add_node("Charge", charge)
        .add_edge("Charge", "Ship")
        .add_node("Ship", ship)
        .compile(identity=GraphIdentity(graph_id, "1"), checkpointing=CheckpointPolicy.EVERY_NODE, lease_ttl=lease_ttl)
    )


async def start(args: argparse.Namespace) -> int:
    graph = order_graph(args.graph, World(args.world), stuck=True, lease_ttl=LEASE)
    async with open_store(args.storage) as store:
        return told(await graph.run(args.id, Order("desk"), store, if_exists="error"))


async def recover(args: argparse.Namespace) -> int:
    graph = order_graph(args.graph, World(args.world))
    async with open_store(args.storage) as store:
        while True:  # as a service would do as long as it lives
            report = await graph.recover_all(store)
            if report.results:
                return max(map(told, report.results.values()))
            await asyncio.sleep(0.1)


def told(result: RunResult[Order]) -> int:
    if isinstance(result, Completed):
        print(f"{result.thread_id} completed: {', '.join(result.state.done)}")
        return 0
    print(result)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description="A worker that takes orders.")
    parser.add_argument("--storage", default="orders.db", metavar="URL", help="path or URL of the store")
    parser.add_argument("--world", type=Path, default=Path("world.jsonl"), help="the file that is the outside world")
    parser.add_argument("--graph", default="durable-execution", help="the ID of the graph: whose threads to recover")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("start")
    command.add_argument("id")
    command.set_defaults(action=start)
    commands.add_parser("recover").set_defaults(action=recover)
    args = parser.parse_args()
    code: int = asyncio.run(args.action(args))
    return code


if __name__ == "__main__":
    sys.exit(main())
