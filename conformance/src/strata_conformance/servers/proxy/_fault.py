"""Faults on the wire, and when they strike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from typing import Final, Literal, TypeAlias

from strata_conformance.servers.proxy._record import Request

__all__ = ["Action", "At", "UnfiredWireFaultError", "WireFault"]

At: TypeAlias = Literal["connect", "request", "reply"]
Action: TypeAlias = Literal["reset", "hang", "cut"]


class UnfiredWireFaultError(AssertionError):
    """A test ended before its faults struck, so it did not test what it says.

    Attributes:
        faults: Those that did not strike.
    """

    def __init__(self, faults: Collection[WireFault]) -> None:
        super().__init__("never struck: " + ", ".join(map(str, faults)))
        self.faults = tuple(faults)


class WireFault:
    """A fault that was planned; the methods of `FaultProxy` make them.

    Attributes:
        at: What it strikes.
        action: What it does.
        fired: How often it has struck.
    """

    def __init__(
        self,
        action: Action,
        at: At,
        nth: int,
        times: int | None,
        match: Callable[[Request], bool] | None,
        after: int = 0,
    ) -> None:
        self.action: Final = action
        self.at: Final = at
        self.after: Final = after
        self.fired = 0
        self._nth: Final = nth
        self._times: Final = times
        self._match: Final = match
        self._seen = 0
        self._is_withdrawn = False
        self._has_fired = threading.Event()
        self._released = asyncio.Event()  # set and awaited in the proxy's loop only

    @property
    def is_unfired(self) -> bool:
        """Whether it is still to strike for the first time."""
        return not self.fired and not self._is_withdrawn

    def wait(self, seconds: float = 10.0) -> None:
        """Wait until it has struck.

        Raises:
            UnfiredWireFaultError: It did not in that time.
        """
        if not self._has_fired.wait(seconds):
            raise UnfiredWireFaultError([self])

    def withdraw(self) -> None:
        """Let it strike no more; that it never did is all right."""
        self._is_withdrawn = True

    def strikes(self, request: Request | None) -> bool:
        """Count what may be struck, and say whether this is."""
        if self._is_withdrawn or (request is not None and self._match is not None and not self._match(request)):
            return False
        self._seen += 1
        return self._seen >= self._nth and (self._times is None or self._seen < self._nth + self._times)

    def fire(self) -> None:
        """Note that it strikes now."""
        self.fired += 1
        self._has_fired.set()

    async def released(self) -> None:
        """Wait until what hangs may go on."""
        await self._released.wait()

    def release(self) -> None:
        """Let what hangs go on; `FaultProxy.release` calls it where the proxy runs."""
        self._released.set()

    def __str__(self) -> str:
        return f"{self.action} at {self.at} {self._nth}"
