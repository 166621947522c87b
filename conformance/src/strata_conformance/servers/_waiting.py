"""Waiting for something that another process does: by looking, and never longer than a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["PATIENCE", "wait_until"]

PATIENCE: Final = 60.0
"""Seconds until a server that does not come up or go down is a failure; only a broken or starved one takes so long."""


def wait_until(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Look every few milliseconds until a condition holds.

    Args:
        holds: The condition.
        seconds: The bound.

    Returns:
        Whether it came to hold.
    """
    end = time.monotonic() + seconds
    pause = 0.001
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    return True
