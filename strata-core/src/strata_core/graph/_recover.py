"""Finishing threads whose process died."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from strata_core._validation import check_thread_id
from strata_core.graph._begin import is_after_wait
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._descent import Place, descend, innermost
from strata_core.graph._every_node import EveryNodeJournal
from strata_core.graph._inputs import check_limits, check_store
from strata_core.graph._journal import RefusedError, UnsavableStateError
from strata_core.graph._keys import AFTER_WAIT, RECOVERED_BY, VISIT, pack_visit, read_visit, user_metadata
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse, refuse_foreign, refuse_missing, refuse_overtaken
from strata_core.graph._rehydrate import rehydrate
from strata_core.graph._results import Failed, FailureCode, RunResult
from strata_core.graph._resume import Reentry, target_of
from strata_core.graph._run import Run
from strata_core.graph._stop import Stop
from strata_core.graph._sweep import ListingStore, SweepReport, sweep
from strata_core.graph._texts import fit
from strata_core.ports import CheckpointStore
from strata_core.records import CheckpointStatus, LogEntry, ThreadQuery, ThreadState

__all__ = ["recover_thread", "recover_threads"]

S = TypeVar("S")

_RESUMED: Final = (
    "was resumed under CheckpointPolicy.BOUNDARIES, which does not tell how far it came: it may run, have completed or "
    "have died; if it died, end it with graph.end() and run it anew under another ID"
)
_REFUSALS: Final = {
    ThreadState.COMPLETED: (FailureCode.COMPLETED, "has completed"),
    ThreadState.ENDED: (FailureCode.ENDED, "was ended"),
    ThreadState.INTERRUPTED: (FailureCode.NOT_RUNNING, "waits; nothing is to be recovered until it is answered"),
    ThreadState.FAILED: (FailureCode.NOT_RUNNING, "has failed; graph.resume() tries its node again"),
    ThreadState.CANCELLED: (FailureCode.NOT_RUNNING, "was cancelled; graph.resume() goes on with it"),
    ThreadState.RESUMED: (FailureCode.NOT_RECOVERABLE, _RESUMED),
}


async def recover_thread(
    plan: Plan[S],
    thread_id: str,
    store: CheckpointStore,
    *,
    deadline: datetime | timedelta | None = None,
    cancellation: CancellationToken | None = None,
) -> RunResult[S]:
    """Do what `CompiledGraph.recover` promises."""
    check_thread_id(thread_id)
    check_store(store)
    check_limits(deadline, cancellation)
    stop = Stop(plan.clock, deadline, cancellation)
    try:
        found = _place(plan, thread_id, await store.load(thread_id))
    except BaseException:
        stop.close()
        raise
    if isinstance(found, Failed):
        stop.close()
        return found
    return await _take_over(plan, store, found, stop)


def _place(plan: Plan[S], thread_id: str, entry: LogEntry | None) -> Reentry | Failed:
    """Return where a thread goes on, and with which states; or why it does not."""
    if entry is None:
        return refuse_missing(plan, thread_id)
    checkpoint = entry.checkpoint
    foreign = refuse_foreign(plan, checkpoint)
    if foreign is not None:
        return foreign
    if checkpoint.state is not ThreadState.RUNNING:
        return refuse(thread_id, *_REFUSALS[checkpoint.state])
    floors = descend(plan, checkpoint)
    if isinstance(floors, Failed):
        return floors
    places = []
    for floor, inside in zip(floors, [*floors[1:], None], strict=True):
        node = target_of(floor) if inside is None else inside.around
        if isinstance(node, Failed):
            return node
        state = rehydrate(floor.plan, floor.checkpoint, path=floor.path)
        if isinstance(state, Failed):
            return state
        places.append(Place(floor.plan, floor.around, node, state[0], floor.checkpoint.decision))
    return Reentry(entry, places)


async def _take_over(plan: Plan[S], store: CheckpointStore, found: Reentry, stop: Stop) -> RunResult[S]:
    """Take the lease together with a new running row, and run from there.

    Under a lease and after every node whatever the graph's own policy: a thread that was begun so stays so.
    """
    entry, checkpoint = found.entry, found.entry.checkpoint
    thread_id = checkpoint.thread_id
    pairs = user_metadata(checkpoint.metadata)
    journal = EveryNodeJournal(plan, thread_id, pairs, store, stop)
    # The node that ran when the process died is told the key that it was told then.
    journal.carried = read_visit(checkpoint.metadata) or (entry.revision.write_id, 0)
    run = Run(plan, thread_id, journal, stop, pairs)
    run.stand(found.places, after_wait=is_after_wait(checkpoint))
    run.note_last(innermost(checkpoint).suspended_node)
    extra = {VISIT: pack_visit(*journal.carried), RECOVERED_BY: fit(journal.owner)}
    if run.after_wait:
        extra[AFTER_WAIT] = checkpoint.metadata[AFTER_WAIT]

    async def begin() -> RunResult[S] | None:
        try:
            await journal.take(CheckpointStatus.RUNNING, run.standing(CheckpointStatus.RUNNING), entry.revision, extra)
        except UnsavableStateError as error:
            text = f"failed to rehydrate state for thread '{thread_id}'"
            detail = f"what upcast returned cannot be saved: {error.cause}"
            return Failed(thread_id, FailureCode.REHYDRATION_FAILED, text, detail=detail, error=error.cause)
        except RefusedError as error:
            if error.held:
                text = "is held by a live lease: it runs, or its process died so recently that its lease is still live"
                return refuse(thread_id, FailureCode.LEASE_HELD, text)
            return await refuse_overtaken(store, entry, error)
        return None

    return await run.guarded(begin())


async def recover_threads(plan: Plan[S], store: ListingStore, *, limit: int, concurrency: int) -> SweepReport[S]:
    """Do what `CompiledGraph.recover_all` promises."""
    dead = ThreadQuery(states={ThreadState.RUNNING}, leased=False, oldest_first=True)
    recover = partial(recover_thread, plan, store=store)
    return await sweep(plan, store, dead, recover, limit=limit, concurrency=concurrency)
