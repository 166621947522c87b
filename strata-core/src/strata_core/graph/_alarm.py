"""Being called later, on any clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strata_core.clock import Clock, SystemClock

__all__ = ["set_alarm"]


def set_alarm(clock: Clock, moment: float, callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` once, from the event loop, when the clock's monotonic time has reached `moment`.

    On the machine's clock this is a timer of the loop, which costs next to nothing when it is called off; on any other
    clock it is a task that sleeps.

    Returns:
        A function that calls it off; idempotent.
    """
    loop = asyncio.get_running_loop()
    if isinstance(clock, SystemClock):
        return loop.call_later(max(moment - clock.monotonic(), 0), callback).cancel

    async def wait() -> None:
        while (left := moment - clock.monotonic()) > 0:
            await clock.sleep(left)
        callback()

    task = loop.create_task(wait())

    def call_off() -> None:
        task.cancel()

    return call_off
