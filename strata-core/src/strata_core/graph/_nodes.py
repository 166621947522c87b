"""The nodes of a compiled graph."""

from __future__ import annotations

from collections.abc import Mapping

from strata_core.graph._handlers import Handler
from strata_core.graph._retry import RetryPolicy

__all__ = ["Boundary", "Node", "Router"]


class Router:
    """A conditional way on: a function that names one of its targets."""

    __slots__ = ("handler", "targets")

    def __init__(self, handler: Handler, targets: Mapping[str, Node]) -> None:
        self.handler = handler
        self.targets = targets


class Boundary:
    """A stop after a node, until a person answers; `on_reject` is where a rejection goes on, None for the next node."""

    __slots__ = ("on_reject",)

    def __init__(self, on_reject: Node | None) -> None:
        self.on_reject = on_reject


class Node:
    """A node, linked to where it goes on.  Compiled graphs are shared: nothing here changes after the compilation.

    Attributes:
        name: Its name.
        handler: What it runs.
        blocking: Run it in a thread.
        retry: When it is tried again; None for never.
        is_plain: Whether its handler is called with the state alone, on the loop, and returns at once.
        fallback: Who takes over when its attempts are used up.
        next: Where it goes on; None for an end, or when a router decides.
        router: Who decides where it goes on.
        boundary: The stop after it.
    """

    __slots__ = ("blocking", "boundary", "fallback", "handler", "is_plain", "name", "next", "retry", "router")

    def __init__(self, name: str, handler: Handler, blocking: bool, retry: RetryPolicy | None) -> None:
        self.name = name
        self.handler = handler
        self.blocking = blocking
        self.retry = retry
        self.is_plain = not (blocking or handler.is_async or handler.wants_context)
        self.fallback: Node | None = None
        self.next: Node | None = None
        self.router: Router | None = None
        self.boundary: Boundary | None = None
