"""What a compiled graph consists of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Generic, TypeVar

from strata_core.clock import Clock
from strata_core.graph._handlers import Handler
from strata_core.graph._nodes import Node
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._state import StateCodec
from strata_core.graph._upcasting import Upcast
from strata_core.records import GraphIdentity

__all__ = ["Plan"]

S = TypeVar("S")


class Plan(Generic[S]):
    """What a compiled graph consists of; shared by all its runs and never changed.

    Attributes:
        nodes: The nodes by name.
        entry: Where runs begin.
        codec: Turns states into JSON and back.
        identity: Stamped on every checkpoint.
        checkpointing: When runs write checkpoints.
        upcast: Brings a saved state of another version up to this one.
        lease_ttl: How long leases live.
        owner: The name under which they are taken; None for host and process.
        completion_record: Whether also a run that writes nothing between nodes writes `completed`.
        on_resume: Called before the first node after a wait; None for nothing.
        on_interrupted: Told when a thread waits; None for nobody.
        clock: Tells the time and waits.
        uses_context: Whether any handler, router or timer is given a context, also inside of nodes.
    """

    __slots__ = (
        "checkpointing",
        "clock",
        "codec",
        "completion_record",
        "entry",
        "identity",
        "lease_ttl",
        "nodes",
        "on_interrupted",
        "on_resume",
        "owner",
        "upcast",
        "uses_context",
    )

    def __init__(
        self,
        *,
        nodes: Mapping[str, Node],
        entry: Node,
        codec: StateCodec[S],
        identity: GraphIdentity | None,
        checkpointing: CheckpointPolicy,
        upcast: Upcast | None,
        lease_ttl: timedelta,
        owner: str | None,
        completion_record: bool,
        on_resume: Handler | None,
        on_interrupted: Handler | None,
        clock: Clock,
    ) -> None:
        self.nodes = nodes
        self.entry = entry
        self.codec = codec
        self.identity = identity
        self.checkpointing = checkpointing
        self.upcast = upcast
        self.lease_ttl = lease_ttl
        self.owner = owner
        self.completion_record = completion_record
        self.on_resume = on_resume
        self.on_interrupted = on_interrupted
        self.clock = clock
        self.uses_context = (on_resume is not None and on_resume.wants_context) or any(
            map(_uses_context, nodes.values())
        )

    @property
    def state_class(self) -> type:
        """The class of its states."""
        return self.codec.cls

    def waits(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths to the nodes after which a thread waits, also inside of subgraphs."""
        for node in self.nodes.values():
            if node.pause is not None:
                yield (node.name,)
            if node.body is not None:
                for path in node.body.waits():
                    yield (node.name, *path)


def _uses_context(node: Node) -> bool:
    delay = None if node.pause is None else node.pause.delay
    return (
        node.handler.wants_context
        or (node.router is not None and node.router.handler.wants_context)
        or (isinstance(delay, Handler) and delay.wants_context)
    )
