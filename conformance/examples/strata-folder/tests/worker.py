"""A process that uses one folder and says what was acknowledged: ``python worker.py FOLDER SEED ROUNDS``.

Each line goes out after the call returned: ``saved <thread> <sequence> <n>``, ``token <n>`` or ``purged <thread>``.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from datetime import UTC, datetime, timedelta

from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.store import RowStore
from strata_folder import FolderBackend

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def say(*words: object) -> None:
    print(*words, flush=True)


async def main(folder: str, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    async with RowStore(FolderBackend(folder), deltas=Deltas(), offload=Offload(threshold=500)) as store:
        for n in range(rounds):
            thread = f"{seed}-{rng.randrange(3)}"
            state = {"n": n, "big": f"{rng.randrange(3)}" * 600, "kept": "x" * 50}
            sequence = await store.save(Checkpoint(thread, CheckpointStatus.RUNNING, state, NOW))
            say("saved", thread, sequence, n)
            lease = await store.acquire_lease("shared", owner=str(seed), ttl=timedelta(seconds=60))
            if lease is not None:
                say("token", lease.token)
                await store.release_lease(lease)
            if n % 4 == 3:
                gone = f"{seed}-gone-{os.getpid()}-{n}"  # nobody saves it again
                await store.save(Checkpoint(gone, CheckpointStatus.COMPLETED, state, NOW - timedelta(days=9)))
                await store.purge(NOW - timedelta(days=1))
                say("purged", gone)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
