"""Runs threads, many at once, under short leases; says what it does to the outside world."""

import asyncio
import sys
from datetime import timedelta

from process_support import GRAPHS, Order, say

from strata_core import open_store


async def main(url: str, name: str, count: str, ttl: str, kind: str = "shop") -> None:
    graph = GRAPHS[kind](timedelta(seconds=float(ttl)))
    async with open_store(url) as store:
        await asyncio.gather(*(graph.run(f"{name}-{number}", Order(), store) for number in range(int(count))))
        say("over")  # too late to kill it amid a run
        await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
