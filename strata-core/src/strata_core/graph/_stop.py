"""Stopping a run from outside: token, deadline, lost lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from strata_core.clock import Clock
from strata_core.errors import UsageError
from strata_core.graph._alarm import set_alarm
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._results import CancelReason

__all__ = ["AnyStop", "Stop", "StoppedError"]

T = TypeVar("T")


class StoppedError(Exception):
    """What a guarded await raises when the run has to stop."""


class AnyStop(Protocol):
    """What a level of a run knows of being stopped: a `Stop`, or what stands for it in tasks of their own."""

    @property
    def token(self) -> CancellationToken:
        """Tells nodes that they have to stop."""

    @property
    def cancelled_from_outside(self) -> bool:
        """Whether a cancellation that arrives now is no node's own."""

    @property
    def abandons(self) -> bool:
        """Whether what cannot be interrupted, such as a thread, is not even waited for."""

    def check(self) -> CancelReason | None:
        """Return why the level has to stop, if it has to."""

    async def guard(self, awaitable: Awaitable[T], *, only_lost: bool = False) -> T:
        """Await something that a stop interrupts.

        Args:
            awaitable: What to await.
            only_lost: Interrupt it only when nothing that it comes to can count any more.

        Raises:
            StoppedError: The run has to stop.
            asyncio.CancelledError: Somebody else has cancelled the task.
        """


class Stop:
    """Watches whatever may stop one run, and interrupts what that is awaiting.

    A run is interrupted as `asyncio.timeout` does it: its task is cancelled, and the cancellation is taken back where
    it arrives.  So a node needs no task of its own.

    Args:
        clock: Measures the deadline.
        deadline: When to stop, as an aware time or counted from now; None for never.
        token: The user's token; None for none.

    Attributes:
        is_overdue: Tells whether the run's lease has run out, although nobody has noticed yet; None without a lease.
        why_lost: Tells why the run's lease is lost, for people; None without a lease.
        reason: Why the run has to stop; None as long as it need not.
        token: Tells nodes that it has to stop.
    """

    __slots__ = ("_call_off", "_cancelled_before", "_clock", "_deadline_at", "_inside", "_interrupted", "_loop",
                 "_only_lost", "_task", "_token", "is_overdue", "reason", "token", "why_lost")  # fmt: skip

    def __init__(self, clock: Clock, deadline: datetime | timedelta | None, token: CancellationToken | None) -> None:
        task = asyncio.current_task()
        if task is None:
            raise UsageError("a graph runs inside a task; use asyncio.run or run_sync")
        self._task = task
        self._cancelled_before = task.cancelling()
        self._clock = clock
        self._token = token
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline_at: float | None = None
        self._inside = False
        self._only_lost = False
        self._interrupted = False
        self._call_off: list[Callable[[], None]] = []
        self.is_overdue: Callable[[], bool] | None = None
        self.why_lost: Callable[[], str] | None = None
        self.reason: CancelReason | None = None
        self.token = CancellationToken()
        if deadline is not None or token is not None:
            self._watch(deadline)

    def _watch(self, deadline: datetime | timedelta | None) -> None:
        if deadline is not None:
            left = deadline if isinstance(deadline, timedelta) else deadline - self._clock.now()
            self._deadline_at = self._clock.monotonic() + left.total_seconds()
            if left > timedelta(0):
                self._call_off.append(
                    set_alarm(self._clock, self._deadline_at, lambda: self.fire(CancelReason.DEADLINE))
                )
        if self._token is not None:
            self._loop = asyncio.get_running_loop()
            self._call_off.append(self._token.subscribe(self._on_token))

    def _on_token(self) -> None:
        """Called by whoever cancels the token, from any thread, perhaps from inside the node itself."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.fire, CancelReason.CANCELLED)

    @property
    def detail(self) -> str | None:
        """What the user's token gave as its reason, when that is why the run stops; or why the lease was lost."""
        if self.reason is CancelReason.LEASE_LOST:
            return None if self.why_lost is None else self.why_lost()
        return self._token.reason if self._token is not None and self.reason is CancelReason.CANCELLED else None

    def check(self) -> CancelReason | None:
        """Return why the run has to stop, if it has to; also when the loop had no turn to notice."""
        if self.reason is None:
            if self._token is not None and self._token.is_cancelled:
                self._note(CancelReason.CANCELLED)
            elif self._deadline_at is not None and self._clock.monotonic() >= self._deadline_at:
                self._note(CancelReason.DEADLINE)
            elif self.is_overdue is not None and self.is_overdue():
                self._note(CancelReason.LEASE_LOST)
        return self.reason

    def fire(self, reason: CancelReason) -> None:
        """Stop the run.  Called from the event loop, never from inside the run's own task."""
        self._note(reason)
        if self._inside and not self._interrupted and (reason is CancelReason.LEASE_LOST or not self._only_lost):
            self._interrupted = True
            self._task.cancel()

    def _note(self, reason: CancelReason) -> None:
        # Whoever has lost the lease must not write, whatever else happened before.
        if self.reason is None or reason is CancelReason.LEASE_LOST:
            self.reason = reason
        self.token.cancel()

    async def guard(self, awaitable: Awaitable[T], *, only_lost: bool = False) -> T:
        """Await something that a stop interrupts at once.

        Args:
            awaitable: What to await.
            only_lost: Interrupt it only when the lease is lost, so that nothing it comes to can count any more.

        Raises:
            StoppedError: The run has to stop.
            asyncio.CancelledError: The task was cancelled by somebody else.
        """
        cancelling = self._task.cancelling()
        self._inside, self._only_lost = True, only_lost
        if self.reason is not None:  # it fired while nothing could be interrupted, such as a thread
            asyncio.get_running_loop().call_soon(self.fire, self.reason)
        try:
            result = await awaitable
        except BaseException as error:
            self._inside = False
            if not self._interrupted:
                raise
            self._interrupted = False
            if self._task.uncancel() > cancelling:
                raise asyncio.CancelledError from error
            if isinstance(error, Exception | asyncio.CancelledError):
                raise StoppedError from error
            raise
        self._inside = False
        if self._interrupted:  # the node took the cancellation and finished all the same
            self._interrupted = False
            if self._task.uncancel() > cancelling:
                raise asyncio.CancelledError
        return result

    @property
    def cancelled_from_outside(self) -> bool:
        """Whether somebody else has cancelled the run's task since it began."""
        return self._task.cancelling() > self._cancelled_before

    @property
    def abandons(self) -> bool:
        """Whether the run ends without waiting for what it cannot interrupt: its lease, or its caller, is gone."""
        own = 1 if self._interrupted else 0
        return self.reason is CancelReason.LEASE_LOST or self._task.cancelling() - own > self._cancelled_before

    async def clear(self) -> None:
        """Let a cancellation arrive that was asked for before the run began, lest it looks like a node's own.

        Raises:
            asyncio.CancelledError: There was one, and nobody has caught it yet.
        """
        if self._cancelled_before:
            await asyncio.sleep(0)

    def close(self) -> None:
        """Stop watching."""
        for call_off in self._call_off:
            call_off()
        self._call_off.clear()
