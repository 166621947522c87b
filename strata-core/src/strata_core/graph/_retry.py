"""How often a node is tried."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs

from strata_core._validation import check_int
from strata_core.errors import InvalidInputError

__all__ = ["RetryPolicy"]


def _attempts(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    check_int(value, attribute.name, 1)


def _delay(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None and attribute.name == "max_delay":
        return
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise InvalidInputError(attribute.name, f"must be a timedelta of zero or more, not {value!r}")


def _number(minimum: float, maximum: float) -> Any:
    def check(_: object, attribute: attrs.Attribute[float], value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
            raise InvalidInputError(attribute.name, f"must be a number from {minimum} to {maximum}, not {value!r}")

    return check


def _kinds(value: object) -> object:
    return (value,) if isinstance(value, type) else value


def _retry_on(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, tuple):
        if all(isinstance(kind, type) and issubclass(kind, Exception) for kind in value):
            return
    elif callable(value):
        return
    raise InvalidInputError(attribute.name, "must be an Exception class, a tuple of them, or a function of the error")


@attrs.frozen
class RetryPolicy:
    """How often, and after which delays, a failing node is tried again.

    Every attempt starts from the last committed state.  Attempt 2 waits `initial_delay`, each later one `multiplier`
    times as long, never longer than `max_delay`.

    Attributes:
        max_attempts: How often the node runs at most; 1 means no retry.
        initial_delay: The delay before the second attempt.
        multiplier: By how much each delay grows; at least 1.
        max_delay: The longest delay; None for no limit.
        jitter: The share of each delay that is random, from 0 (none) to 1: a delay of ``d`` becomes one between
            ``d * (1 - jitter)`` and ``d``.
        retry_on: Which errors are worth another attempt: an exception class, a tuple of them, or a function that tells.
    """

    max_attempts: int = attrs.field(default=1, validator=_attempts)
    initial_delay: timedelta = attrs.field(default=timedelta(0), validator=_delay)
    multiplier: float = attrs.field(default=2.0, validator=_number(1, 1e6))
    max_delay: timedelta | None = attrs.field(default=None, validator=_delay)
    jitter: float = attrs.field(default=0.0, validator=_number(0, 1))
    retry_on: Any = attrs.field(default=Exception, converter=_kinds, validator=_retry_on)

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after that many failed attempts."""
        longest = float("inf") if self.max_delay is None else self.max_delay.total_seconds()
        first = self.initial_delay.total_seconds()
        try:
            delay = min(first * float(self.multiplier) ** (failures - 1), longest) if first else 0.0
        except OverflowError:
            delay = longest if longest != float("inf") else first
        if self.jitter:
            from random import random

            delay *= 1 - self.jitter * random()
        return delay

    def wants(self, failures: int, error: BaseException) -> bool:
        """Tell whether the node is tried again after that many failed attempts, the last with this error."""
        if failures >= self.max_attempts:
            return False
        if isinstance(self.retry_on, tuple):
            return isinstance(error, self.retry_on)
        return bool(self.retry_on(error))
