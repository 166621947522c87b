"""Going on with a thread that stopped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from strata_core._validation import check_thread_id
from strata_core.errors import InvalidInputError
from strata_core.graph._begin import is_after_wait, open_journal, take_over
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._end import end_expired
from strata_core.graph._inputs import check_expected, check_limits, check_store
from strata_core.graph._journal import RefusedError, UnsavableStateError
from strata_core.graph._keys import read_visit, user_metadata
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse, refuse_overtaken
from strata_core.graph._results import FailureCode, RunResult
from strata_core.graph._resume import Expiry, Reentry, plan_reentry
from strata_core.graph._run import Run
from strata_core.graph._signals import Answer, EventSignal, HumanSignal, LevelSignals
from strata_core.graph._stop import Stop
from strata_core.ports import CheckpointStore
from strata_core.records import Revision

if TYPE_CHECKING:
    from strata_core.graph._emitter import Emitter

__all__ = ["answer_thread", "reenter", "resume_thread"]

S = TypeVar("S")


async def resume_thread(
    plan: Plan[S],
    thread_id: str,
    signal: HumanSignal | LevelSignals | None,
    store: CheckpointStore,
    *,
    expected: Revision | None,
    deadline: datetime | timedelta | None,
    cancellation: CancellationToken | None,
    emitter: Emitter | None = None,
) -> RunResult[S]:
    """Do what `CompiledGraph.resume` promises."""
    answer, outer = _unpack(signal)
    return await answer_thread(
        plan,
        thread_id,
        answer,
        store,
        outer=outer,
        expected=expected,
        deadline=deadline,
        cancellation=cancellation,
        emitter=emitter,
    )


def _unpack(signal: object) -> tuple[Answer, Mapping[tuple[str, ...], Mapping[str, Any]]]:
    if isinstance(signal, LevelSignals):
        return signal.signal, signal.outer
    if signal is None or isinstance(signal, HumanSignal):
        return signal, {}
    hint = "; give it to signal, or LevelSignals.event to resume" if isinstance(signal, EventSignal) else ""
    kind = type(signal).__name__
    raise InvalidInputError("signal", f"must be a HumanSignal, a LevelSignals or None, not {kind}{hint}")


async def answer_thread(
    plan: Plan[S],
    thread_id: str,
    answer: Answer,
    store: CheckpointStore,
    *,
    outer: Mapping[tuple[str, ...], Mapping[str, Any]] | None = None,
    expected: Revision | None = None,
    deadline: datetime | timedelta | None = None,
    cancellation: CancellationToken | None = None,
    emitter: Emitter | None = None,
) -> RunResult[S]:
    """Let a thread go on with an answer, whoever gives it."""
    check_thread_id(thread_id)
    check_store(store)
    check_expected(expected)
    check_limits(deadline, cancellation)
    stop = Stop(plan.clock, deadline, cancellation)
    try:
        found = plan_reentry(plan, thread_id, await store.load(thread_id), answer, outer or {}, expected)
    except BaseException:
        stop.close()
        raise
    if isinstance(found, Reentry):
        return await reenter(plan, store, found, stop, expected, emitter)
    stop.close()
    return await end_expired(plan, store, found.entry, expected) if isinstance(found, Expiry) else found


async def reenter(
    plan: Plan[S],
    store: CheckpointStore,
    found: Reentry,
    stop: Stop,
    expected: Revision | None = None,
    emitter: Emitter | None = None,
) -> RunResult[S]:
    """Take a stopped thread over and run it from where it goes on; closes `stop`."""
    thread_id = found.entry.checkpoint.thread_id
    pairs = user_metadata(found.entry.checkpoint.metadata)
    journal = open_journal(plan, thread_id, store, pairs, stop)
    journal.carried = read_visit(found.entry.checkpoint.metadata)
    run = Run(plan, thread_id, journal, stop, pairs, emitter)
    run.stand(found.places, after_wait=is_after_wait(found.entry.checkpoint))

    async def begin() -> RunResult[S] | None:
        try:
            await take_over(run, store, found)
        except UnsavableStateError as error:
            text = "refuses the signal: the state cannot be saved with it; it still waits"
            return refuse(thread_id, FailureCode.INVALID_SIGNAL, text, str(error.cause))
        except RefusedError as error:
            return await refuse_overtaken(store, found.entry, error, expected)
        return None

    return await run.guarded(begin())
