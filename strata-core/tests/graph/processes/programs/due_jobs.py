"""Begin threads that are due at once, or wake all that are; every thread that is woken is noted in a file."""

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from strata_core import CheckpointPolicy, CompiledGraph, Completed, GraphIdentity, NodeContext, StateGraph, open_store


def build(policy: str, identity: str, notes: int) -> CompiledGraph[dict[str, Any]]:
    def work(state: dict[str, Any], ctx: NodeContext[dict[str, Any]]) -> dict[str, Any]:
        os.write(notes, f"{ctx.thread_id}\n".encode())
        return {"woken": state["woken"] + 1}

    return (
        StateGraph[dict[str, Any]](dict)
        .add_node("Set", lambda state: state)
        .add_timer("Set", timedelta(0))
        .add_node("Work", work)
        .add_edge("Set", "Work")
        .compile(identity=GraphIdentity(identity, "1"), checkpointing=CheckpointPolicy(policy))
    )


async def main(role: str, url: str, policy: str, identity: str, notes: str, argument: str) -> None:
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    graph = build(policy, identity, file)
    async with open_store(url) as store:
        if role == "begin":
            runs = (graph.run(f"{identity}-{n}", {"woken": 0}, store) for n in range(int(argument)))
            await asyncio.gather(*runs)
            return
        print("ready", flush=True)
        while not Path(argument).exists():
            await asyncio.sleep(0.001)
        while True:
            report = await graph.wake_due(store, limit=20, concurrency=5)
            assert not report.errors, report.errors
            for thread_id, result in report.results.items():
                assert isinstance(result, Completed), result
                print(thread_id, flush=True)
            if report.is_complete:
                return


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
