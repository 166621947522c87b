"""The graphs of the benchmarks, as LangGraph's."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from workload import NODES, OrderDict, advance_dict, order_dict


def build(saver: Any = None) -> Any:
    """Return ten nodes in a row."""
    graph = StateGraph(OrderDict)
    for name, source in zip(NODES, [START, *NODES], strict=False):
        graph.add_node(name, advance_dict)
        graph.add_edge(source, name)
    graph.add_edge(NODES[-1], END)
    return graph.compile(checkpointer=saver)


def build_waiting(saver: Any) -> Any:
    """Return a node that prepares, one that waits for a person, and one that acts."""

    def ask(state: OrderDict) -> dict[str, object]:
        return {"title": interrupt("approve?")}

    graph = StateGraph(OrderDict)
    graph.add_node("prepare", advance_dict)
    graph.add_node("ask", ask)
    graph.add_node("act", advance_dict)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "ask")
    graph.add_edge("ask", "act")
    graph.add_edge("act", END)
    return graph.compile(checkpointer=saver)


async def run(graph: Any, thread: str) -> None:
    """Run to the end, or to the next question, with a durable write after every step."""
    config = {"configurable": {"thread_id": thread}}
    await graph.ainvoke(order_dict(), config, durability="sync")


async def resume(graph: Any, thread: str) -> None:
    """Answer the question."""
    config = {"configurable": {"thread_id": thread}}
    await graph.ainvoke(Command(resume="yes"), config, durability="sync")
