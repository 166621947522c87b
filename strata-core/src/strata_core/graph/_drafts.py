"""What a builder was told, before anything is checked.

Plain classes here and in the other inner modules: an attrs class takes a millisecond to make, at every import.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

__all__ = ["BoundaryDraft", "Draft", "EdgeDraft", "NodeDraft", "RouteDraft"]


class NodeDraft:
    """One call of `add_node`."""

    __slots__ = ("blocking", "fallback", "handler", "name", "retry")

    def __init__(self, name: Any, handler: Any, retry: Any, fallback: Any, blocking: Any) -> None:
        self.name = name
        self.handler = handler
        self.retry = retry
        self.fallback = fallback
        self.blocking = blocking


class EdgeDraft:
    """One call of `add_edge`."""

    __slots__ = ("source", "target")

    def __init__(self, source: Any, target: Any) -> None:
        self.source = source
        self.target = target


class RouteDraft:
    """One call of `add_conditional_edge`; `is_bare` when its targets were one str instead of a list."""

    __slots__ = ("is_bare", "router", "source", "targets")

    def __init__(self, source: Any, router: Any, targets: Any) -> None:
        self.source = source
        self.router = router
        self.is_bare = isinstance(targets, str)
        self.targets = tuple(targets) if isinstance(targets, Collection) and not self.is_bare else (targets,)


class BoundaryDraft:
    """One call of `add_interrupt_boundary`."""

    __slots__ = ("node", "on_reject")

    def __init__(self, node: Any, on_reject: Any) -> None:
        self.node = node
        self.on_reject = on_reject


class Draft:
    """Everything a builder was told, in order."""

    __slots__ = ("boundaries", "edges", "entries", "nodes", "routes")

    def __init__(self) -> None:
        self.nodes: list[NodeDraft] = []
        self.edges: list[EdgeDraft] = []
        self.routes: list[RouteDraft] = []
        self.boundaries: list[BoundaryDraft] = []
        self.entries: list[Any] = []
