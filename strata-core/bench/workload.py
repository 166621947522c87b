"""The state and the ten nodes that every peer runs."""

from __future__ import annotations

from typing import TypedDict

import attrs

NODES = [f"node{number}" for number in range(10)]


@attrs.frozen
class Order:
    """About 1 KB of JSON; every node rewrites the counter and a text."""

    step: int = 0
    title: str = "t" * 80
    customer: str = "c" * 80
    note: str = "n" * 600
    total: float = 1234.5
    tags: tuple[str, ...] = ("a" * 20, "b" * 20, "c" * 20)
    address: str = "d" * 100


class OrderDict(TypedDict):
    """The same for a peer that wants a TypedDict."""

    step: int
    title: str
    customer: str
    note: str
    total: float
    tags: list[str]
    address: str


def order_dict() -> OrderDict:
    """Return the state as a dict."""
    return OrderDict(
        step=0, title="t" * 80, customer="c" * 80, note="n" * 600, total=1234.5,
        tags=["a" * 20, "b" * 20, "c" * 20], address="d" * 100,
    )  # fmt: skip


def advance(state: Order) -> Order:
    """The node of a typed graph."""
    return attrs.evolve(state, step=state.step + 1, title=f"{state.step:<80}")


def advance_dict(state: OrderDict) -> dict[str, object]:
    """The node of a graph of dicts; returns what changed."""
    return {"step": state["step"] + 1, "title": f"{state['step']:<80}"}
