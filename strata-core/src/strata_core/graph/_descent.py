"""Where a stopped thread goes on, on every level of the subgraphs that it stopped in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import named, refuse, refuse_foreign
from strata_core.graph._results import Failed, FailureCode
from strata_core.graph._subgraph import Subgraph
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision

__all__ = ["Floor", "Place", "descend", "innermost", "levels"]

S = TypeVar("S")


class Floor:
    """One level of a saved thread: a record, and the graph that it is a record of.

    Attributes:
        plan: The graph.
        checkpoint: The record.
        around: The subgraph's node in the graph around it; None for the outermost one.
        path: The names of the subgraph nodes that lead here.
    """

    __slots__ = ("around", "checkpoint", "path", "plan")

    def __init__(self, plan: Plan[Any], checkpoint: Checkpoint, around: Node | None, path: tuple[str, ...]) -> None:
        self.plan = plan
        self.checkpoint = checkpoint
        self.around = around
        self.path = path


class Place(Generic[S]):
    """Where a thread goes on, on one level.

    Attributes:
        plan: The graph.
        around: The subgraph's node in the graph around it; None for the outermost one.
        node: Where it goes on; None when nothing is left to do on this level.
        state: The state.
        decision: The decision in effect on this level.
    """

    __slots__ = ("around", "decision", "node", "plan", "state")

    def __init__(
        self, plan: Plan[S], around: Node | None, node: Node | None, state: S, decision: HumanDecision | None
    ) -> None:
        self.plan = plan
        self.around = around
        self.node = node
        self.state = state
        self.decision = decision


def levels(checkpoint: Checkpoint) -> Iterator[Checkpoint]:
    """Yield a checkpoint and those nested in it, outermost first."""
    level: Checkpoint | None = checkpoint
    while level is not None:
        yield level
        level = level.nested


def innermost(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint of the innermost level."""
    *_, last = levels(checkpoint)
    return last


def descend(plan: Plan[S], checkpoint: Checkpoint) -> Sequence[Floor] | Failed:
    """Return the levels that a thread stands on, outermost first; or why this graph has no such levels."""
    floors = [Floor(plan, checkpoint, None, ())]
    for nested in levels(checkpoint):
        if nested is checkpoint:
            continue
        outer = floors[-1]
        node = _subgraph_node(outer)
        path = (*outer.path, outer.checkpoint.suspended_node or "" if node is None else node.name)
        if node is None or not isinstance(node.body, Subgraph):
            text = (
                f"stopped inside the subgraph {named(path)}, which this graph does not have; "
                "keep a subgraph of that name for the threads that wait, or end the thread with graph.end()"
            )
            return refuse(checkpoint.thread_id, FailureCode.UNKNOWN_NODE, text)
        child = node.body.child
        foreign = refuse_foreign(child, nested, path)
        if foreign is not None:
            return foreign
        floors.append(Floor(child, nested, node, path))
    return floors


def _subgraph_node(floor: Floor) -> Node | None:
    """Return the subgraph's node that a level stands in: where it stopped, and where it goes on."""
    checkpoint = floor.checkpoint
    names = [checkpoint.suspended_node, checkpoint.next_node]
    if checkpoint.status is CheckpointStatus.RUNNING:  # other engines may tell there which node committed last
        names.reverse()
    nodes = [floor.plan.nodes.get(name or "") for name in names]
    return next((node for node in nodes if node is not None and isinstance(node.body, Subgraph)), None)
