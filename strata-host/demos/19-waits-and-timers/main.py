"""Orders wait for an event, for a person who has two days, and for a time; one is ended.

Days pass in a moment, on a clock that the demo moves.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import attrs

from strata_core import (
    Cancelled,
    CheckpointPolicy,
    CompiledGraph,
    Completed,
    EventSignal,
    Failed,
    GraphIdentity,
    HumanSignal,
    Interrupted,
    LevelSignals,
    NodeContext,
    RunResult,
    StateGraph,
    WaitKind,
    open_store,
)
from strata_core.testing import FakeClock


@attrs.frozen
class Order:
    customer: str
    paid: float = 0
    status: str = "new"


def invoice(order: Order) -> Order:
    return attrs.evolve(order, status="invoiced")


def pack(order: Order) -> Order:
    return attrs.evolve(order, status=f"packed for {order.paid:.2f}")


def ship(order: Order, ctx: NodeContext[Order]) -> Order:
    assert ctx.decision is not None  # no route but the approval leads here
    return attrs.evolve(order, status=f"shipped, approved by {ctx.decision.reviewer}")


def ask(order: Order) -> Order:
    return attrs.evolve(order, status="asked for feedback")


def escalate(order: Order) -> Order:
    return attrs.evolve(order, status="escalated: nobody reviewed it")


def order_graph(clock: FakeClock, suffix: str) -> CompiledGraph[Order]:
    return (
        StateGraph(Order)
        .add_node("Invoice", invoice)
        .add_wait_for_event("Invoice", "payment.received")
        .add_edge("Invoice", "Pack")
        .add_node("Pack", pack)
        .add_interrupt_boundary("Pack", timeout=timedelta(days=2), on_timeout="Escalate")
        .add_edge("Pack", "Ship")
        .add_node("Ship", ship)
        .add_timer("Ship", timedelta(days=14))
        .add_edge("Ship", "AskForFeedback")
        .add_node("AskForFeedback", ask)
        .add_node("Escalate", escalate)
        .compile(
            # A wake is for all due threads of this graph; in a store of yours, for those of this very demo.
            identity=GraphIdentity(f"waits-and-timers{suffix}", "1"),
            checkpointing=CheckpointPolicy.EVERY_NODE,
            clock=clock,
        )
    )


async def demonstrate(storage: str, suffix: str) -> None:
    clock = FakeClock()
    graph = order_graph(clock, suffix)
    first, second, third = (f"order-{number}{suffix}" for number in (1, 2, 3))
    paid = EventSignal("payment.received")
    ann = HumanSignal.approve("ann@acme.io")
    async with open_store(storage) as store:
        print(f"1. It is {clock.now():%d %B}.  Three orders are invoiced, and wait for an event.")
        for thread_id, customer in [(first, "Acme Corp"), (second, "Globex"), (third, "Initech")]:
            result = await graph.run(thread_id, Order(customer), store, if_exists="error")
            expect(result, f"{thread_id} waits at Invoice for payment.received")

        print("\n2. A person is no answer to that, and neither is another event.")
        expect(await graph.resume(first, ann, store), f"{first} refused: wrong_wait")
        expect(await graph.signal(first, EventSignal("payment.failed"), store), f"{first} refused: wrong_event")

        print("\n3. Two payments come, and say how much.  Now a person has two days.")
        result = await graph.signal(first, paid.with_override("paid", 4200.50), store)
        expect(result, f"{first} waits at Pack for a person, until 03 January")
        result = await graph.signal(second, paid.with_override("paid", 310.0), store)
        expect(result, f"{second} waits at Pack for a person, until 03 January")
        expect(await graph.signal(second, paid, store), f"{second} refused: wrong_wait")  # the webhook came twice

        print("\n4. One is approved.  It is shipped, and a timer waits for two weeks.")
        expect(await graph.resume(first, ann, store), f"{first} waits at Ship for a time, until 15 January")
        expect(await graph.resume(first, LevelSignals.due(), store), f"{first} refused: not_due")

        async def wake(days: int, expected: str) -> None:
            clock.advance(timedelta(days=days))
            woken = (await graph.wake_due(store)).results.values()
            expect(f"{clock.now():%d %B}: {', '.join(map(told, woken)) or 'nothing is due'}", expected)

        print("\n5. Days pass.  Whatever is due goes on when somebody calls wake_due: a cron job, say.")
        await wake(1, "02 January: nothing is due")
        await wake(1, f"03 January: {second} completed: Globex, escalated: nobody reviewed it")
        await wake(12, f"15 January: {first} completed: Acme Corp, asked for feedback")

        print("\n6. The third order is never paid.  It is ended, and takes no payment any more.")
        result = await graph.end(third, store, by="ops@acme.io", reason="not paid in two weeks")
        expect(result, f"{third} cancelled: ended")
        expect(await graph.signal(third, paid, store), f"{third} refused: ended")


def told(result: RunResult[Order]) -> str:
    match result:
        case Interrupted(thread_id, node, wait=wait) if wait is not None:
            what = {WaitKind.EVENT: wait.event_type, WaitKind.PERSON: "a person", WaitKind.TIMER: "a time"}[wait.kind]
            until = "" if wait.due_at is None else f", until {wait.due_at:%d %B}"
            return f"{thread_id} waits at {node} for {what}{until}"
        case Interrupted(thread_id, node):
            return f"{thread_id} waits at {node} for a person"
        case Completed(thread_id, order):
            return f"{thread_id} completed: {order.customer}, {order.status}"
        case Failed(thread_id, code):
            return f"{thread_id} refused: {code}"
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"


def expect(result: RunResult[Order] | str, expected: str) -> None:
    shown = result if isinstance(result, str) else told(result)
    print(f"   {shown}", flush=True)
    if shown != expected:
        sys.exit(f"The demo failed; expected: {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Orders wait for an event, for a person, and for a time.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: a temporary SQLite file)")
    storage = parser.parse_args().storage
    with tempfile.TemporaryDirectory() as folder:
        # In a store of yours the threads stay, each time under new IDs.
        suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
        asyncio.run(demonstrate(storage or str(Path(folder) / "orders.db"), suffix))
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
