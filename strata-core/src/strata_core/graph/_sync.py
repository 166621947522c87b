"""The calls of a graph that need no event loop."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Generic, Literal, TypeVar

from strata_core.graph._blocking import SyncStore, call_sync
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._end import end_thread
from strata_core.graph._plan import Plan
from strata_core.graph._reenter import resume_thread
from strata_core.graph._results import Cancelled, Failed, RunResult
from strata_core.graph._signal import signal_thread
from strata_core.graph._signals import EventSignal, HumanSignal, LevelSignals
from strata_core.graph._start import start_thread
from strata_core.graph._sweep import SweepReport
from strata_core.graph._wake import wake_threads
from strata_core.records import Revision

__all__ = ["SyncCalls"]

S = TypeVar("S")


class SyncCalls(Generic[S]):
    """What a compiled graph does without an event loop: its calls for scripts and threads."""

    __slots__ = ("_plan",)
    _plan: Plan[S]

    def run_sync(
        self,
        thread_id: str,
        state: S,
        store: SyncStore | None = None,
        *,
        metadata: Mapping[str, str] | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
        if_exists: Literal["append", "error"] = "append",
    ) -> RunResult[S]:
        """Do what `run` does, without an event loop: for scripts and threads.

        Args:
            thread_id: The thread.
            state: The state to begin with.
            store: A store that is not open yet, such as what `open_store` returns; open for this call only.
            metadata: As for `run`.
            deadline: As for `run`.
            cancellation: As for `run`.
            if_exists: As for `run`.

        Raises:
            UsageError: An event loop runs in this thread.
        """
        return call_sync(
            "run_sync",
            store,
            lambda opened: start_thread(
                self._plan,
                thread_id,
                state,
                opened,
                metadata=metadata,
                deadline=deadline,
                cancellation=cancellation,
                if_exists=if_exists,
            ),
        )

    def resume_sync(
        self,
        thread_id: str,
        signal: HumanSignal | LevelSignals | None,
        store: SyncStore,
        *,
        expected: Revision | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
    ) -> RunResult[S]:
        """Do what `resume` does, without an event loop; `store` as for `run_sync`.

        Raises:
            UsageError: An event loop runs in this thread.
        """
        return call_sync(
            "resume_sync",
            store,
            lambda opened: resume_thread(
                self._plan,
                thread_id,
                signal,
                opened,
                expected=expected,
                deadline=deadline,
                cancellation=cancellation,
            ),
        )

    def signal_sync(
        self,
        thread_id: str,
        event: EventSignal,
        store: SyncStore,
        *,
        expected: Revision | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
    ) -> RunResult[S]:
        """Do what `signal` does, without an event loop; `store` as for `run_sync`.

        Raises:
            UsageError: An event loop runs in this thread.
        """
        return call_sync(
            "signal_sync",
            store,
            lambda opened: signal_thread(
                self._plan,
                thread_id,
                event,
                opened,
                expected=expected,
                deadline=deadline,
                cancellation=cancellation,
            ),
        )

    def wake_due_sync(self, store: SyncStore, *, limit: int = 100, concurrency: int = 10) -> SweepReport[S]:
        """Do what `wake_due` does, without an event loop, such as from cron; `store` as for `run_sync`.

        Raises:
            UsageError: An event loop runs in this thread.
        """
        return call_sync(
            "wake_due_sync",
            store,
            lambda opened: wake_threads(self._plan, opened, limit=limit, concurrency=concurrency),
        )

    def end_sync(
        self,
        thread_id: str,
        store: SyncStore,
        *,
        by: str | None = None,
        reason: str | None = None,
        expected: Revision | None = None,
    ) -> Cancelled | Failed:
        """Do what `end` does, without an event loop; `store` as for `run_sync`.

        Raises:
            UsageError: An event loop runs in this thread.
        """
        return call_sync(
            "end_sync", store, lambda opened: end_thread(self._plan, thread_id, opened, by, reason, expected)
        )
