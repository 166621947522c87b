"""An event loop in a thread of its own, for whoever has none or blocks it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

__all__ = ["LoopThread"]

T = TypeVar("T")

_PATIENCE: Final = 20.0
"""Seconds after which work that hangs is an error."""


class LoopThread:
    """Runs coroutines for a caller who waits for them.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._loop: Final = asyncio.new_event_loop()
        # A daemon: a test that forgets to stop it must not keep its process alive.
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and return what it returns.

        Raises:
            TimeoutError: It takes longer than 20 seconds.
            BaseException: What it raises.
        """
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    def stop(self) -> None:
        """End the loop and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()
