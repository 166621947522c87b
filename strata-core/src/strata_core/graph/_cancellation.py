"""Asking a run to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from strata_core._validation import check_text

__all__ = ["CancellationToken"]

_logger: Final = logging.getLogger("strata_core.graph")


class CancellationToken:
    """Asks every run it was given to, to stop; once, for good.

    Usable from other tasks and from other threads.  One token may serve many runs.  A run that is asked to stop
    interrupts an async node and a retry delay at once, and lets a ``def`` node finish and commit.  When nodes are left,
    it then writes a `cancelled` checkpoint and returns `Cancelled`; when that was the last node, or a boundary node,
    the run has come to its end and returns `Completed` or `Interrupted`.
    """

    __slots__ = ("_listeners", "_lock", "_reason", "_set")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, Callable[[], None]] = {}
        self._set = False
        self._reason: str | None = None

    def __repr__(self) -> str:
        return f"<CancellationToken {'cancelled' if self._set else 'live'}>"

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._set

    @property
    def reason(self) -> str | None:
        """What the first `cancel` gave as its reason."""
        return self._reason

    def cancel(self, reason: str | None = None) -> None:
        """Ask to stop.  Idempotent: only the first call counts.

        Args:
            reason: Why, for people to read.

        Raises:
            InvalidInputError: `reason` is no str, or has a NUL or a lone surrogate.
        """
        if reason is not None:
            check_text(reason, "reason")
        with self._lock:
            if self._set:
                return
            self._reason = reason
            self._set = True
            listeners = list(self._listeners.values())
            self._listeners.clear()
        for listener in listeners:
            _tell(listener)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` once, from whichever thread cancels; at once when that has happened.

        What it raises is logged, and keeps neither the other listeners nor a run from stopping.

        Returns:
            A function that ends the subscription; idempotent.
        """
        key = object()
        with self._lock:
            if not self._set:
                self._listeners[key] = listener
                return lambda: self._unsubscribe(key)
        _tell(listener)
        return lambda: None

    def _unsubscribe(self, key: object) -> None:
        with self._lock:
            self._listeners.pop(key, None)


def _tell(listener: Callable[[], None]) -> None:
    try:
        listener()
    except Exception as error:  # noqa: BLE001  # whoever stops a run must not depend on who else listens
        _logger.error("a listener to a cancellation failed: %s", type(error).__name__)
