"""What a graph asks and tells its user around a wait."""

from __future__ import annotations

import asyncio
import logging
from traceback import format_tb
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import attrs

from strata_core.codec import check_json
from strata_core.errors import InvalidInputError
from strata_core.graph._attempt import NodeCancelledError, NodeReturnError, context
from strata_core.graph._copying import isolate
from strata_core.graph._handlers import Handler
from strata_core.graph._nodes import Node
from strata_core.graph._results import Interrupted
from strata_core.graph._stop import Stop, StoppedError

if TYPE_CHECKING:
    from strata_core.graph._level import Level

__all__ = ["ResumeCheckError", "announce", "check_resumed"]

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")


class ResumeCheckError(Exception):
    """`on_resume` has failed; `cause` is its error."""

    def __init__(self, cause: Exception) -> None:
        super().__init__()
        self.cause = cause


async def check_resumed(level: Level[S], check: Handler, node: Node) -> S:
    """Let `on_resume` look at the state before the first node after a wait, and return the state to go on with.

    Raises:
        ResumeCheckError: It raised, or returned what is no state.
        StoppedError: The run has to stop.
    """
    state = isolate(level.state)
    try:
        result: Any = check.call(state, context(level, node)) if check.wants_context else check.call(state)
        if check.is_async or hasattr(result, "__await__"):
            result = await level.stop.guard(result)
    except StoppedError:
        raise
    except Exception as error:
        raise ResumeCheckError(error) from error
    except asyncio.CancelledError as error:
        if level.stop.cancelled_from_outside:
            raise
        raise ResumeCheckError(NodeCancelledError("something that it awaited was cancelled")) from error
    if result is None:
        return level.state
    if not isinstance(result, level.state_class):
        text = f"on_resume returned {type(result).__name__}, not {level.state_class.__name__}"
        raise ResumeCheckError(NodeReturnError(f"{text}; it returns the state to go on with, or None"))
    try:
        check_json(level.plan.codec.dump(cast("S", result)))  # whatever stops the run now must be able to save it
    except InvalidInputError as error:
        raise ResumeCheckError(error) from error
    return cast("S", result)


async def announce(tell: Handler, interrupted: Interrupted[S], stop: Stop) -> None:
    """Call a graph's `on_interrupted`; whatever it raises is logged.

    Raises:
        asyncio.CancelledError: The calling task was cancelled.
    """
    try:
        result = tell.call(attrs.evolve(interrupted, frozen_state=isolate(interrupted.frozen_state)))
        if tell.is_async or hasattr(result, "__await__"):
            await result
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and stop.cancelled_from_outside:
            raise
        # Where it failed, but not what it says, in which there may be something of the state.
        where = "".join(format_tb(error.__traceback__))
        _logger.error(
            "thread %r waits, but on_interrupted failed with %s at\n%s",
            interrupted.thread_id, type(error).__name__, where,
        )  # fmt: skip
