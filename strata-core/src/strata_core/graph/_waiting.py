"""What a thread waits for when it stops, and until when."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from strata_core._validation import check_moment, shown
from strata_core.clock import from_micros
from strata_core.errors import InvalidInputError
from strata_core.graph._attempt import ask
from strata_core.graph._handlers import Handler
from strata_core.graph._nodes import Node, Pause
from strata_core.graph._stop import StoppedError
from strata_core.records import Wait, WaitKind

if TYPE_CHECKING:
    from strata_core.graph._level import Level

__all__ = ["TimerError", "begin_wait"]

S = TypeVar("S")


class TimerError(Exception):
    """The function that tells a timer's delay failed, or told none."""


async def begin_wait(level: Level[S], node: Node, pause: Pause, state: S) -> Wait | None:
    """Return the wait of a thread that stops now; None for a person without a timeout.

    Raises:
        TimerError: The delay is not known.
        StoppedError: The run has to stop.
    """
    delay = pause.delay
    if isinstance(delay, Handler):
        due_at: datetime | None = await _ask_delay(level, node, delay, state)
    elif delay is not None:
        try:
            due_at = level.clock.now() + delay
        except OverflowError as error:
            raise TimerError(f"the wait at node {node.name!r} would last beyond the year 9999") from error
    elif pause.kind is WaitKind.PERSON:
        return None
    else:
        due_at = None
    return Wait(pause.kind, pause.event_type, due_at, pause.on_timeout)


async def _ask_delay(level: Level[S], node: Node, handler: Handler, state: S) -> datetime:
    what = f"the delay of the timer at node {node.name!r}"
    try:
        told = await ask(level, node, handler, state)
    except StoppedError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and level.stop.cancelled_from_outside:
            raise
        raise TimerError(f"{what} failed") from error
    try:
        return _moment(told, level.clock.now())
    except InvalidInputError as error:
        raise TimerError(f"{what} {error.problem}") from None
    except Exception as error:
        raise TimerError(f"{what} is no time of the years 1 to 9999") from error


def _moment(told: object, now: datetime) -> datetime:
    """Return the time that a delay counted from now, or a time of day, means.

    Raises:
        InvalidInputError: It means none.
    """
    if isinstance(told, datetime):
        return from_micros(check_moment(told, "delay"))
    if not isinstance(told, timedelta):
        raise InvalidInputError("delay", f"must be a timedelta or an aware datetime, not {type(told).__name__}")
    if told < timedelta(0):
        raise InvalidInputError("delay", f"must not be negative, as {shown(told)} is; for a past time give a datetime")
    return now + told
