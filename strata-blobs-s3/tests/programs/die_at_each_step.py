"""Saves or purges a thread with external blobs and dies on the way: ``python die_at_each_step.py FILE URL``.

Reads lines ``VERB THREAD STEP`` and does the verb in a process of its own, a fork, which kills itself when it comes to
that step; answers ``killed`` or ``done``.  A step is before or after each commit to SQLite and each request to S3.  One
process that forks, as importing boto3 takes longer than all of the steps.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3.session  # noqa: F401  # before the forks
import botocore.loaders
import botocore.session

from strata_blobs_s3 import S3BlobStore, _bucket
from strata_core.options import Offload
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.store import RowStore
from strata_sqlite import SqliteBackend

FILE, URL = sys.argv[1:]
NOW = datetime.now(UTC)
LOADER = botocore.loaders.create_loader()
botocore.session.create_loader = lambda _: LOADER
_bucket._PAGE = 1  # type: ignore[misc]  # several pages for the blobs of one thread


class Steps:
    """Counts, and kills this process at the step that was asked for."""

    def __init__(self, last: int) -> None:
        self._left = last

    def take(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def run(verb: str, thread: str, last: int) -> None:
    backend = SqliteBackend(FILE)
    async with S3BlobStore.from_url(URL) as blobs:
        steps = Steps(last)
        commit, client = backend.commit, blobs._bucket._client  # type: ignore[union-attr]

        async def counted(batch: Any) -> Any:
            steps.take()
            outcome = await commit(batch)
            steps.take()
            return outcome

        backend.commit = counted  # type: ignore[method-assign]
        async with RowStore(backend, offload=Offload(threshold=100, blobs=blobs)) as store:
            client.meta.events.register("before-send.s3", lambda **_: steps.take())
            client.meta.events.register("after-call.s3", lambda **_: steps.take())
            if verb == "save":
                state = {f"big{n}": f"{n}" * 200 for n in range(2)}
                await store.save(Checkpoint(thread, CheckpointStatus.COMPLETED, state, NOW - timedelta(days=1)))
            else:
                await store.purge(NOW)


for line in sys.stdin:
    verb, thread, last = line.split()
    child = os.fork()
    if child == 0:
        asyncio.run(run(verb, thread, int(last)))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        print("killed", flush=True)
    else:
        print("done" if os.waitstatus_to_exitcode(status) == 0 else "failed", flush=True)
