"""Keeping a lease alive while a run goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from strata_core.clock import Clock
from strata_core.errors import ConflictError
from strata_core.graph._alarm import set_alarm
from strata_core.ports import CheckpointStore
from strata_core.records import Lease

__all__ = ["LeaseKeeper"]

_logger: Final = logging.getLogger("strata_core.graph")

_TAKEN: Final = "the store says that it has expired, or that somebody else has taken the thread"


class LeaseKeeper:
    """Renews a lease at a third of its life, in the background, and says when it is lost.

    The lease counts as lost when its ttl has passed on this process's own monotonic clock since the last successful
    acquire or renew was SENT: the store may judge it later, never earlier.  A store that does not answer a renewal is
    asked again until then.

    Args:
        store: Where the lease was taken.
        lease: The lease.
        ttl: Its life.
        sent: When the acquire was sent, on the clock's monotonic time.
        clock: The clock.
        on_lost: Called once when the lease is lost.
    """

    __slots__ = ("_alarm", "_clock", "_failure", "_on_lost", "_renewal", "_store", "_ttl", "_until", "_why",
                 "is_lost", "lease", "renew_at")  # fmt: skip

    def __init__(
        self,
        store: CheckpointStore,
        lease: Lease,
        ttl: timedelta,
        sent: float,
        clock: Clock,
        on_lost: Callable[[], None],
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._clock = clock
        self._on_lost = on_lost
        self._renewal: asyncio.Task[None] | None = None
        self._alarm: Callable[[], None] | None = None
        self._failure: str | None = None
        self._why: str | None = None
        self.lease = lease
        self.is_lost = False
        self.renew_at = 0.0
        self._until = 0.0
        self._count_from(sent)

    def _count_from(self, sent: float) -> None:
        ttl = self._ttl.total_seconds()
        self._until = sent + ttl
        self.renew_at = sent + ttl / 3

    async def start(self) -> None:
        """Begin to keep the lease.

        A store that made the acquire wait, for longer than a third of the ttl, says nothing about how much of the lease
        is left: it is renewed first.
        """
        if self.is_fresh():
            self._sleep_until(self.renew_at)
        else:
            await self._renew()

    def _sleep_until(self, moment: float) -> None:
        self.renew_at = moment
        if self._alarm is not None:
            self._alarm()
        self._alarm = set_alarm(self._clock, moment, self._wake)

    def _wake(self) -> None:
        now = self._clock.monotonic()
        if now >= self._until:
            self._lose()
            return
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.get_running_loop().create_task(self._renew())
        # A renewal that hangs must not hide that the lease has run out.
        self._alarm = set_alarm(self._clock, self._until, self._wake)

    async def _renew(self) -> None:
        sent = self._clock.monotonic()
        try:
            self.lease = await self._store.renew_lease(self.lease, ttl=self._ttl)
        except ConflictError:
            self._lose(_TAKEN)
        except Exception as error:  # noqa: BLE001  # whatever it is: the lease holds until its time has passed
            self._failure = type(error).__name__
            _logger.warning("lease on thread %r not renewed: %s", self.lease.thread_id, self._failure)
            now = self._clock.monotonic()
            self._sleep_until(now + min(self._until - now, self._ttl.total_seconds() / 12))
        else:
            if not self.is_lost:
                self._failure = None
                self._count_from(sent)
                self._sleep_until(self.renew_at)

    def _lose(self, why: str | None = None) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._why = why or self.why_lost()
            _logger.warning("lease on thread %r is lost: %s", self.lease.thread_id, self._why)
            self._on_lost()

    def why_lost(self) -> str:
        """Tell why the lease is lost, or has run out."""
        if self._why is not None:
            return self._why
        text = f"it was not renewed within its {self._ttl.total_seconds():g} s: "
        if self._renewal is not None and not self._renewal.done():
            return text + "the store did not answer in time"
        if self._failure is not None:
            return text + f"the store failed with {self._failure}"
        return text + "the process, or its event loop, stood still"

    def was_refused(self, *, by_lease: bool) -> None:
        """Note that a save was refused: for the lease itself, or because somebody has written without it."""
        self._why = self._why or (_TAKEN if by_lease else "somebody has written to the thread without it")

    def is_fresh(self) -> bool:
        """Tell whether the lease is held, and need not be renewed yet."""
        return self._clock.monotonic() < self.renew_at and not self.is_lost

    def is_overdue(self) -> bool:
        """Tell whether the lease has run out, also when the loop had no turn to notice."""
        return self._clock.monotonic() >= self._until

    async def ensure(self) -> bool:
        """Tell whether the lease is still held; begin to renew it when that is due.

        A run whose nodes never let the loop turn gives the background no chance: this is what it calls instead.
        """
        now = self._clock.monotonic()
        if now >= self.renew_at and not self.is_lost:
            if now >= self._until:
                self._lose()
            elif self._renewal is None or self._renewal.done():
                self._renewal = asyncio.get_running_loop().create_task(self._renew())
                # One turn sends it.  Its answer is not waited for: the lease holds until its time has passed.
                await asyncio.sleep(0)
        return not self.is_lost

    async def close(self) -> None:
        """Stop renewing, and wait until nothing is under way."""
        self._call_off()
        if self._renewal is not None and not self._renewal.done():
            self._renewal.cancel()
            await asyncio.wait({self._renewal})
            self._call_off()  # a renewal may be done although it was cancelled

    def _call_off(self) -> None:
        if self._alarm is not None:
            self._alarm()
            self._alarm = None
