"""Signalling an event to a thread."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from strata_core.errors import InvalidInputError
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._plan import Plan
from strata_core.graph._reenter import answer_thread
from strata_core.graph._results import RunResult
from strata_core.graph._signals import EventSignal
from strata_core.ports import CheckpointStore
from strata_core.records import Revision

__all__ = ["signal_thread"]

S = TypeVar("S")


async def signal_thread(
    plan: Plan[S],
    thread_id: str,
    event: EventSignal,
    store: CheckpointStore,
    *,
    expected: Revision | None,
    deadline: datetime | timedelta | None,
    cancellation: CancellationToken | None,
) -> RunResult[S]:
    """Do what `CompiledGraph.signal` promises."""
    if not isinstance(event, EventSignal):
        raise InvalidInputError("event", f"must be an EventSignal, not {type(event).__name__}")
    return await answer_thread(
        plan, thread_id, event, store, expected=expected, deadline=deadline, cancellation=cancellation
    )
