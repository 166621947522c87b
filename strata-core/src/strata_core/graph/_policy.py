"""When a run writes checkpoints."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CheckpointPolicy"]


class CheckpointPolicy(StrEnum):
    """When a run writes checkpoints; chosen when a graph is compiled."""

    BOUNDARIES = "boundaries"
    """Only where a run stops: at a boundary, a failure, a cancellation.  A run that completes writes nothing."""
    EVERY_NODE = "every_node"
    """Also before the first node, after every node that commits, and when the run completes.

    A thread then survives the death of its process, at the cost of one save a node; a lease keeps other writers out.
    """
