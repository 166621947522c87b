"""Two wire transfers wait for a person while the process restarts.

Shows a boundary with a reject route, a refused string override, and an approval with a typed override, all after
a simulated restart: the store is closed, and another one is opened on the same file.
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
    Completed,
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
class WireTransfer:
    beneficiary: str
    amount: float
    status: str = "new"


def prepare(transfer: WireTransfer) -> WireTransfer:
    return attrs.evolve(transfer, status="awaiting approval")


def execute(transfer: WireTransfer, ctx: NodeContext[WireTransfer]) -> WireTransfer:
    if ctx.decision is None or not ctx.decision.is_approved:
        raise RuntimeError("a transfer must not be sent without an approval")
    # Here the bank would be called, with ctx.idempotency_key.
    return attrs.evolve(transfer, status=f"sent, approved by {ctx.decision.reviewer}")


def cancel(transfer: WireTransfer, ctx: NodeContext[WireTransfer]) -> WireTransfer:
    assert ctx.decision is not None  # a reject route is taken by a decision only
    return attrs.evolve(transfer, status=f"cancelled by {ctx.decision.reviewer}")


graph = (
    StateGraph(WireTransfer)
    .add_node("PrepareWireTransfer", prepare)
    .add_interrupt_boundary("PrepareWireTransfer", on_reject="CancelWireTransfer")
    .add_node("ExecuteWireTransfer", execute)
    .add_edge("PrepareWireTransfer", "ExecuteWireTransfer")
    .add_node("CancelWireTransfer", cancel)
    .compile(identity=GraphIdentity("wire-transfer", "1"), checkpointing=CheckpointPolicy.EVERY_NODE)
)


async def freeze(storage: str, suffix: str) -> None:
    print("1. Two transfers are prepared.  Each stops at its boundary, and nothing of it runs on.")
    batch = {"batch": f"05{suffix}"}
    async with open_store(storage) as store:
        for name, transfer in [
            ("wire-acme", WireTransfer("Acme Corp", 4200.50)),
            ("wire-globex", WireTransfer("Globex", 98_000.00)),
        ]:
            result = await graph.run(name + suffix, transfer, store, metadata=batch, if_exists="error")
            expect(told(result), f"{name}{suffix} waits at PrepareWireTransfer, then ExecuteWireTransfer")


async def answer(storage: str, suffix: str) -> None:
    acme, globex = f"wire-acme{suffix}", f"wire-globex{suffix}"
    jdoe = HumanSignal.approve("jdoe@acme.io")
    waiting = ThreadQuery(states={ThreadState.INTERRUPTED}, metadata={"batch": f"05{suffix}"})
    async with open_store(storage) as store:

        async def listed() -> str:
            page = await store.list_threads(waiting)
            return "waiting: " + ", ".join(sorted(thread.thread_id for thread in page.threads))

        print("\n2. The process restarts: a new store on the same file finds what waits.")
        expect(await listed(), f"waiting: {acme}, {globex}")

        print("\n3. A reviewer corrects the amount, but as text.  That does not fit, and the transfer still waits.")
        result = await graph.resume(acme, jdoe.with_field_override("amount", "4150.25"), store)
        expect(told(result), f"{acme} refused, invalid_signal: state.amount: must be a number, not str")
        expect(await listed(), f"waiting: {acme}, {globex}")

        print("\n4. As a number it fits, and the transfer is sent.")
        result = await graph.resume(acme, jdoe.with_override("amount", 4150.25), store)
        expect(told(result), f"{acme} completed: 4150.25 to Acme Corp, sent, approved by jdoe@acme.io")

        print("\n5. It is answered once: a second answer is refused.")
        result = await graph.resume(acme, HumanSignal.approve("mallory"), store)
        expect(told(result), f"{acme} refused, already_resumed")

        print("\n6. The other transfer is rejected, and takes its reject route.")
        result = await graph.resume(globex, HumanSignal.reject("cfo@acme.io"), store)
        expect(told(result), f"{globex} completed: 98000.00 to Globex, cancelled by cfo@acme.io")


def told(result: RunResult[WireTransfer]) -> str:
    match result:
        case Interrupted(thread_id, node, following):
            return f"{thread_id} waits at {node}, then {following}"
        case Completed(thread_id, transfer):
            return f"{thread_id} completed: {transfer.amount:.2f} to {transfer.beneficiary}, {transfer.status}"
        case Failed(thread_id, code, _, _, detail):
            return f"{thread_id} refused, {code}" + (f": {detail}" if detail else "")
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"


def expect(shown: str, expected: str) -> None:
    print(f"   {shown}", flush=True)
    if shown != expected:
        sys.exit(f"The demo failed; expected: {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Two wire transfers wait for a person while the process restarts.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: a temporary SQLite file)")
    storage = parser.parse_args().storage
    with tempfile.TemporaryDirectory() as folder:
        # In a store of yours the threads stay, each time under new IDs.
        suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
        storage = storage or str(Path(folder) / "transfers.db")
        asyncio.run(freeze(storage, suffix))
        asyncio.run(answer(storage, suffix))
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
