"""An order whose contract is a graph of its own, which stops the whole thread until a person has signed.

Shows a boundary two levels down, what the checkpoint holds of each level, that a resume goes back inside without
running anything twice, and whose decision it is.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

import attrs

from strata_core import (
    Cancelled,
    CheckpointPolicy,
    CompiledGraph,
    Completed,
    Failed,
    GraphIdentity,
    HumanSignal,
    Interrupted,
    LevelSignals,
    NodeContext,
    RunResult,
    StateGraph,
    open_store,
)


@attrs.frozen
class Order:
    customer: str
    amount: int
    note: str = ""
    status: str = "new"


@attrs.frozen
class Contract:
    text: str
    signature: str = ""


@attrs.frozen
class Review:
    clause: str
    verdict: str = ""


class World:
    """Which nodes ran, in order."""

    def __init__(self) -> None:
        self.ran: list[str] = []


def review_graph(world: World) -> CompiledGraph[Review]:
    """The innermost level: a lawyer reads one clause."""

    def read(review: Review) -> Review:
        world.ran.append("Read")
        return attrs.evolve(review, verdict="to be decided")

    def accept(review: Review, ctx: NodeContext[Review]) -> Review:
        world.ran.append("Accept")
        assert ctx.decision is not None  # its boundary was answered
        return attrs.evolve(review, verdict=f"accepted by {ctx.decision.reviewer}")

    def strike(review: Review, ctx: NodeContext[Review]) -> Review:
        world.ran.append("Strike")
        assert ctx.decision is not None
        return attrs.evolve(review, clause="", verdict=f"struck by {ctx.decision.reviewer}")

    return (
        StateGraph(Review)
        .add_node("Read", read)
        .add_interrupt_boundary("Read", on_reject="Strike")
        .add_edge("Read", "Accept")
        .add_node("Accept", accept)
        .add_node("Strike", strike)
        .compile()
    )


def contract_graph(world: World) -> CompiledGraph[Contract]:
    """The level between: it has no wait of its own."""

    def draw_up(contract: Contract) -> Contract:
        world.ran.append("DrawUp")
        return attrs.evolve(contract, text=f"{contract.text}, in 30 days")

    return (
        StateGraph(Contract)
        .add_node("DrawUp", draw_up)
        .add_edge("DrawUp", "Review")
        .add_subgraph(
            "Review",
            review_graph(world),
            enter=lambda contract: Review(contract.text),
            leave=lambda contract, review: Contract(review.clause, review.verdict),
        )
        .compile()
    )


def order_graph(world: World, graph_id: str) -> CompiledGraph[Order]:
    def take(order: Order) -> Order:
        world.ran.append("Take")
        return attrs.evolve(order, status="taken")

    def ship(order: Order, ctx: NodeContext[Order]) -> Order:
        world.ran.append("Ship")
        seen = "no decision" if ctx.decision is None else "a decision"
        return attrs.evolve(order, status=f"shipped; {order.status}; {seen} of its own")

    return (
        StateGraph(Order)
        .add_node("Take", take)
        .add_edge("Take", "Contract")
        .add_subgraph(
            "Contract",
            contract_graph(world),
            enter=lambda order: Contract(f"{order.customer} pays {order.amount}"),
            leave=lambda order, contract: attrs.evolve(
                order, status=f"'{contract.text}' {contract.signature}" if contract.text else contract.signature
            ),
        )
        .add_edge("Contract", "Ship")
        .add_node("Ship", ship)
        .compile(identity=GraphIdentity(graph_id, "1"), checkpointing=CheckpointPolicy.EVERY_NODE)
    )


async def stop(storage: str, suffix: str) -> None:
    first, second = f"order-1{suffix}", f"order-2{suffix}"
    graph = order_graph(World(), f"subgraph-composition{suffix}")
    async with open_store(storage) as store:
        print("1. Two orders are taken.  A boundary two graphs further in stops each thread as a whole.")
        for thread_id, order in [(first, Order("Acme Corp", 1200)), (second, Order("Globex", 90))]:
            result = await graph.run(thread_id, order, store, if_exists="error")
            expect(told(result), f"{thread_id} waits at Contract/Review/Read")

        print("\n2. One thread, one checkpoint: it holds the state of every level.")
        entry = await store.load(first)
        checkpoint = entry.checkpoint if entry is not None else None
        for expected in [
            "Contract: {'customer': 'Acme Corp', 'amount': 1200, 'note': '', 'status': 'taken'}",
            "Review: {'text': 'Acme Corp pays 1200, in 30 days', 'signature': ''}",
            "Read: {'clause': 'Acme Corp pays 1200, in 30 days', 'verdict': 'to be decided'}",
        ]:
            if checkpoint is None:
                sys.exit(f"The demo failed; expected: {expected}")
            expect(f"{checkpoint.suspended_node}: {checkpoint.frozen_state}", expected)
            checkpoint = checkpoint.nested


async def answer(storage: str, suffix: str) -> None:
    first, second = f"order-1{suffix}", f"order-2{suffix}"
    world = World()
    graph = order_graph(world, f"subgraph-composition{suffix}")
    ann = HumanSignal.approve("ann@acme.io")
    async with open_store(storage) as store:
        print("\n3. The process restarts.  A correction is for the innermost state, which is what the person has read.")
        result = await graph.resume(first, ann.with_override("note", "urgent"), store)
        expect(
            told(result),
            f"{first} refused, invalid_signal: inside 'Contract' / 'Review': state.note: is no field of Review",
        )

        print(
            "\n4. The outer levels are corrected by their paths, in the same answer.  What has run does not run again."
        )
        signal = LevelSignals(ann.with_override("clause", "Acme Corp pays 1200 now")).with_outer((), "note", "urgent")
        result = await graph.resume(first, signal, store)
        shipped = "shipped; 'Acme Corp pays 1200 now' accepted by ann@acme.io; no decision of its own"
        expect(told(result), f"{first} completed: Acme Corp, urgent, {shipped}")
        expect(f"ran: {', '.join(world.ran)}", "ran: Accept, Ship")

        print("\n5. A rejection takes the route of its own boundary.  The graphs around it go on.")
        world.ran.clear()
        result = await graph.resume(second, HumanSignal.reject("bob@acme.io"), store)
        expect(told(result), f"{second} completed: Globex, shipped; struck by bob@acme.io; no decision of its own")
        expect(f"ran: {', '.join(world.ran)}", "ran: Strike, Ship")


def told(result: RunResult[Order]) -> str:
    match result:
        case Interrupted(thread_id, waiting_at=path):
            return f"{thread_id} waits at {'/'.join(path)}"
        case Completed(thread_id, order):
            return f"{thread_id} completed: {', '.join(filter(None, [order.customer, order.note, order.status]))}"
        case Failed(thread_id, code, _, _, detail):
            return f"{thread_id} refused, {code}: {detail}"
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"


def expect(shown: str, expected: str) -> None:
    print(f"   {shown}", flush=True)
    if shown != expected:
        sys.exit(f"The demo failed; expected: {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A boundary inside a subgraph pauses the whole thread.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: a temporary SQLite file)")
    storage = parser.parse_args().storage
    with tempfile.TemporaryDirectory() as folder:
        # In a store of yours the threads stay, each time under new IDs.
        suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
        storage = storage or str(Path(folder) / "orders.db")
        asyncio.run(stop(storage, suffix))
        asyncio.run(answer(storage, suffix))
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
