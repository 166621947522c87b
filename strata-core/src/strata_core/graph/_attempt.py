"""One visit to a node: its attempts, until one returns a state or none is left."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from strata_core.graph._context import NodeContext, visit_key
from strata_core.graph._copying import isolate
from strata_core.graph._handlers import Handler
from strata_core.graph._inside import LevelFailedError
from strata_core.graph._nodes import Body, Node, Router
from strata_core.graph._results import FailureCode
from strata_core.graph._stop import StoppedError

if TYPE_CHECKING:
    from strata_core.graph._level import Level

"ask"

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")


class NodeFailedError(Exception):
    """A node has failed for good; `cause` is the error of its last attempt, `inner` what failed inside of it."""

    def __init__(self, cause: BaseException, attempts: int, inner: LevelFailedError | None = None) -> None:
        super().__init__()
        self.cause = cause
        self.attempts = attempts
        self.inner = inner


class NodeReturnError(TypeError):
    """A node returned something that is no state of its graph."""


class NodeCancelledError(RuntimeError):
    """A node was cancelled by something it awaited, while nobody cancelled the run."""


class RoutingError(Exception):
    """A router failed, or named a node that is none of its targets."""


async def visit(level: Level[S], node: Node, first: BaseException | None = None) -> S:
    """Run a node until an attempt returns a state.

    Args:
        level: The level that it is a node of.
        node: The node.
        first: What the first attempt has raised already; None when the node has not been tried.

    Raises:
        NodeFailedError: No attempt is left.
        StoppedError: The run has to stop.
    """
    failures = 0
    while True:
        error: Exception
        try:
            if first is not None:
                tried = first
                first = None
                raise tried
            return await _attempt(level, node, failures + 1)
        except StoppedError:
            raise
        except Exception as caught:  # noqa: BLE001  # a node is a user's code: whatever it raises is its failure
            error = caught
        except asyncio.CancelledError:
            if level.stop.cancelled_from_outside:
                raise
            error = NodeCancelledError("something that it awaited was cancelled")
        failures += 1
        await _wait_for_next(level, node, failures, error)


async def visit_body(level: Level[S], node: Node, body: Body) -> S:
    """Run a node that consists of others, until an attempt comes to a state; see `visit`.

    Raises:
        NodeFailedError: No attempt is left.
        PausedError: The thread waits inside.
        StoppedError: The run has to stop.
    """
    failures = 0
    while True:
        level.attempt = failures + 1
        try:
            return cast("S", await body.attempt(level, node))
        except LevelFailedError as error:
            failures += 1
            await _wait_for_next(level, node, failures, error.cause, error)


async def _wait_for_next(
    level: Level[S], node: Node, failures: int, error: BaseException, inner: LevelFailedError | None = None
) -> None:
    """Wait until a node is tried again.

    Raises:
        NodeFailedError: No attempt is left.
        StoppedError: The run has to stop.
    """
    retry = node.retry
    if retry is None:
        raise NodeFailedError(error, failures, inner)
    try:
        again = retry.wants(failures, error)
    except Exception as caught:  # noqa: BLE001  # retry_on is a user's code as well
        raise NodeFailedError(caught, failures) from error
    if not again:
        raise NodeFailedError(error, failures, inner)
    _logger.info(
        "thread %r: attempt %d of node %r failed: %s", level.thread_id, failures, node.name, type(error).__name__
    )
    delay = retry.delay(failures)
    emitter = level.emitter
    if emitter is not None:
        emitter.retry(level, node, failures, error, delay)
    if level.stop.check() is None and delay > 0:
        await level.stop.guard(level.clock.sleep(delay))
    if level.stop.check() is not None:
        raise StoppedError
    if emitter is not None:
        await emitter.begin(level, node, failures + 1)


async def _attempt(level: Level[S], node: Node, number: int) -> S:
    state = isolate(level.state)
    handler = node.handler
    level.attempt = number
    if node.blocking:
        ctx = context(level, node) if handler.wants_context else None
        result = await level.stop.guard(call_in_thread(handler, state, ctx), only_lost=True)
    else:
        result = handler.call(state, context(level, node)) if handler.wants_context else handler.call(state)
        if handler.is_async:
            result = await level.stop.guard(result)
    return cast("S", result) if type(result) is level.state_class else await as_state(level, node, result)


async def as_state(level: Level[S], node: Node, result: Any) -> S:
    """Return what a node returned as a state, or await it first.

    Raises:
        NodeReturnError: It is no state of the graph.
    """
    if hasattr(result, "__await__"):
        result = await level.stop.guard(result)
    if not isinstance(result, level.state_class):
        raise NodeReturnError(
            f"node {node.name!r} returned {type(result).__name__}, not {level.state_class.__name__}; "
            "a node returns the next state"
        )
    return cast("S", result)


async def call_in_thread(handler: Handler, state: Any, ctx: NodeContext[Any] | None) -> Any:
    """Run a blocking handler in a thread, with the caller's context variables."""

    def call() -> tuple[Any, BaseException | None]:
        # The error travels as a value: a future refuses a StopIteration.
        try:
            return (handler.call(state) if ctx is None else handler.call(state, ctx)), None
        except Exception as error:  # noqa: BLE001  # raised again below
            return None, error

    copied: Callable[..., tuple[Any, BaseException | None]] = contextvars.copy_context().run
    result, error = await asyncio.get_running_loop().run_in_executor(None, copied, call)
    if error is not None:
        raise error
    return result


