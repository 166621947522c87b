"""The graph that the processes share."""

import attrs

from strata_core import CheckpointPolicy, CompiledGraph, StateGraph


@attrs.frozen
class Wire:
    amount: float = 0.0
    status: str = "new"


def build(policy: CheckpointPolicy) -> CompiledGraph[Wire]:
    graph = StateGraph(Wire)
    graph.add_node("Prepare", lambda state: attrs.evolve(state, status="waiting"))
    graph.add_node("Send", lambda state: attrs.evolve(state, status="sent"))
    graph.add_edge("Prepare", "Send").add_interrupt_boundary("Prepare")
    return graph.compile(checkpointing=policy)
