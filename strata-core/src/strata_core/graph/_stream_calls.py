"""The calls of a graph that are watched while they go on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._inputs import check_store
from strata_core.graph._plan import Plan
from strata_core.graph._reenter import resume_thread
from strata_core.graph._results import RunResult
from strata_core.graph._signals import HumanSignal, LevelSignals
from strata_core.graph._start import start_thread
from strata_core.ports import CheckpointStore
from strata_core.records import Revision

if TYPE_CHECKING:
    from strata_core.graph._emitter import Emitter
    from strata_core.graph._stream import RunStream

__all__ = ["StreamCalls"]

S = TypeVar("S")


class StreamCalls(Generic[S]):
    """What a compiled graph tells while it runs.  Who does not stream does not even import it."""

    __slots__ = ()
    _plan: Plan[S]

    def stream(
        self,
        thread_id: str,
        state: S,
        store: CheckpointStore | None = None,
        *,
        metadata: Mapping[str, str] | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
        if_exists: Literal["append", "error"] = "append",
        buffer: int = 0,
    ) -> RunStream[S]:
        """Do what `run` does, and tell what happens while it does: `NodeStarted`, `NodeFinished`, `NodeRetrying`,
        `NodeFailed`, `Emitted` and `CheckpointSaved`, and at last `RunFinished` with the result.

        The run waits for whoever reads: by default no attempt, branch or item begins before its `NodeStarted` was read
        and the event after it is asked for, so that nothing goes on behind the reader's back.  With a `buffer` one
        begins as long as fewer events than that wait to be asked for.  What has begun goes on, and tells, without
        waiting.  While the run waits, its lease is renewed, and a deadline, a token or a lost lease stops it.

        Args:
            thread_id: As for `run`.
            state: As for `run`.
            store: As for `run`.
            metadata: As for `run`.
            deadline: As for `run`; a time from now is one from when the first event is asked for.
            cancellation: As for `run`.
            if_exists: As for `run`.
            buffer: How far the run may be ahead, in events; 0 or more.

        Returns:
            The events, to iterate over; nothing runs until the first one is asked for.  Enter it with ``async with``
            where it may be left early.  What `run` raises is raised by the iteration.
        """
        from strata_core.graph._stream import RunStream

        async def start(emitter: Emitter) -> RunResult[S]:
            return await start_thread(
                self._plan,
                thread_id,
                state,
                None if store is None else _told(store, emitter),
                metadata=metadata,
                deadline=deadline,
                cancellation=cancellation,
                if_exists=if_exists,
                emitter=emitter,
            )

        return RunStream(start, thread_id, buffer)

    def stream_resume(
        self,
        thread_id: str,
        signal: HumanSignal | LevelSignals | None,
        store: CheckpointStore,
        *,
        expected: Revision | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
        buffer: int = 0,
    ) -> RunStream[S]:
        """Do what `resume` does, and tell what happens while it does; see `stream`.

        `LevelSignals.event` does so for an event, and `LevelSignals.due` for a thread whose time has come.

        Args:
            thread_id: As for `resume`.
            signal: As for `resume`.
            store: As for `resume`.
            expected: As for `resume`.
            deadline: As for `resume`; a time from now is one from when the first event is asked for.
            cancellation: As for `resume`.
            buffer: As for `stream`.
        """
        from strata_core.graph._stream import RunStream

        async def start(emitter: Emitter) -> RunResult[S]:
            return await resume_thread(
                self._plan,
                thread_id,
                signal,
                _told(store, emitter),
                expected=expected,
                deadline=deadline,
                cancellation=cancellation,
                emitter=emitter,
            )

        return RunStream(start, thread_id, buffer)


def _told(store: CheckpointStore, emitter: Emitter) -> CheckpointStore:
    from strata_core.graph._telling_store import TellingStore

    check_store(store)
    return TellingStore(store, emitter)
