"""What the engine costs a node, and what an import costs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import langgraph_peer
import strata_peer
from harness import Measure, Peer, compare, timed
from workload import Order, advance, advance_dict, order_dict

RUNS = 200
GROUPS = 50
BRANCHES = 64
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


async def strata(_: AsyncExitStack, __: Path) -> Measure:
    graph = strata_peer.build()

    async def work(turn: int) -> None:
        for number in range(RUNS):
            await graph.run(f"{turn}-{number}", Order())

    return timed(work)


async def langgraph(_: AsyncExitStack, __: Path) -> Measure:
    graph = langgraph_peer.build()

    async def work(_: int) -> None:
        for _ in range(RUNS // 10):
            await graph.ainvoke(order_dict())

    async def measure(turn: int) -> float:
        return 10 * await timed(work)(turn)

    return measure


async def bare_calls(_: AsyncExitStack, __: Path) -> Measure:
    async def work(_: int) -> None:
        for _ in range(RUNS):
            state = Order()
            for _ in range(10):
                state = advance(state)

    return timed(work)


async def parallel_group(_: AsyncExitStack, __: Path) -> Measure:
    graph = strata_peer.build_group(BRANCHES)

    async def work(turn: int) -> None:
        for number in range(GROUPS):
            await graph.run(f"{turn}-{number}", Order())

    return timed(work)


async def one_node(_: AsyncExitStack, __: Path) -> Measure:
    graph = strata_peer.build_group(1)

    async def work(turn: int) -> None:
        for number in range(GROUPS):
            await graph.run(f"{turn}-{number}", Order())

    return timed(work)


async def bare_tasks(_: AsyncExitStack, __: Path) -> Measure:
    async def work(_: int) -> None:
        for _ in range(GROUPS):
            state = Order()
            async with asyncio.TaskGroup() as tasks:
                for _ in range(BRANCHES):
                    tasks.create_task(strata_peer.advance_async(state))

    return timed(work)


async def bare_dicts(_: AsyncExitStack, __: Path) -> Measure:
    async def work(_: int) -> None:
        for _ in range(RUNS):
            state = dict(order_dict())
            for _ in range(10):
                state |= advance_dict(state)  # type: ignore[arg-type]
                _encode(state)

    return timed(work)


def importing(statement: str) -> Peer:
    """Return a peer that measures the seconds of a statement in a new process, beyond `import asyncio`."""
    program = f"import asyncio, time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"

    async def peer(_: AsyncExitStack, folder: Path) -> Measure:
        # As on a user's machine: modules are compiled once, into a cache that stays.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder)

        async def measure(_: int) -> float:
            out = subprocess.run(
                [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment
            ).stdout
            return float(out)

        await measure(0)
        return measure

    return peer


async def run() -> None:
    await compare(
        f"A node without a store (ten nodes, {RUNS} runs)",
        {
            "Strata": strata,
            "LangGraph": langgraph,
            "ten bare calls of the same function": bare_calls,
            "ten bare dict updates, encoded once each": bare_dicts,
        },
        unit="us a node",
        scale=1e6 / RUNS / 10,
    )
    await compare(
        f"A parallel group of {BRANCHES} branches without a store ({GROUPS} runs)",
        {
            "Strata": parallel_group,
            "as many bare tasks": bare_tasks,
            "Strata, a group of one branch": one_node,
        },
        unit="us",
        scale=1e6 / GROUPS,
    )
    names = "StateGraph, open_store, HumanSignal"

    await compare(
        "Import, beyond asyncio",
        {
            f"from strata_core import {names}": importing(f"from strata_core import {names}"),
            "import strata_core": importing("import strata_core"),
            "import attrs, cattrs, pluggy": importing("import attrs, cattrs, pluggy"),
            "import langgraph.graph": importing("import langgraph.graph"),
        },
        unit="ms",
        scale=1e3,
    )
