"""A graph with a graph inside, down to any depth, and what its nodes were told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs

from strata_core.graph import CheckpointPolicy, RetryPolicy, StateGraph
from strata_core.records import Checkpoint, GraphIdentity

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""


@attrs.frozen
class Order:
    total: float = 100.0
    note: str = ""
    done: tuple[str, ...] = ()


@attrs.frozen
class Draft:
    text: str = "draft"
    amount: float = 1.0
    done: tuple[str, ...] = ()


class Seen:
    """What the nodes of a graph were told, in the order in which they began."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.contexts: list[Any] = []
        self.harm: dict[str, Callable[[], Any]] = {}

    def node(self, name: str) -> Any:
        """Return a handler that notes its visit, comes to the harm that is set for it, and appends its name."""

        async def handler(state: Any, ctx: Any) -> Any:
            self.nodes.append(name)
            self.contexts.append(ctx)
            if name in self.harm:
                result = self.harm[name]()
                if hasattr(result, "__await__"):
                    await result
            return attrs.evolve(state, done=(*state.done, name))

        return handler

    def decision(self, name: str) -> Any:
        """Return the decision that a node was shown at its last visit."""
        return next(ctx.decision for ctx in reversed(self.contexts) if ctx.node == name)

    def keys(self, name: str) -> list[str]:
        """Return the idempotency keys that a node was told."""
        return [ctx.idempotency_key for ctx in self.contexts if ctx.node == name]


def child(world: Any, seen: Seen, *, wait: str | None = "person", **options: Any) -> Any:
    """Return a graph Write, Approve, Send that waits after Approve."""
    graph = new(Draft)
    for name in ("Write", "Approve", "Send"):
        graph.add_node(name, seen.node(name))
    graph.add_edge("Write", "Approve").add_edge("Approve", "Send")
    if wait == "person":
        graph.add_node("Drop", seen.node("Drop"))
        graph.add_interrupt_boundary("Approve", on_reject="Drop")
    elif wait == "limited":
        graph.add_node("Late", seen.node("Late"))
        graph.add_interrupt_boundary("Approve", timeout=timedelta(hours=1), on_timeout="Late")
    elif wait == "event":
        graph.add_wait_for_event("Approve", "paid", timeout=timedelta(hours=1))
    elif wait == "timer":
        graph.add_timer("Approve", timedelta(hours=1))
    return graph.compile(clock=world.clock, **options)


def enter(state: Order) -> Draft:
    return Draft(amount=state.total)


def leave(state: Order, inner: Draft) -> Order:
    return Order(inner.amount, inner.text, (*state.done, *inner.done))


def outer(
    world: Any,
    seen: Seen,
    inner: Any,
    policy: CheckpointPolicy = CheckpointPolicy.BOUNDARIES,
    *,
    enter: Any = enter,
    leave: Any = leave,
    retry: RetryPolicy | None = None,
    fallback: str | None = None,
    **options: Any,
) -> Any:
    """Return a graph Before, Work, After whose Work is the inner graph; and Instead, when that is the fallback."""
    graph = (
        new(Order)
        .add_node("Before", seen.node("Before"))
        .add_subgraph("Work", inner, enter=enter, leave=leave, retry=retry, fallback=fallback)
        .add_node("After", seen.node("After"))
        .add_edge("Before", "Work")
        .add_edge("Work", "After")
    )
    if fallback is not None:
        graph.add_node(fallback, seen.node(fallback))
    options.setdefault("identity", GraphIdentity("orders", "1"))
    return graph.compile(checkpointing=policy, clock=world.clock, **options)


def wrapped(world: Any, inner: Any, name: str = "Inner") -> Any:
    """Return a graph of drafts whose only node is a graph of drafts."""
    same: Any = {"enter": lambda state: state, "leave": lambda _, inner: inner}
    return new(Draft).add_subgraph(name, inner, **same).compile(clock=world.clock)


def path_of(checkpoint: Checkpoint) -> list[tuple[str, str | None, str | None]]:
    """Return every level of a checkpoint as (status, where it stopped or last committed, where it goes on)."""
    found = []
    level: Checkpoint | None = checkpoint
    while level is not None:
        found.append((level.status.value, level.suspended_node, level.next_node))
        level = level.nested
    return found
