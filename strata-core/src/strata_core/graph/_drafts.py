"""What a builder was told, before anything is checked.

Plain classes here and in the other inner modules: an attrs class takes a millisecond to make, at every import.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from strata_core.graph._nodes import Body
    from strata_core.graph._problems import GraphProblem
    from strata_core.records import WaitKind

__all__ = ["BodyDraft", "Draft", "EdgeDraft", "NodeDraft", "RouteDraft", "WaitDraft"]


class BodyDraft(Protocol):
    """What a node is to consist of that is no single handler."""

    def find_problems(self, node: Any) -> Iterable[GraphProblem]:
        """Yield what is wrong with it, as the body of that node."""

    def make(self) -> Body:
        """Return the body; it has no problems."""


class NodeDraft:
    """One call of `add_node`, or of a method that adds a node with a body; that has no handler."""

    __slots__ = ("blocking", "body", "fallback", "handler", "name", "retry")

    def __init__(
        self, name: Any, handler: Any, retry: Any, fallback: Any, blocking: Any = False, body: BodyDraft | None = None
    ) -> None:
        self.name = name
        self.body = body
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
        if isinstance(targets, AbstractSet):  # whose order is another one in the next process
            targets = sorted(targets, key=str)
        self.targets = tuple(targets) if isinstance(targets, Collection) and not self.is_bare else (targets,)


class WaitDraft:
    """One call of `add_interrupt_boundary`, `add_wait_for_event` or `add_timer`.

    `delay` is a timer's delay, or how long until another wait times out.
    """

    __slots__ = ("delay", "event_type", "kind", "node", "on_reject", "on_timeout")

    def __init__(
        self,
        kind: WaitKind,
        node: Any,
        delay: Any,
        on_timeout: Any = None,
        on_reject: Any = None,
        event_type: Any = None,
    ) -> None:
        self.kind = kind
        self.node = node
        self.delay = delay
        self.on_timeout = on_timeout
        self.on_reject = on_reject
        self.event_type = event_type


class Draft:
    """Everything a builder was told, in order."""

    __slots__ = ("edges", "entries", "nodes", "routes", "waits")

    def __init__(self) -> None:
        self.nodes: list[NodeDraft] = []
        self.edges: list[EdgeDraft] = []
        self.routes: list[RouteDraft] = []
        self.waits: list[WaitDraft] = []
        self.entries: list[Any] = []
