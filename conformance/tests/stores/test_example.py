"""The example of README.md, section "Test your application under faults", literally."""

import asyncio

import attrs
import pytest

from strata_conformance.stores import Fault, FaultyStore, RecordingStore
from strata_core import CheckpointPolicy, Completed, StateGraph, open_store


@attrs.frozen
class Order:
    total: int
    charged: int = 0
    mailed: bool = False


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_customer_is_charged_once_whatever_becomes_of_a_save(when, nth):
    charges = []

    def charge(order: Order) -> Order:
        charges.append(order.total)
        return attrs.evolve(order, charged=order.total)

    graph = (
        StateGraph(Order)
        .add_node("Charge", charge)
        .add_node("Mail", lambda order: attrs.evolve(order, mailed=True))
        .add_edge("Charge", "Mail")
        .compile(checkpointing=CheckpointPolicy.EVERY_NODE)
    )

    async def main():
        async with (
            open_store("memory://") as inner,
            FaultyStore(inner, [Fault("save_under_lease", nth, when)]) as faulty,
        ):
            store = RecordingStore(faulty)
            result = await graph.run("order-1", Order(total=30), store)
            return result, store.calls, (await inner.get_log("order-1")).entries

    result, calls, entries = asyncio.run(main())

    assert result == Completed("order-1", Order(total=30, charged=30, mailed=True))
    assert charges == [30]
    assert [entry.checkpoint.status for entry in entries] == ["running", "running", "completed"]
    lost, again = [call for call in calls if call.op == "save_under_lease"][nth - 1 : nth + 1]
    assert lost.error.maybe_written
    assert lost.arguments == again.arguments  # the same write ID, so the store recognises it
