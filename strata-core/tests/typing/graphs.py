"""What type checkers say of the functions that a graph is given; they only read this file, in `tox -e types`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import attrs

from strata_core import GraphIdentity, HumanSignal, Interrupted, NodeContext, StateGraph
from strata_core.graph import CompiledGraph
from strata_core.records import HumanDecision


@attrs.frozen
class Order:
    total: int = 0


@attrs.frozen
class Line:
    price: int = 0


def plain(order: Order) -> Order:
    return order


async def awaited(order: Order) -> Order:
    return order


def told(order: Order, ctx: NodeContext[Order]) -> Order:
    assert_type(ctx.thread_id, str)
    assert_type(ctx.decision, HumanDecision | None)
    assert_type(ctx.idempotency_key, str)
    return order


async def told_awaited(order: Order, ctx: NodeContext[Order]) -> Order:
    return order


class Callee:
    def __call__(self, order: Order) -> Order:
        return order


def of_a_line(line: Line) -> Line:
    return line


def to_a_line(order: Order) -> Line:
    return Line(order.total)


def to_nothing(order: Order) -> None:
    return None


def three(order: Order, ctx: NodeContext[Order], more: int) -> Order:
    return order


def told_of_a_line(order: Order, ctx: NodeContext[Line]) -> Order:
    return order


handlers: list[Callable[[Order], Order | Awaitable[Order]]] = [plain, awaited, Callee()]

nodes = (
    StateGraph(Order)
    .add_node("plain", plain)
    .add_node("awaited", awaited)
    .add_node("told", told, blocking=True)
    .add_node("told awaited", told_awaited)
    .add_node("callee", Callee())
    .add_node("lambda", lambda order: attrs.evolve(order, total=order.total + 1))
    .add_node("two", lambda order, ctx: attrs.evolve(order, total=len(ctx.node)))
)
assert_type(nodes, StateGraph[Order])
assert_type(nodes.compile(), CompiledGraph[Order])

nodes.add_node("x", of_a_line)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_node("x", to_a_line)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_node("x", to_nothing)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_node("x", three)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_node("x", told_of_a_line)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_node("x", "plain")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def route(order: Order) -> str:
    return "plain" if order.total else "told"


async def route_told(order: Order, ctx: NodeContext[Order]) -> str:
    return "plain" if ctx.attempt else "told"


def route_line(line: Line) -> str:
    return "plain"


def route_number(order: Order) -> int:
    return order.total


nodes.add_conditional_edge("plain", route, ["plain", "told"])
nodes.add_conditional_edge("plain", route_told, {"plain", "told"})
nodes.add_conditional_edge("plain", lambda order: "plain" if order.total else "told", ["plain", "told"])
nodes.add_conditional_edge("plain", route_line, ["plain"])  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_conditional_edge("plain", route_number, ["plain"])  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def until(order: Order) -> datetime:
    return datetime.now(UTC)


nodes.add_timer("plain", timedelta(1)).add_timer("told", until).add_timer("told", lambda order: timedelta(order.total))
nodes.add_timer("plain", route)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def merge(before: Order, results: list[Order]) -> Order:
    return Order(before.total + sum(order.total for order in results))


async def merge_awaited(before: Order, results: list[Order]) -> Order:
    return merge(before, results)


def merge_lines(before: Order, results: list[Line]) -> Order:
    return Order(before.total + sum(line.price for line in results))


nodes.add_parallel_group("group", {"a": plain, "b": awaited, "c": told}, merge)
nodes.add_parallel_group("group", {"a": plain}, merge_awaited)
nodes.add_parallel_group("group", {"a": nodes.compile()}, lambda before, results: results[0] if results else before)
nodes.add_parallel_group("group", {"a": of_a_line}, merge)  # type: ignore[dict-item] # pyright: ignore[reportArgumentType]
nodes.add_parallel_group("group", {"a": plain}, merge_lines)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

child = StateGraph(Line).add_node("A", of_a_line).compile()


def items(order: Order) -> list[Line]:
    return [Line(order.total)]


async def items_awaited(order: Order) -> tuple[Line, ...]:
    return (Line(order.total),)


nodes.add_map("map", child, items, merge_lines)
nodes.add_map("map", child, items_awaited, merge_lines)
nodes.add_map("map", child, lambda order: [Line()], lambda before, lines: Order(sum(line.price for line in lines)))
nodes.add_map("map", child, items, merge)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_map("map", child, plain, merge_lines)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def leave(order: Order, line: Line) -> Order:
    return Order(order.total + line.price)


async def enter(order: Order) -> Line:
    return Line(order.total)


nodes.add_subgraph("sub", child, enter=to_a_line, leave=leave)
nodes.add_subgraph("sub", child, enter=enter, leave=lambda order, line: Order(order.total + line.price))
nodes.add_subgraph("sub", child, enter=plain, leave=leave)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_subgraph("sub", child, enter=to_a_line, leave=merge)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.add_subgraph("sub", nodes, enter=plain, leave=leave)  # type: ignore[misc, arg-type] # pyright: ignore[reportArgumentType]


def check(order: Order, ctx: NodeContext[Order]) -> None:
    assert_type(ctx.node, str)


async def announce(interrupted: Interrupted[Order]) -> None:
    assert_type(interrupted.frozen_state, Order)


def upcast(state: dict[str, Any], version: str) -> dict[str, Any]:
    return state


def step(state: dict[str, Any]) -> dict[str, Any]:
    return state


nodes.compile(identity=GraphIdentity("g", "2"), upcast=upcast, on_resume=check, on_interrupted=announce)
nodes.compile(identity=GraphIdentity("g", "2"), upcast={"1": step}, on_resume=lambda order: order)
nodes.compile(upcast={"1": upcast})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType]
nodes.compile(on_resume=of_a_line)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
nodes.compile(on_interrupted=check)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

assert_type(HumanSignal.approve("ann").with_override("total", 1), HumanSignal)
