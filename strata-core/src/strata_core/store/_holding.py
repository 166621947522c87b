"""Keeping a reservation alive while an external blob store works."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from strata_core.errors import StoreUnavailableError
from strata_core.rows import Commit, Extend, Refused, new_write_id
from strata_core.store._link import Link

__all__ = ["EVERY", "RESERVED_FOR", "holding"]

RESERVED_FOR: Final = 60_000_000
"""How long a purge or a first save with external blobs reserves a thread, in microseconds, before others take over."""
EVERY: Final = 20.0
"""Seconds after which a reservation that is still needed is extended; by the machine's clock, as it is real work."""


@contextlib.asynccontextmanager
async def holding(link: Link, thread_id: str, token: int) -> AsyncIterator[None]:
    """Extend a reservation for as long as the block takes.

    A delete of very many blobs, or one that a slow service answers late, would else outlive it: another purge would
    take over, a new save would put new blobs, and the old delete would take those.
    """
    extending = asyncio.create_task(_extend(link, thread_id, token))
    try:
        yield
    finally:
        extending.cancel()
        await asyncio.wait([extending])


async def _extend(link: Link, thread_id: str, token: int) -> None:
    while True:
        await asyncio.sleep(EVERY)
        with contextlib.suppress(StoreUnavailableError):  # the next one may come through in time
            commit = Commit(thread_id, new_write_id(), token=token, lease=Extend(RESERVED_FOR))
            if isinstance(await link.submit(commit), Refused):
                return
