"""The nodes of a compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from strata_core.graph._handlers import Handler
from strata_core.graph._retry import RetryPolicy
from strata_core.records import WaitKind

if TYPE_CHECKING:
    from strata_core.graph._level import Level
    from strata_core.graph._plan import Plan

__all__ = ["Body", "Node", "Pause", "Router"]


class Body(Protocol):
    """What a node consists of that is no single handler: a subgraph, the branches of a group, the items of a map."""

    @property
    def uses_context(self) -> bool:
        """Whether anything in it is given a context."""

    def waits(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths to the nodes in it after which a thread waits."""

    def describe(self, define: Callable[[Plan[Any]], dict[str, Any]]) -> dict[str, Any]:
        """Return what its node has in a definition beyond what every node has; `define` does so for a graph."""

    async def attempt(self, level: Level[Any], node: Node) -> Any:
        """Run it once, as that node of a level, and return the node's state.

        Raises:
            LevelFailedError: It has failed; another attempt may follow.
            PausedError: The thread waits inside.
            StoppedError: The run has to stop.
        """


class Router:
    """A conditional way on: a function that names one of its targets."""

    __slots__ = ("handler", "targets")

    def __init__(self, handler: Handler, targets: Mapping[str, Node]) -> None:
        self.handler = handler
        self.targets = targets


class Pause:
    """A stop after a node.

    Attributes:
        kind: What the thread waits for.
        event_type: The event, for an event wait.
        delay: How long a timer waits, or the function that tells; for an event or a person, how long until the wait
            times out, None for never.
        on_timeout: The node at which it goes on then; None to end the thread.
        on_reject: Where a person's rejection goes on; None for the next node.
    """

    __slots__ = ("delay", "event_type", "kind", "on_reject", "on_timeout")

    def __init__(
        self,
        kind: WaitKind,
        event_type: str | None,
        delay: timedelta | Handler | None,
        on_timeout: str | None,
        on_reject: Node | None,
    ) -> None:
        self.kind = kind
        self.event_type = event_type
        self.delay = delay
        self.on_timeout = on_timeout
        self.on_reject = on_reject


class Node:
    """A node, linked to where it goes on.  Compiled graphs are shared: nothing here changes after the compilation.

    Attributes:
        name: Its name.
        handler: What it runs; for a node with a body, an attempt at that.
        body: What it consists of when that is no handler of a user's.
        blocking: Run it in a thread.
        retry: When it is tried again; None for never.
        is_plain: Whether its handler is called with the state alone, on the loop, and returns at once.
        fallback: Who takes over when its attempts are used up.
        next: Where it goes on; None for an end, or when a router decides.
        router: Who decides where it goes on.
        pause: The stop after it.
    """

    __slots__ = ("blocking", "body", "fallback", "handler", "is_plain", "name", "next", "pause", "retry", "router")

    def __init__(self, name: str, work: Handler | Body, blocking: bool, retry: RetryPolicy | None) -> None:
        self.name = name
        if isinstance(work, Handler):
            handler, body = work, None
        else:
            handler, body = Handler(work.attempt, work.uses_context, is_async=True), work
        self.handler = handler
        self.body: Body | None = body
        self.blocking = blocking
        self.retry = retry
        self.is_plain = not (blocking or handler.is_async or handler.wants_context)
        self.fallback: Node | None = None
        self.next: Node | None = None
        self.router: Router | None = None
        self.pause: Pause | None = None
