"""The scenario: all that it knows of a store is the URL."""

from __future__ import annotations

import attrs

from strata_core import (
    Cancelled,
    CheckpointPolicy,
    Completed,
    ConflictError,
    Failed,
    GraphIdentity,
    HumanSignal,
    Interrupted,
    NodeContext,
    RunResult,
    StateGraph,
    ThreadQuery,
    ThreadState,
    open_store,
)


@attrs.frozen
class Order:
    customer: str
    amount: float
    status: str = "new"


def prepare(order: Order) -> Order:
    return attrs.evolve(order, status="prepared")


def ship(order: Order, ctx: NodeContext[Order]) -> Order:
    assert ctx.decision is not None  # no route but the approval leads here
    return attrs.evolve(order, status=f"shipped, approved by {ctx.decision.reviewer}")


def cancel(order: Order) -> Order:
    return attrs.evolve(order, status="cancelled")


graph = (
    StateGraph(Order)
    .add_node("Prepare", prepare)
    .add_interrupt_boundary("Prepare", on_reject="Cancel")
    .add_edge("Prepare", "Ship")
    .add_node("Ship", ship)
    .add_node("Cancel", cancel)
    .compile(identity=GraphIdentity("pluggable-storage", "1"), checkpointing=CheckpointPolicy.EVERY_NODE)
)


async def play(url: str, suffix: str) -> list[str]:
    """Play the scenario on a store, and return what was seen, with the same IDs whatever the suffix.

    Args:
        url: The store.
        suffix: What is added to thread IDs and metadata, so that threads of the store are nobody else's.
    """
    acme, globex = f"acme{suffix}", f"globex{suffix}"
    mine = {"scenario": f"pluggable-storage{suffix}"}
    seen: list[str] = []

    def note(text: str) -> None:
        seen.append(text.replace(suffix, "") if suffix else text)

    async with open_store(url) as store:
        for thread_id, amount in [(acme, 4200.50), (globex, 98_000.00)]:
            order = Order(thread_id.removesuffix(suffix).capitalize(), amount)
            note(told(await graph.run(thread_id, order, store, metadata=mine, if_exists="error")))
        note(told(await graph.run(acme, Order("Acme", 1.0), store, if_exists="error")))

    # Another process, as far as the store can tell.
    async with open_store(url) as store:
        page = await store.list_threads(ThreadQuery(states={ThreadState.INTERRUPTED}, metadata=mine))
        note("waiting: " + ", ".join(sorted(thread.thread_id for thread in page.threads)))
        answer = HumanSignal.approve("ann@acme.io")
        note(told(await graph.resume(acme, answer.with_override("amount", "4150.25"), store)))
        note(told(await graph.resume(acme, answer.with_override("amount", 4150.25), store)))
        note(told(await graph.resume(acme, answer, store)))
        note(told(await graph.resume(globex, HumanSignal.reject("bob@acme.io"), store)))
        for entry in (await store.get_log(acme)).entries:
            at = entry.checkpoint
            note(f"{acme} #{entry.sequence}: {at.state} {at.suspended_node or '-'}, {at.frozen_state['amount']}")
            if entry.sequence == 0:
                first = entry
        try:
            await store.save_if_latest(first.checkpoint, first.revision)
        except ConflictError:
            note("a save that expects row 0 is refused")
        return seen


def told(result: RunResult[Order]) -> str:
    match result:
        case Interrupted(thread_id, node):
            return f"{thread_id} waits at {node}"
        case Completed(thread_id, order):
            return f"{thread_id} completed: {order.customer}, {order.amount:.2f}, {order.status}"
        case Failed(thread_id, code, _, _, detail):
            return f"{thread_id} refused, {code}" + (f": {detail}" if detail else "")
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"
