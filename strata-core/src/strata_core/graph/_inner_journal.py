"""The journal of a level inside a subgraph node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from strata_core.graph._journal import Journal, Position
from strata_core.graph._plan import Plan
from strata_core.records import CheckpointStatus

if TYPE_CHECKING:
    from strata_core.graph._level import Level

__all__ = ["InnerJournal"]

C = TypeVar("C")


class InnerJournal(Journal[C]):
    """Writes what happens inside a subgraph node into rows of the level around it, which stands at that node.

    Whether it writes at all is up to the outermost journal.  The end of the child graph is no row: it is one with the
    commit of the node around it.

    Args:
        plan: The child graph.
        outer: The level around it.
        name: The subgraph's node.
    """

    def __init__(self, plan: Plan[C], outer: Level[Any], name: str) -> None:
        super().__init__(plan, outer.thread_id, {}, outer.trail)
        self._clock = outer.clock
        self._outer = outer
        self._name = name
        self.every_node = outer.journal.every_node
        self.is_stored = outer.journal.is_stored

    async def commit(self, at: Position[C]) -> None:
        await self._outer.journal.commit(self._around(CheckpointStatus.RUNNING, at))

    async def halt(self, status: CheckpointStatus, at: Position[C], extra: Mapping[str, str] | None = None) -> None:
        if self.is_stored:
            await self._outer.journal.halt(status, self._around(status, at), extra)

    def _around(self, status: CheckpointStatus, at: Position[C]) -> Position[Any]:
        return Position(self._name, self._name, self._outer.state, at.wait, self.record(status, at))
