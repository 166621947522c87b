"""Waking the threads whose time has come."""

from __future__ import annotations

from typing import TypeVar

from strata_core.graph._plan import Plan
from strata_core.graph._reenter import answer_thread
from strata_core.graph._signals import DUE
from strata_core.graph._sweep import ListingStore, SweepReport, sweep
from strata_core.records import ThreadQuery, ThreadState

__all__ = ["wake_threads"]

S = TypeVar("S")


async def wake_threads(plan: Plan[S], store: ListingStore, *, limit: int, concurrency: int) -> SweepReport[S]:
    """Do what `CompiledGraph.wake_due` promises."""
    due = ThreadQuery(states={ThreadState.INTERRUPTED}, due_before=plan.clock.now(), oldest_first=True)
    return await sweep(
        plan,
        store,
        due,
        lambda thread_id: answer_thread(plan, thread_id, DUE, store),
        limit=limit,
        concurrency=concurrency,
    )
