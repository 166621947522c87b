"""When a run writes checkpoints."""

from __future__ import annotations

from enum import StrEnum

from strata_core._validation import shown
from strata_core.errors import InvalidInputError

__all__ = ["CheckpointPolicy", "check_policy"]


class CheckpointPolicy(StrEnum):
    """When a run writes checkpoints; chosen when a graph is compiled.

    Attributes:
        BOUNDARIES: Only where a run stops: at a boundary, a failure, a cancellation.  A run that completes writes
            nothing (but see ``completion_record`` of `StateGraph.compile`), so a straight run leaves nothing behind,
            and a thread that waited and went on stays `resumed` for good.  A run whose process dies is lost.
        EVERY_NODE: Also before the first node, after every node that commits, and when the run completes.  The log then
            shows each step, finished threads are `completed` and can be purged, and a thread whose process died can be
            recovered, at the cost of one save a node.  A lease keeps other writers out.  For anything that must not be
            lost.
    """

    BOUNDARIES = "boundaries"
    EVERY_NODE = "every_node"


def check_policy(checkpointing: object) -> None:
    """Refuse what is no policy.

    Raises:
        InvalidInputError: It is something else.
    """
    if not isinstance(checkpointing, CheckpointPolicy):
        names = " or ".join(f"CheckpointPolicy.{policy.name}" for policy in CheckpointPolicy)
        raise InvalidInputError("checkpointing", f"must be {names}, not {shown(checkpointing)}")
