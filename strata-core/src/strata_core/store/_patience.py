"""Waiting for somebody else's short step to end."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from strata_core.errors import StoreBusyError

__all__ = ["Patience"]

FIRST: Final = 0.002
LONGEST: Final = 0.05
LIMIT: Final = 120.0
"""Seconds; twice the life of a reservation, so that an abandoned one has expired by then."""


class Patience:
    """Waits a little longer each time, and not for ever.

    Uses the machine's clock, not an injected one: what it waits for happens in another task or process.
    """

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._pause = FIRST
        self._until = time.monotonic() + LIMIT

    async def wait(self) -> None:
        """Wait for one pause.

        Raises:
            StoreBusyError: It has taken too long in all.
        """
        if time.monotonic() > self._until:
            raise StoreBusyError(f"thread {self._thread_id!r} stayed reserved by a purge or a first save for too long")
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST)
