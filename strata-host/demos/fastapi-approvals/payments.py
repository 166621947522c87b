"""The graph: prepare a transfer, wait a week for a person, then send or cancel it.

The state says by itself what a good transfer is, so that an override which would make a bad one is refused, and the
transfer still waits.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Final

import attrs

from strata_core import CheckpointPolicy, CompiledGraph, GraphIdentity, NodeContext, StateGraph

IDENTITY: Final = GraphIdentity("approvals", "1")


@attrs.frozen
class Transfer:
    beneficiary: str = attrs.field(validator=attrs.validators.min_len(1))
    amount: Decimal = attrs.field(validator=attrs.validators.gt(Decimal(0)))
    status: str = "new"
    approved_by: str | None = None


class Bank:
    """Stands for the bank, which sends one payment a key, however often it is asked."""

    def __init__(self) -> None:
        self.payments: dict[str, Transfer] = {}

    async def send(self, key: str, transfer: Transfer) -> str:
        self.payments.setdefault(key, transfer)
        return f"TX-{key[:6]}"


def transfer_graph(bank: Bank) -> CompiledGraph[Transfer]:
    def prepare(transfer: Transfer) -> Transfer:
        return attrs.evolve(transfer, status="awaiting approval")

    async def execute(transfer: Transfer, ctx: NodeContext[Transfer]) -> Transfer:
        if ctx.decision is None or not ctx.decision.is_approved:
            raise RuntimeError("a transfer must not be sent without an approval")
        reference = await bank.send(ctx.idempotency_key, transfer)
        return attrs.evolve(transfer, status=f"sent as {reference}", approved_by=ctx.decision.reviewer)

    def cancel(transfer: Transfer, ctx: NodeContext[Transfer]) -> Transfer:
        assert ctx.decision is not None  # a reject route is taken by a decision only
        return attrs.evolve(transfer, status=f"cancelled by {ctx.decision.reviewer}")

    def expire(transfer: Transfer) -> Transfer:
        return attrs.evolve(transfer, status="expired, nobody answered")

    return (
        StateGraph(Transfer)
        .add_node("Prepare", prepare)
        .add_interrupt_boundary("Prepare", on_reject="Cancel", timeout=timedelta(days=7), on_timeout="Expire")
        .add_node("Execute", execute)
        .add_edge("Prepare", "Execute")
        .add_node("Cancel", cancel)
        .add_node("Expire", expire)
        .compile(identity=IDENTITY, checkpointing=CheckpointPolicy.EVERY_NODE)
    )
