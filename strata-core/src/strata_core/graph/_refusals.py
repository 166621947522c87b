"""Refusals to begin a run."""

from __future__ import annotations

from typing import Any

from strata_core.graph._journal import Journal, RefusedError
from strata_core.graph._results import Failed, FailureCode

__all__ = ["refuse_existing", "refuse_run"]


def refuse_existing(thread_id: str, node: str | None = None) -> Failed:
    """Refuse to begin a thread that exists.

    Args:
        thread_id: The thread.
        node: Where the run stopped when it turned out that another one was faster; None when nothing has run.
    """
    text = f"thread '{thread_id}' exists already; resume it, or give the new execution an ID of its own"
    if node is not None:
        text += "; another run began it meanwhile, and this one wrote nothing"
    return Failed(thread_id, FailureCode.THREAD_EXISTS, text, node)


async def refuse_run(thread_id: str, journal: Journal[Any], refused: RefusedError) -> Failed:
    """Tell why a run could not take its thread."""
    # A lease is seen before the row below it; only one without a row is in the way of a thread that is to be new.
    if journal.fresh and (not refused.held or await journal.latest() is not None):
        return refuse_existing(thread_id)
    text = f"somebody holds a live lease on thread '{thread_id}'; wait until it is given back or expires"
    return Failed(thread_id, FailureCode.LEASE_HELD, text)
