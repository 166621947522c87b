"""Recovers dead threads until none is running any more; says what came of each."""

import asyncio
import sys
import time
from datetime import timedelta

from process_support import GRAPHS, PATIENCE, say

from strata_core import ThreadQuery, ThreadState, open_store


async def main(url: str, kind: str = "shop") -> None:
    graph = GRAPHS[kind](timedelta(seconds=30))
    end = time.monotonic() + PATIENCE
    async with open_store(url) as store:
        while (await store.list_threads(ThreadQuery(states={ThreadState.RUNNING}, limit=1))).threads:
            assert time.monotonic() < end
            report = await graph.recover_all(store)
            for result in report.results.values():
                why = [getattr(result, name, None) for name in ("reason", "code", "detail")]
                say("result", result.thread_id, type(result).__name__, *(word for word in why if word is not None))
            for thread_id, error in report.errors.items():
                say("error", thread_id, type(error).__name__)
            await asyncio.sleep(0.02)


asyncio.run(main(*sys.argv[1:]))
