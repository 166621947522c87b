"""What a builder was told, before anything is checked."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["BoundaryDraft", "Draft", "EdgeDraft", "NodeDraft", "RouteDraft"]


@attrs.frozen
class NodeDraft:
    """One call of `add_node`."""

    name: Any
    handler: Any
    retry: Any
    fallback: Any
    blocking: Any


@attrs.frozen
class EdgeDraft:
    """One call of `add_edge`."""

    source: Any
    target: Any


@attrs.frozen
class RouteDraft:
    """One call of `add_conditional_edge`."""

    source: Any
    router: Any
    targets: tuple[Any, ...]


@attrs.frozen
class BoundaryDraft:
    """One call of `add_interrupt_boundary`."""

    node: Any
    on_reject: Any


@attrs.define
class Draft:
    """Everything a builder was told, in order."""

    nodes: list[NodeDraft] = attrs.field(factory=list)
    edges: list[EdgeDraft] = attrs.field(factory=list)
    routes: list[RouteDraft] = attrs.field(factory=list)
    boundaries: list[BoundaryDraft] = attrs.field(factory=list)
    entries: list[Any] = attrs.field(factory=list)
