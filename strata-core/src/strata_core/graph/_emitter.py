"""How a run tells what it does, when somebody streams it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from strata_core.errors import InvalidInputError
from strata_core.graph._attempt import NodeFailedError, RoutingError
from strata_core.graph._channel import Channel
from strata_core.graph._copying import isolate
from strata_core.graph._events import CheckpointSaved, Emitted, NodeFailed, NodeFinished, NodeRetrying, NodeStarted
from strata_core.graph._inside import LevelFailedError
from strata_core.graph._journal import UnsavableStateError
from strata_core.graph._nodes import Node
from strata_core.graph._results import Completed, Interrupted
from strata_core.graph._stop import StoppedError
from strata_core.graph._waiting import TimerError
from strata_core.records import ThreadState

if TYPE_CHECKING:
    from strata_core.graph._level import Level

__all__ = ["Emitter"]

S = TypeVar("S")
R = TypeVar("R")

_LONGEST: Final = timedelta.max.total_seconds()


class Emitter:
    """Tells the channel of a stream what the levels of its run do.

    A run is held up only before an attempt begins, where it can be stopped as anywhere else; what it has told by then
    was committed, or has failed.
    """

    __slots__ = ("_channel", "_thread_id")

    def __init__(self, thread_id: str, channel: Channel[Any]) -> None:
        self._thread_id = thread_id
        self._channel = channel

    async def step(
        self, level: Level[S], node: Node, step: Callable[[Node], Awaitable[Completed[S] | Interrupted[S] | None]]
    ) -> Completed[S] | Interrupted[S] | None:
        """Do a level's step, and tell of it."""
        await self.begin(level, node, 1)
        try:
            result = await step(node)
        except NodeFailedError as error:
            self._fail(level, node, error.cause)
            raise
        except UnsavableStateError as error:
            self._fail(level, node, error.cause)
            raise
        except (RoutingError, TimerError) as error:
            self._fail(level, node, error.__cause__ or error)
            raise
        if result is None:
            state = level.state
        else:
            state = result.state if isinstance(result, Completed) else result.frozen_state
        self._finish(_names(level.path), node.name, state)
        return result

    async def begin(self, level: Level[Any], node: Node, attempt: int) -> None:
        """Tell that an attempt at a node begins, once there is room for what follows.

        Raises:
            StoppedError: The run has to stop.
        """
        self._channel.tell(NodeStarted(self._thread_id, _names(level.path), node.name, attempt))
        await level.stop.guard(self._channel.room())
        self._check(level)

    def _check(self, level: Level[Any]) -> None:
        """Stop here when whoever reads has kept the loop busy for so long that it could not tell of a deadline."""
        if level.stop.check() is not None:
            raise StoppedError

    def retry(self, level: Level[Any], node: Node, attempt: int, error: BaseException, delay: float) -> None:
        """Tell that an attempt has failed, and that the next one follows after so many seconds."""
        wait = timedelta(seconds=delay) if delay < _LONGEST else timedelta.max
        self._channel.tell(NodeRetrying(self._thread_id, _names(level.path), node.name, attempt, error, wait))

    def _fail(self, level: Level[Any], node: Node, error: BaseException) -> None:
        fallback = None if node.fallback is None else node.fallback.name
        event = NodeFailed(self._thread_id, _names(level.path), node.name, level.attempt, error, fallback)
        self._channel.tell(event)

    def _finish(self, path: tuple[str, ...], name: str, state: Any) -> None:
        try:
            own = isolate(state)
        except Exception as error:  # noqa: BLE001  # a class of a user's says how it is copied
            problem = f"that node {name!r} returned cannot be copied: {type(error).__name__}: {error}"
            self._channel.spoil(InvalidInputError("state", problem))
            return
        self._channel.tell(NodeFinished(self._thread_id, path, name, own))

    def jobs(
        self,
        level: Level[Any],
        node: Node,
        name: Callable[[int], str],
        job: Callable[[int], Coroutine[Any, Any, R]],
    ) -> Callable[[int], Coroutine[Any, Any, R]]:
        """Return what does a branch or an item of a node, by its number, and tells of it.

        Args:
            level: The level of the node.
            node: The node.
            name: Names the branch or item of a number.
            job: Does it, and returns its state.
        """
        path = (*_names(level.path), node.name)
        attempt = level.attempt

        async def tell_and_do(number: int) -> R:
            called = name(number)
            self._channel.tell(NodeStarted(self._thread_id, path, called, attempt))
            await self._channel.room()
            self._check(level)
            try:
                state = await job(number)
            except LevelFailedError as error:
                self._channel.tell(NodeFailed(self._thread_id, path, called, attempt, error.cause))
                raise
            except StoppedError:
                raise
            except Exception as error:
                self._channel.tell(NodeFailed(self._thread_id, path, called, attempt, error))
                raise
            self._finish(path, called, state)
            return state

        return tell_and_do

    def writer(self, path: str, node: str) -> Callable[[Any], Awaitable[None]]:
        """Return what `NodeContext.emit` does at a node, whose level has that path."""
        return partial(self._emit, _names(path), node)

    def _emit(self, path: tuple[str, ...], node: str, value: Any) -> Awaitable[None]:
        self._channel.tell(Emitted(self._thread_id, path, node, value))
        return _Room(self._channel)

    def save(self, sequence: int, state: ThreadState) -> None:
        """Tell that a row was saved."""
        self._channel.tell(CheckpointSaved(self._thread_id, sequence, state))


class _Room:
    """Whoever awaits it waits for the consumer; nobody has to."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel[Any]) -> None:
        self._channel = channel

    def __await__(self) -> Generator[Any, None, None]:
        return self._channel.room().__await__()


def _names(path: str) -> tuple[str, ...]:
    """Return the names in the path of a level, each of which is ended by a NUL."""
    return tuple(path.split("\0")[:-1])
