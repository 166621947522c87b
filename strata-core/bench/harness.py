"""Peers that take turns, and the table that compares them."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

ROUNDS = 5
Measure = Callable[[int], Awaitable[float]]
"""Takes the round, does the work once, and returns its cost: seconds, or whatever the table counts."""
Peer = Callable[[AsyncExitStack, Path], Awaitable[Measure]]
"""Opens what the peer needs below a folder and returns its measure."""


async def compare(title: str, peers: dict[str, Peer], *, unit: str, scale: float = 1.0, rounds: int = ROUNDS) -> None:
    """Run every peer in turn, `rounds` times over, and print medians and ratios to the first one."""
    with tempfile.TemporaryDirectory(prefix="strata-bench-") as folder:
        async with AsyncExitStack() as stack:
            measures = {}
            for name, peer in peers.items():
                place = Path(folder) / str(len(measures))
                place.mkdir()
                measures[name] = await peer(stack, place)
            costs: dict[str, list[float]] = {name: [] for name in peers}
            for turn in range(rounds):
                for name, measure in measures.items():
                    costs[name].append(await measure(turn))
    report(title, {name: statistics.median(values) * scale for name, values in costs.items()}, unit)


def report(title: str, costs: dict[str, float], unit: str) -> None:
    """Print a table; the last column says how many times the first line's cost a line is."""
    print(f"\n{title}")
    base = next(iter(costs.values()))
    for name, cost in costs.items():
        print(f"  {name:<44} {cost:>12,.1f} {unit:<12} {cost / base:>8.2f}x")
    sys.stdout.flush()


def timed(work: Callable[[int], Awaitable[object]]) -> Measure:
    """Return a measure of the seconds that some work takes."""

    async def measure(turn: int) -> float:
        start = time.perf_counter()
        await work(turn)
        return time.perf_counter() - start

    return measure


async def at_once(count: int, work: Callable[[int], Awaitable[object]]) -> None:
    """Run `work` for 0 to count - 1, all in this loop at once."""
    await asyncio.gather(*(work(number) for number in range(count)))


def database_bytes(path: Path) -> int:
    """Return what a SQLite database takes on disk, with everything beside it."""
    return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))
