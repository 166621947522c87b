"""Helpers for tests of applications and plugins; needs no test framework."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["FakeClock"]

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until it is moved.

    It serves `strata_core.clock.Clock`, so stores and graphs take it as their clock.

    Args:
        start: The time it shows at first; aware.
    """

    def __init__(self, start: datetime = _START) -> None:
        self._start = start.astimezone(UTC)
        self._passed = timedelta(0)
        self._sleepers: list[tuple[timedelta, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return f"FakeClock({self.now().isoformat()})"

    def now(self) -> datetime:
        return self._start + self._passed

    def monotonic(self) -> float:
        return self._passed.total_seconds()

    @property
    def sleepers(self) -> int:
        """How many calls of `sleep` are waiting for the clock to be moved."""
        return sum(not future.done() for _, future in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._passed + timedelta(seconds=seconds), future)
        self._sleepers.append(sleeper)
        try:
            await future
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def advance(self, by: timedelta | float) -> None:
        """Move the clock forward by a timedelta or by seconds, and wake whoever slept long enough."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if step < timedelta(0):
            raise ValueError("a clock cannot go backwards")
        self._passed += step
        for wake_at, future in list(self._sleepers):
            if wake_at <= self._passed and not future.done():
                future.set_result(None)
