"""From what a builder was told to nodes that lead to each other."""

from __future__ import annotations

from strata_core.graph._drafts import Draft
from strata_core.graph._handlers import inspect_handler
from strata_core.graph._nodes import Node, Pause, Router

__all__ = ["link"]


def link(draft: Draft) -> tuple[Node, dict[str, Node]]:
    """Return the entry and the nodes, by name, of a graph without problems."""
    nodes = {
        node.name: Node(
            node.name,
            inspect_handler(node.handler) if node.body is None else node.body.make(),
            bool(node.blocking),
            node.retry,
        )
        for node in draft.nodes
    }
    for node in draft.nodes:
        if node.fallback is not None:
            nodes[node.name].fallback = nodes[node.fallback]
    for edge in draft.edges:
        nodes[edge.source].next = nodes[edge.target]
    for route in draft.routes:
        targets = {name: nodes[name] for name in route.targets}
        nodes[route.source].router = Router(inspect_handler(route.router), targets)
    for wait in draft.waits:
        delay = inspect_handler(wait.delay) if callable(wait.delay) else wait.delay
        on_reject = None if wait.on_reject is None else nodes[wait.on_reject]
        nodes[wait.node].pause = Pause(wait.kind, wait.event_type, delay, wait.on_timeout, on_reject)
    return nodes[draft.entries[0] if draft.entries else draft.nodes[0].name], nodes
