"""The graph: prepare a wire transfer, wait for a person, then send or cancel it.

The amount is a float, a JSON number in the checkpoint: so a reviewer's correction has to be a number, and the text
"4150.25" is refused.  A Decimal would have to be stored as text, where a text that is no amount looks just as good.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from strata_core import CheckpointPolicy, CompiledGraph, GraphIdentity, NodeContext, StateGraph


@attrs.frozen
class WireTransfer:
    beneficiary: str
    amount: float
    currency: str = "EUR"
    invoice_generated: bool = False
    status: str = "new"
    approved_by: str | None = None


class Bank:
    """Sends money by a line in a file; a repeated key sends nothing twice."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger

    def send(self, key: str, transfer: WireTransfer) -> str:
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        sent = [json.loads(line) for line in lines]
        for number, payment in enumerate(sent, start=1):
            if payment["key"] == key:
                return f"TX-{number:04}"
        payment = {"key": key, "to": transfer.beneficiary, "amount": transfer.amount, "currency": transfer.currency}
        with self._ledger.open("a") as ledger:
            ledger.write(json.dumps(payment) + "\n")
        return f"TX-{len(sent) + 1:04}"


def wire_transfer_graph(bank: Bank) -> CompiledGraph[WireTransfer]:
    def prepare(transfer: WireTransfer) -> WireTransfer:
        return attrs.evolve(transfer, invoice_generated=True, status="awaiting approval")

    def execute(transfer: WireTransfer, ctx: NodeContext[WireTransfer]) -> WireTransfer:
        if ctx.decision is None or not ctx.decision.is_approved:
            raise RuntimeError("a transfer must not be sent without an approval")
        reference = bank.send(ctx.idempotency_key, transfer)
        return attrs.evolve(transfer, status=f"sent ({reference})", approved_by=ctx.decision.reviewer)

    def cancel(transfer: WireTransfer, ctx: NodeContext[WireTransfer]) -> WireTransfer:
        reviewer = "nobody" if ctx.decision is None else ctx.decision.reviewer
        return attrs.evolve(transfer, status=f"cancelled by {reviewer}")

    return (
        StateGraph(WireTransfer)
        .add_node("PrepareWireTransfer", prepare)
        .add_interrupt_boundary("PrepareWireTransfer", on_reject="CancelWireTransfer")
        .add_node("ExecuteWireTransfer", execute)
        .add_node("CancelWireTransfer", cancel)
        .add_edge("PrepareWireTransfer", "ExecuteWireTransfer")
        .compile(identity=GraphIdentity("wire-transfer", "1"), checkpointing=CheckpointPolicy.EVERY_NODE)
    )
