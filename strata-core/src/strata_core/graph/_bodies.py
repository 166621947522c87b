"""The nodes of a graph that consist of other graphs and handlers: how they are added."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from strata_core.graph._drafts import BodyDraft, Draft, NodeDraft
from strata_core.graph._retry import RetryPolicy
from strata_core.graph._state import state_class

if TYPE_CHECKING:
    from strata_core.graph._compiled import CompiledGraph
    from strata_core.graph._context import NodeContext

__all__ = ["BodyCalls"]

S = TypeVar("S")
C = TypeVar("C")


class BodyCalls(Generic[S]):
    """What a builder offers beyond single nodes."""

    _draft: Draft
    _state_type: Any

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

    def add_parallel_group(
        self,
        name: str,
        branches: Mapping[
            str,
            Callable[[S], S | Awaitable[S]] | Callable[[S, NodeContext[S]], S | Awaitable[S]] | CompiledGraph[S],
        ],
        reducer: Callable[[S, list[S]], S | Awaitable[S]],
        *,
        max_concurrency: int | None = None,
        blocking: Collection[str] = (),
        retry: RetryPolicy | None = None,
        fallback: str | None = None,
    ) -> Self:
        """Add several branches as one node, which run at once, each from the same state.

        Structured: the node is left when every branch has come to its end.  The first that fails fails the node; the
        others are cancelled, and waited for.  So they are when a token, a deadline or the caller's cancellation stops
        the run.  Nothing of a branch is committed before the reducer has made one state of all, so a node that is tried
        again, or recovered, runs all its branches again, each with the idempotency key that it had.

        Args:
            name: The node's name.
            branches: Handlers by their names, as of nodes, each given a copy of the state of its own.  Async ones, and
                those in `blocking`, overlap; ``def`` handlers run on the event loop, one after the other.  Or compiled
                graphs of the same state type, which run without checkpoints of their own; they may hold subgraphs,
                groups and maps, but no wait at any depth.
            reducer: Makes one state of the state before, and the branches' states in the order in which they are
                declared, whichever was first.  ``def`` or ``async def``.
            max_concurrency: How many branches run at once, at most; the others begin in the order of declaration.  None
                for all.
            blocking: Which ``def`` handlers run in a thread, because they block.  A thread cannot be interrupted: when
                the node is to stop, it is waited for, unless the lease or the caller is gone.
            retry: When the node is tried again; `retry_on` is given the error of the branch.
            fallback: The node that takes over from the last committed state when the attempts are used up.
        """
        from strata_core.graph._group import GroupDraft

        draft = GroupDraft(branches, reducer, max_concurrency, blocking, state_class(self._state_type))
        return self._add(name, draft, retry, fallback)

    def add_map(
        self,
        name: str,
        child: CompiledGraph[C],
        items: Callable[[S], Iterable[C] | Awaitable[Iterable[C]]],
        reducer: Callable[[S, list[C]], S | Awaitable[S]],
        *,
        max_concurrency: int | None = None,
        retry: RetryPolicy | None = None,
        fallback: str | None = None,
    ) -> Self:
        """Add a compiled graph as one node that runs it once for each item of a list, at once.

        Structured, as a parallel group: see `add_parallel_group`.  The child runs without checkpoints of its own, and
        sees no decision; it may hold subgraphs, groups and maps, but no wait at any depth.

        Args:
            name: The node's name.
            child: The graph.  Its policy, identity, hooks and clock do not count here.
            items: Makes the states with which the child begins, of a copy of the node's; none are fine.  For the same
                state it must make the same ones in the same order: the idempotency keys of an item's nodes are those of
                its place in the list, also when the node is tried again or recovered.
            reducer: Makes one state of the state before, and the children's last states in the order of the items.
            max_concurrency: How many children are held at once, at most; None for all.
            retry: When the node is tried again, with all items; `retry_on` is given the error of the child's node.
            fallback: The node that takes over from the last committed state when the attempts are used up.
        """
        from strata_core.graph._map import MapDraft

        return self._add(name, MapDraft(child, items, reducer, max_concurrency), retry, fallback)

    def _add(self, name: str, body: BodyDraft, retry: Any, fallback: Any) -> Self:
        self._draft.nodes.append(NodeDraft(name, None, retry, fallback, body=body))
        return self
