"""Runs threads, many at once, under short leases; says what it does to the outside world."""

import asyncio
import sys
from datetime import timedelta

from process_support import Order, say, shop

from strata_core import open_store


async def main(url: str, name: str, count: str, ttl: str) -> None:
    graph = shop(timedelta(seconds=float(ttl)))
    async with open_store(url) as store:
        results = await asyncio.gather(*(graph.run(f"{name}-{number}", Order(), store) for number in range(int(count))))
        for result in results:
            say("result", result.thread_id, type(result).__name__)


asyncio.run(main(*sys.argv[1:]))
