"""The nodes of a compiled graph."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from strata_core.graph._handlers import Handler
from strata_core.graph._retry import RetryPolicy

__all__ = ["Boundary", "Node", "Router"]


@attrs.define(eq=False)
class Router:
    """A conditional way on: a function that names one of its targets."""

    handler: Handler
    targets: Mapping[str, Node] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Boundary:
    """A stop after a node, until a person answers; `on_reject` is where a rejection goes on, None for the next node."""

    on_reject: Node | None = None


@attrs.define(eq=False)
class Node:
    """A node, linked to where it goes on.  Compiled graphs are shared: nothing here changes after the compilation.

    Attributes:
        name: Its name.
        handler: What it runs.
        blocking: Run it in a thread.
        retry: When it is tried again; None for never.
        fallback: Who takes over when its attempts are used up.
        next: Where it goes on; None for an end, or when a router decides.
        router: Who decides where it goes on.
        boundary: The stop after it.
    """

    name: str
    handler: Handler
    blocking: bool
    retry: RetryPolicy | None
    fallback: Node | None = None
    next: Node | None = None
    router: Router | None = None
    boundary: Boundary | None = None
