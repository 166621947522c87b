"""Beginning a new execution of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeVar

from strata_core._validation import check_thread_id
from strata_core.graph._begin import open_journal, own_state
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._inputs import check_if_exists, check_limits, check_store
from strata_core.graph._journal import Position, RefusedError, UnsavableStateError
from strata_core.graph._keys import check_user_metadata
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse_run
from strata_core.graph._results import RunResult
from strata_core.graph._run import Run
from strata_core.graph._stop import Stop
from strata_core.ports import CheckpointStore

if TYPE_CHECKING:
    from strata_core.graph._emitter import Emitter

__all__ = ["start_thread"]

S = TypeVar("S")


async def start_thread(
    plan: Plan[S],
    thread_id: str,
    state: S,
    store: CheckpointStore | None,
    *,
    metadata: Mapping[str, str] | None,
    deadline: datetime | timedelta | None,
    cancellation: CancellationToken | None,
    if_exists: Literal["append", "error"],
    emitter: Emitter | None = None,
) -> RunResult[S]:
    """Do what `CompiledGraph.run` promises."""
    check_thread_id(thread_id)
    if store is not None:
        check_store(store)
    pairs = check_user_metadata(metadata)
    check_limits(deadline, cancellation)
    fresh = check_if_exists(if_exists)
    state = own_state(plan, state, store)
    stop = Stop(plan.clock, deadline, cancellation)
    journal = open_journal(plan, thread_id, store, pairs, stop)
    journal.fresh = fresh
    run = Run(plan, thread_id, journal, stop, pairs, emitter)
    run.node, run.state = plan.entry, state

    async def begin() -> RunResult[S] | None:
        await stop.clear()
        try:
            await journal.start(Position(None, plan.entry.name, state))
        except UnsavableStateError as error:
            raise error.cause from None
        except RefusedError as error:
            return await refuse_run(thread_id, journal, error)
        return None

    return await run.guarded(begin())