async def ask(level: Level[S], node: Node, handler: Handler, state: S) -> Any:
    """Ask a user's function something about the state that a node has returned."""
    given = isolate(state)
    answer = handler.call(given, context(level, node)) if handler.wants_context else handler.call(given)
    return await level.stop.guard(answer) if handler.is_async or hasattr(answer, "__await__") else answer


async def consult(level: Level[S], what: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that belongs to a node that consists of others.

    Args:
        level: The level that it is a node of.
        what: What the function is, for people.
        function: A user's function; it may give an awaitable.
        args: What it is given, as its own.

    Raises:
        LevelFailedError: It has failed.
        StoppedError: The run has to stop.
    """
    error: Exception
    try:
        result = function(*args)
        return await level.stop.guard(result) if hasattr(result, "__await__") else result
    except StoppedError:
        raise
    except Exception as caught:  # noqa: BLE001  # a user's code
        error = caught
    except asyncio.CancelledError:
        if level.stop.cancelled_from_outside:
            raise
        error = NodeCancelledError("something that it awaited was cancelled")
    raise LevelFailedError(FailureCode.NODE_FAILED, f"{what} failed", error) from error


async def consult_state(level: Level[Any], what: str, wanted: type, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that belongs to a node that consists of others, and gives a state of that class; see `consult`.

    Raises:
        LevelFailedError: It has failed, or gave something else.
        StoppedError: The run has to stop.
    """
    state = await consult(level, what, function, *args)
    if not isinstance(state, wanted):
        problem = NodeReturnError(f"{what} returned {type(state).__name__}, not {wanted.__name__}")
        raise LevelFailedError(FailureCode.INVALID_STATE, f"{what} failed", problem)
    return state


async def choose_way(level: Level[S], node: Node, router: Router, state: S) -> Node:
    """Ask a router where a node goes on.

    Raises:
        RoutingError: It failed, or named a node that is none of its targets.
        StoppedError: The run has to stop.
    """
    try:
        name = await ask(level, node, router.handler, state)
        target = router.targets.get(name) if isinstance(name, str) else None
    except StoppedError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and level.stop.cancelled_from_outside:
            raise
        raise RoutingError(f"the router of node {node.name!r} failed") from error
    if target is None:
        # Only of an exact str is the repr certain to come to an end.
        named = f"named {name!r}" if type(name) is str else f"returned {type(name).__name__}, not a name"
        raise RoutingError(f"the router of node {node.name!r} {named}; its targets are {', '.join(router.targets)}")
    return target


def context(level: Level[S], node: Node) -> NodeContext[S]:
    """Return what a node is told besides the state."""
    emitter = level.emitter
    return NodeContext(
        level.thread_id,
        node.name,
        level.attempt,
        level.shown_decision,
        level.shown_metadata,
        level.stop.token,
        visit_key(level.thread_id, level.path + node.name, level.trail),
        None if emitter is None else emitter.writer(level.path, node.name),
    )
