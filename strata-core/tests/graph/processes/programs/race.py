"""Does its part to every thread once everybody is ready; says what came of each."""

import asyncio
import sys

from process_support import race_graph, say

from strata_core import HumanSignal, LevelSignals, open_store


async def main(url: str, name: str, on_dead: str, on_waiting: str, count: str) -> None:
    graph = race_graph(name)
    async with open_store(url) as store:

        async def act(action: str, thread_id: str) -> None:
            if action == "recover":
                result = await graph.recover(thread_id, store)
            elif action == "end":
                result = await graph.end(thread_id, store, by=name)
            else:
                signal = HumanSignal.approve(name) if action == "answer" else LevelSignals.due()
                result = await graph.resume(thread_id, signal, store)
            detail = getattr(result, "code", None) or getattr(result, "reason", "")
            say(thread_id, name, action, type(result).__name__, detail)

        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        numbers = range(int(count))
        await asyncio.gather(
            *(act(on_dead, f"dead-{number}") for number in numbers),
            *(act(on_waiting, f"waiting-{number}") for number in numbers),
        )


asyncio.run(main(*sys.argv[1:]))
