"""Time as an argument: what the engine and the stores ask a clock for."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

__all__ = ["SYSTEM_CLOCK", "Clock", "SystemClock", "from_micros", "micros"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Clock(Protocol):
    """Tells the time and waits.  Tests inject `strata_core.testing.FakeClock`."""

    def now(self) -> datetime:
        """Return the time of day, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes backwards; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long on this clock."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


SYSTEM_CLOCK: Final = SystemClock()


def micros(moment: datetime) -> int:
    """Return microseconds since 1970 in UTC, exactly; `moment` must be aware."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(count: int) -> datetime:
    """Return the aware UTC time that is `count` microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=count)
