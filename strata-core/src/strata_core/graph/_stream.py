"""A run that is watched while it goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, TypeVar

from strata_core._validation import check_int
from strata_core.errors import UsageError
from strata_core.graph._channel import Channel
from strata_core.graph._emitter import Emitter
from strata_core.graph._events import RunEvent
from strata_core.graph._results import RunResult

__all__ = ["RunStream"]

S = TypeVar("S")


class RunStream(Generic[S]):
    """The events of one run, which goes on while they are asked for; what `CompiledGraph.stream` returns.

        async with graph.stream("order-1", order, store) as events:
            async for event in events:
                ...

    Nothing runs before the first event is asked for.  The last one is `RunFinished`, and what the run raises is raised
    in its place.

    A stream that is left before its end ends the run, as cancelling the caller of `run` does: the `cancelled`
    checkpoint is written, the lease given back, and the thread can be resumed.  By the time that the ``async with``
    block is left, `aclose` returns, or a cancellation that came while an event was awaited is raised, all that is done.
    A stream that was not entered does it in the background, soon after a `break`, a `return` or an error in the loop
    has dropped it: then the event loop and the store must stay open long enough.

    To wait for an event for a limited time, keep a task of ``anext(events)`` and use `asyncio.wait`, which does not
    cancel it.  One consumer at a time reads a stream, in the event loop in which it began.
    """

    __slots__ = ("__weakref__", "_channel")

    def __init__(
        self, start: Callable[[Emitter], Coroutine[Any, Any, RunResult[S]]], thread_id: str, buffer: int
    ) -> None:
        async def work() -> RunResult[S]:
            check_int(buffer, "buffer", 0)
            return await start(Emitter(thread_id, channel))

        channel: Channel[S] = Channel(work, buffer)
        self._channel = channel

    def __aiter__(self) -> RunStream[S]:
        return self

    def __anext__(self) -> Awaitable[RunEvent[S]]:
        # No coroutine of the stream's own: its frame, in the traceback of an error, would keep the stream alive.
        return self._channel.ask()

    async def __aenter__(self) -> RunStream[S]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def aclose(self) -> None:
        """Leave the stream: end the run if it still goes on, and wait until that is done.  Idempotent.

        Raises:
            asyncio.CancelledError: The calling task was cancelled; the run has come to its end all the same.
            UsageError: The run goes on in another event loop; it is left as it is.
        """
        await self._channel.close()

    @property
    def result(self) -> RunResult[S]:
        """What the run came to: what `run` or `resume` would have returned.

        Raises:
            UsageError: It has not come to its end, or the stream was left before.
        """
        result = self._channel.result
        if result is None:
            raise UsageError("the run has not come to its end; read its stream until that stops")
        return result

    def __del__(self) -> None:
        self._channel.leave_soon()
