"""Recovers dead threads until none is running any more; says what came of each."""

import asyncio
import sys
import time
from datetime import timedelta

from process_support import PATIENCE, say, shop

from strata_core import ThreadQuery, ThreadState, open_store


async def main(url: str) -> None:
    graph = shop(timedelta(minutes=5))  # SQLite lets a writer wait for as long as others come first
    end = time.monotonic() + PATIENCE
    async with open_store(url) as store:
        while (await store.list_threads(ThreadQuery(states={ThreadState.RUNNING}, limit=1))).threads:
            assert time.monotonic() < end
            report = await graph.recover_all(store)
            for result in report.results.values():
                reason = getattr(result, "reason", None) or getattr(result, "code", None)
                kind = type(result).__name__
                say("result", result.thread_id, kind if reason is None else f"{kind}-{reason}")
            for thread_id, error in report.errors.items():
                say("error", thread_id, type(error).__name__)
            await asyncio.sleep(0.02)


asyncio.run(main(*sys.argv[1:]))
