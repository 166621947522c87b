"""Answer or end a thread once everybody is ready; print what came of it."""

import asyncio
import sys
from pathlib import Path

from wire import build

from strata_core import CheckpointPolicy, HumanSignal, open_store


async def main(path: str, policy: str, action: str, name: str, gate: str) -> None:
    graph = build(CheckpointPolicy(policy))
    async with open_store(path) as store:
        print("ready", flush=True)
        while not Path(gate).exists():
            await asyncio.sleep(0.001)
        if action == "resume":
            result = await graph.resume("wire-1", HumanSignal.approve(name), store)
        else:
            result = await graph.end("wire-1", store, by=name)
        print(type(result).__name__, getattr(result, "code", ""), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
