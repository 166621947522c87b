"""What type checkers say of results; they only read this file, in `tox -e types`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never, assert_type

from strata_core import (
    Cancelled,
    Completed,
    EventSignal,
    Failed,
    HumanSignal,
    Interrupted,
    LevelSignals,
    RunResult,
    StateGraph,
    open_store,
)
from strata_core.graph import CompiledGraph, SweepReport
from strata_core.ports import CheckpointStore
from strata_core.store import RowStore


@dataclass(frozen=True)
class Order:
    total: int = 0


def keep(order: Order) -> Order:
    return order


graph = StateGraph(Order).add_node("A", keep).compile()
assert_type(StateGraph(Order), StateGraph[Order])
assert_type(graph, CompiledGraph[Order])


async def every_call_has_a_result_of_the_state(store: RowStore) -> None:
    assert_type(await graph.run("t", Order()), RunResult[Order])
    assert_type(await graph.run("t", Order(), store, metadata={"a": "b"}, if_exists="error"), RunResult[Order])
    assert_type(await graph.resume("t", HumanSignal.approve("ann"), store), RunResult[Order])
    assert_type(await graph.resume("t", None, store), RunResult[Order])
    assert_type(await graph.resume("t", LevelSignals.due(), store), RunResult[Order])
    assert_type(await graph.signal("t", EventSignal("paid"), store), RunResult[Order])
    assert_type(await graph.recover("t", store), RunResult[Order])
    assert_type(await graph.wake_due(store), SweepReport[Order])
    assert_type(graph.run_sync("t", Order(), open_store("memory://")), RunResult[Order])


async def what_is_no_state_or_no_signal_is_refused(store: CheckpointStore) -> None:
    await graph.run("t", {"total": 1})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    await graph.run(1, Order())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    await graph.resume("t", EventSignal("paid"), store)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    await graph.signal("t", HumanSignal.approve("ann"), store)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def a_match_is_exhaustive_with_four_cases(result: RunResult[Order]) -> int:
    match result:
        case Completed(thread_id, state):
            assert_type(thread_id, str)
            assert_type(state, Order)
            return state.total
        case Interrupted(_, node, following, frozen, waiting_at):
            assert_type(node, str)
            assert_type(following, str | None)
            assert_type(frozen, Order)
            assert_type(waiting_at, tuple[str, ...])
            return frozen.total
        case Failed(code=code):
            return len(code)
        case Cancelled(reason=reason):
            return len(reason)
        case _:
            assert_never(result)


def one_that_forgets_a_case_is_not(result: RunResult[Order]) -> int:
    match result:
        case Completed() | Interrupted() | Failed():
            return 0
        case _:
            assert_never(result)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def isinstance_narrows_to_the_state(result: RunResult[Order]) -> None:
    if isinstance(result, Completed):
        assert_type(result, Completed[Order])
        assert_type(result.state, Order)
    elif isinstance(result, Interrupted):
        assert_type(result.frozen_state, Order)
    else:
        assert_type(result, Failed | Cancelled)
        print(result.state)  # type: ignore[union-attr] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
