"""Bytes on disk, after the database was closed and its log checkpointed."""

from __future__ import annotations

import itertools
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

import attrs
from databases import Sqlite
from harness import database_bytes, report
from langgraph.graph import START
from langgraph.graph import StateGraph as LangGraph
from workload import NODES, Order

from strata_core import Checkpoint, CheckpointPolicy, CheckpointStatus, Deltas, Offload, StateGraph

EVERYTHING: dict[str, Any] = {"deltas": Deltas(), "offload": Offload()}


@attrs.frozen
class Evidence:
    """100 KB that are set once, and two small fields that change."""

    document: str = ""
    step: int = 0
    note: str = ""


class EvidenceDict(TypedDict):
    """The same for a peer that wants a TypedDict."""

    document: str
    step: int
    note: str


def gather(state: Evidence) -> Evidence:
    if not state.document:
        return attrs.evolve(state, document="x" * 100_000, step=1)
    return attrs.evolve(state, step=state.step + 1, note=f"step {state.step}")


def gather_dict(state: dict[str, Any]) -> dict[str, Any]:
    if not state["document"]:
        return {"document": "x" * 100_000, "step": 1}
    return {"step": state["step"] + 1, "note": f"step {state['step']}"}


async def _strata_run(folder: Path, state: Any, handler: Any, **options: Any) -> int:
    graph: StateGraph[Any] = StateGraph(type(state))
    for name in NODES:
        graph.add_node(name, handler)
    for source, target in itertools.pairwise(NODES):
        graph.add_edge(source, target)
    compiled = graph.compile(checkpointing=CheckpointPolicy.EVERY_NODE)
    async with AsyncExitStack() as stack:
        store = await Sqlite().strata(stack, folder, **options)
        for number in range(20):
            await compiled.run(f"run-{number}", state, store)
    return database_bytes(folder / "strata.db")


async def _langgraph_run(folder: Path, state: dict[str, Any], handler: Any, schema: Any) -> int:
    async with AsyncExitStack() as stack:
        saver = await Sqlite().saver(stack, folder)
        graph: Any = LangGraph(schema)
        for name, source in zip(NODES, [START, *NODES], strict=False):
            graph.add_node(name, handler)
            graph.add_edge(source, name)
        compiled = graph.compile(checkpointer=saver)
        for number in range(20):
            config = {"configurable": {"thread_id": f"run-{number}"}}
            await compiled.ainvoke(state, config, durability="sync")
    return database_bytes(folder / "langgraph.db")


async def _floor_run(folder: Path) -> int:
    async with AsyncExitStack() as stack:
        floor = await Sqlite().floor(stack, folder)
        for number in range(20):
            await floor.run(f"run-{number}")
    return database_bytes(folder / "floor.db")


async def _frozen(folder: Path, threads: int, record_bytes: int) -> int:
    """Return the bytes of threads that wait, with a whole record JSON of `record_bytes` and one metadata pair."""
    from strata_core.codec import dump_json, encode_record

    def checkpoint(name: str, padding: int) -> Checkpoint:
        state = {"invoice": "A-1001", "amount": 4200.5, "note": "n" * padding}
        return Checkpoint(
            name, CheckpointStatus.INTERRUPTED, state, datetime.now(UTC), "PrepareWireTransfer", "ExecuteWireTransfer",
            {"tenant": "acme"},
        )  # fmt: skip

    padding = record_bytes - len(dump_json(encode_record(checkpoint("thread-000000", 0))))
    async with AsyncExitStack() as stack:
        store = await Sqlite().strata(stack, folder)
        for number in range(threads):
            await store.save(checkpoint(f"thread-{number:06}", padding))
    return database_bytes(folder / "strata.db")


async def _constant(folder: Path, saves: int, **options: Any) -> int:
    constant = "c" * (64 << 10)
    async with AsyncExitStack() as stack:
        store = await Sqlite().strata(stack, folder, **options)
        for number in range(saves):
            state = {"constant": constant, "step": number}
            checkpoint = Checkpoint(
                "t", CheckpointStatus.RUNNING, state, datetime.now(UTC), metadata={"tenant": "acme"}
            )
            await store.save(checkpoint)
    return database_bytes(folder / "strata.db")


async def run() -> None:
    from workload import OrderDict, advance, advance_dict, order_dict

    def folder() -> Path:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-bench-")))

    async with AsyncExitStack() as stack:
        report(
            "Bytes of a ten-node run, 1 KB rewritten by each node (20 runs in the file)",
            {
                "Strata": await _strata_run(folder(), Order(), advance) / 20,
                "Strata, deltas and offload on": await _strata_run(folder(), Order(), advance, **EVERYTHING) / 20,
                "LangGraph": await _langgraph_run(folder(), dict(order_dict()), advance_dict, OrderDict) / 20,
                "floor": await _floor_run(folder()) / 20,
            },
            "bytes",
        )
        evidence = {"document": "", "step": 0, "note": ""}
        report(
            "Bytes of a ten-node run, 100 KB set once, two small fields change",
            {
                "Strata, deltas and offload on": await _strata_run(folder(), Evidence(), gather, **EVERYTHING) / 20,
                "Strata": await _strata_run(folder(), Evidence(), gather) / 20,
                "LangGraph": await _langgraph_run(folder(), evidence, gather_dict, EvidenceDict) / 20,
            },
            "bytes",
        )
        report(
            "Bytes of a frozen thread, whole record of 1,280 bytes, one metadata pair, 10,000 threads",
            {"Strata": await _frozen(folder(), 10_000, 1280) / 10_000},
            "bytes",
        )
        for saves in (20, 100):
            report(
                f"Bytes of a save of a constant 64 KiB value, {saves} saves",
                {
                    "whole": await _constant(folder(), saves) / saves,
                    "deltas": await _constant(folder(), saves, deltas=Deltas()) / saves,
                    "deltas and offload": await _constant(folder(), saves, **EVERYTHING) / saves,
                },
                "bytes",
            )
