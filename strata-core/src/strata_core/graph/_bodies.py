"""The nodes of a graph that consist of other graphs and handlers: how they are added."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from strata_core.graph._drafts import BodyDraft, Draft, NodeDraft
from strata_core.graph._retry import RetryPolicy

if TYPE_CHECKING:
    from strata_core.graph._compiled import CompiledGraph

__all__ = ["BodyCalls"]

S = TypeVar("S")
C = TypeVar("C")


class BodyCalls(Generic[S]):
    """What a builder offers beyond single nodes."""

    _draft: Draft

    def add_subgraph(
        self,
        name: str,
        child: CompiledGraph[C],
        *,
        enter: Callable[[S], C | Awaitable[C]],
        leave: Callable[[S, C], S | Awaitable[S]],
        retry: RetryPolicy | None = None,
        fallback: str | None = None,
    ) -> Self:
        """Add a compiled graph as one node, to any depth.

        A boundary, an event wait or a timer inside stops the whole thread, whose checkpoint then carries the child's.
        A resume goes back inside: no node that has committed there runs again.

        What the child was compiled with counts as far as it is about its states: its type, converter, identity and
        ``upcast``.  The checkpoint policy, the lease, the completion record and the clock are the outermost graph's.
        So are the hooks: a child with `on_resume` or `on_interrupted` is refused, rather than never asked.

        Args:
            name: The node's name.
            child: The graph.  It is not changed, and may be used elsewhere.
            enter: Makes the child's first state of the state that the node is given.  Like `leave` it gets a copy, may
                be ``def`` or ``async def``, and when it raises the node has failed.
            leave: Makes the node's state of the one that the node was given, and the child's last one.  The thread may
                have waited for days in between.  When it has failed and is tried again, no node of the child runs
                again: resume the thread with overrides to correct the child's last state.
            retry: When the node is tried again after something inside has failed for good.  Another attempt goes on
                inside at the node that failed, from the child's last committed state; `retry_on` is given the error of
                that node.
            fallback: The node that takes over when the attempts are used up, from the last state that was committed
                around the child, whose own progress is given up.
        """
        from strata_core.graph._subgraph import SubgraphDraft

        return self._add(name, SubgraphDraft(child, enter, leave), retry, fallback)

    def _add(self, name: str, body: BodyDraft, retry: Any, fallback: Any) -> Self:
        self._draft.nodes.append(NodeDraft(name, None, retry, fallback, body=body))
        return self
