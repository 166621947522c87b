"""Saves one thread again and again, and says after each save how many there are."""

import asyncio
import sys

from redis_support import opened, save


async def main(url: str) -> None:
    async with opened(url) as backend:
        while True:
            (outcome,) = await backend.commit([save("t")])
            print(outcome.sequence + 1, flush=True)  # type: ignore[union-attr]  # nothing refuses it


asyncio.run(main(sys.argv[1]))
