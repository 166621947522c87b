"""Going on with a thread that stopped."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from strata_core._validation import check_thread_id
from strata_core.errors import InvalidInputError
from strata_core.graph._begin import open_journal, take_over
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._inputs import check_limits, check_store
from strata_core.graph._journal import RefusedError, UnsavableStateError
from strata_core.graph._keys import read_visit, user_metadata
from strata_core.graph._plan import Plan
from strata_core.graph._results import Failed, FailureCode, RunResult
from strata_core.graph._resume import Reentry, plan_reentry
from strata_core.graph._run import Run
from strata_core.graph._signals import HumanSignal
from strata_core.graph._stop import Stop
from strata_core.ports import CheckpointStore

__all__ = ["reenter", "resume_thread"]

S = TypeVar("S")


async def resume_thread(
    plan: Plan[S],
    thread_id: str,
    signal: HumanSignal | None,
    store: CheckpointStore,
    *,
    deadline: datetime | timedelta | None,
    cancellation: CancellationToken | None,
) -> RunResult[S]:
    """Do what `CompiledGraph.resume` promises."""
    check_thread_id(thread_id)
    if signal is not None and not isinstance(signal, HumanSignal):
        raise InvalidInputError("signal", f"must be a HumanSignal or None, not {type(signal).__name__}")
    check_store(store)
    check_limits(deadline, cancellation)
    stop = Stop(plan.clock, deadline, cancellation)
    try:
        found = plan_reentry(plan, thread_id, await store.load(thread_id), signal)
    except BaseException:
        stop.close()
        raise
    if isinstance(found, Failed):
        stop.close()
        return found
    return await reenter(plan, store, found, stop)


async def reenter(plan: Plan[S], store: CheckpointStore, found: Reentry[S], stop: Stop) -> RunResult[S]:
    """Take a stopped thread over and run it from where it goes on; closes `stop`."""
    thread_id = found.entry.checkpoint.thread_id
    pairs = user_metadata(found.entry.checkpoint.metadata)
    journal = open_journal(plan, thread_id, store, pairs, stop)
    journal.decision = found.decision
    journal.carried = read_visit(found.entry.checkpoint.metadata)
    run = Run(plan, thread_id, journal, stop, pairs)
    run.node, run.state = found.node, found.state
    run.show(found.decision)

    async def begin() -> RunResult[S] | None:
        try:
            await take_over(plan, journal, store, found)
        except UnsavableStateError as error:
            text = f"thread '{thread_id}' refuses the signal: the state cannot be saved with it; it still waits"
            return Failed(thread_id, FailureCode.INVALID_SIGNAL, text, detail=str(error.cause))
        except RefusedError as error:
            if error.held:
                text = f"somebody holds a live lease on thread '{thread_id}'; wait until it is given back or expires"
                return Failed(thread_id, FailureCode.LEASE_HELD, text)
            text = f"somebody else has resumed thread '{thread_id}'"
            return Failed(thread_id, FailureCode.ALREADY_RESUMED, text)
        return None

    return await run.guarded(begin())
