"""A graph that runs beside others, without checkpoints of its own."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from strata_core.graph._context import Trail, visit_key
from strata_core.graph._fan_out import FanOut
from strata_core.graph._journal import Journal
from strata_core.graph._level import Level
from strata_core.graph._plan import Plan
from strata_core.graph._results import Completed

__all__ = ["walk_apart"]

C = TypeVar("C")


async def walk_apart(outer: Level[Any], fan_out: FanOut[Any], plan: Plan[C], state: C, path: str) -> C:
    """Run a graph that never waits from its entry to its end, and return its last state.

    It has a trail of its own, because its nodes commit while those beside it do; whoever runs it again, from the same
    commit of the level around it, finds the same one.

    Args:
        outer: The level around it.
        fan_out: What it runs in.
        plan: The graph.
        state: The state it begins with.
        path: What leads to it, for `visit_key`.

    Raises:
        LevelFailedError: A node in it has failed.
        StoppedError: The run has to stop.
    """
    anchor = bytes.fromhex(visit_key(outer.thread_id, path, outer.trail)) if plan.uses_context else b""
    journal: Journal[C] = Journal(plan, outer.thread_id, {}, Trail(anchor))
    level = Level(
        plan, outer.thread_id, journal, fan_out, outer.shown_metadata, outer.clock, f"{path}\0", outer.emitter
    )
    level.node, level.state = plan.entry, state
    return cast("Completed[C]", await level.walk()).state
