"""Time as an argument: what the engine and the stores ask a clock for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "SystemClock", "from_micros", "micros"]


def _choose_monotonic() -> Callable[[], float]:
    """Return the clock that goes on while the machine sleeps: leases run out in the meantime.

    That is a clock of its own on Linux; elsewhere the monotonic clock of POSIX is the best there is.
    """
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):
        if (number := getattr(time, name, None)) is not None:
            return partial(time.clock_gettime, number)
    return time.monotonic


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Tells the time and waits.  Tests inject `strata_core.testing.FakeClock`."""

    def now(self) -> datetime:
        """Return the time of day, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes backwards; only differences mean something.

        It goes on while the process is stopped or the machine sleeps: whoever wakes up must see that a lease ran out.
        """
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long on this clock."""
        ...


class SystemClock:
    """The machine's clock."""

    # Asked several times a node: no frame of Python stands between.
    now: Callable[[], datetime] = staticmethod(partial(datetime.now, UTC))
    monotonic: Callable[[], float] = staticmethod(_choose_monotonic())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Final = SystemClock()


def micros(moment: datetime) -> int:
    """Return microseconds since 1970 in UTC, exactly; `moment` must be aware."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(count: int) -> datetime:
    """Return the aware UTC time that is `count` microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=count)
