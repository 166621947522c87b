"""The graphs of the benchmarks, as Strata's."""

from __future__ import annotations

import itertools
from typing import Any

from workload import NODES, Order, advance

from strata_core import CheckpointPolicy, CompiledGraph, HumanSignal, StateGraph


def build(checkpointing: CheckpointPolicy = CheckpointPolicy.EVERY_NODE) -> CompiledGraph[Order]:
    """Return ten nodes in a row."""
    graph = StateGraph(Order)
    for name in NODES:
        graph.add_node(name, advance)
    for source, target in itertools.pairwise(NODES):
        graph.add_edge(source, target)
    return graph.compile(checkpointing=checkpointing)


async def advance_async(order: Order) -> Order:
    """Do the work of a node, in a task of its own."""
    return advance(order)


def build_group(branches: int) -> CompiledGraph[Order]:
    """Return one group of branches."""
    handlers = {str(number): advance_async for number in range(branches)}
    return StateGraph(Order).add_parallel_group("group", handlers, lambda _, results: results[-1]).compile()


def build_waiting(checkpointing: CheckpointPolicy) -> CompiledGraph[Order]:
    """Return a node that prepares and waits for a person, and one that acts."""
    graph = StateGraph(Order).add_node("prepare", advance).add_node("act", advance)
    return graph.add_edge("prepare", "act").add_interrupt_boundary("prepare").compile(checkpointing=checkpointing)


async def run(graph: CompiledGraph[Order], thread: str, store: Any = None) -> None:
    """Run to the end, or to the boundary."""
    await graph.run(thread, Order(), store)


async def resume(graph: CompiledGraph[Order], thread: str, store: Any) -> None:
    """Answer the boundary."""
    await graph.resume(thread, HumanSignal.approve("bench"), store)
