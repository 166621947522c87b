"""Ending a thread."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import Final, TypeVar

import attrs

from strata_core._validation import check_thread_id
from strata_core.errors import ConflictError, InvalidInputError, LeaseHeldError, StoreUnavailableError
from strata_core.graph._inputs import check_store
from strata_core.graph._journal import repeat
from strata_core.graph._keys import ENDED_BY, ENDED_REASON, user_metadata
from strata_core.graph._plan import Plan
from strata_core.graph._results import Cancelled, CancelReason, Failed, FailureCode
from strata_core.graph._resume import refuse_foreign, refuse_missing
from strata_core.graph._texts import fit
from strata_core.ports import CheckpointStore
from strata_core.records import CheckpointStatus, ThreadState

__all__ = ["end_thread"]

S = TypeVar("S")

_log: Final = logging.getLogger("strata_core.graph")


async def end_thread(
    plan: Plan[S], thread_id: str, store: CheckpointStore, by: str | None, reason: str | None
) -> Cancelled | Failed:
    """End a thread where it stands, if nobody has written to it meanwhile and no live lease holds it."""
    check_thread_id(thread_id)
    check_store(store)
    for name, text in (("by", by), ("reason", reason)):
        if text is not None and type(text) is not str:
            raise InvalidInputError(name, f"must be a str, not {type(text).__name__}")
    entry = await store.load(thread_id)
    if entry is None:
        return refuse_missing(plan, thread_id)
    checkpoint = entry.checkpoint
    foreign = refuse_foreign(plan, checkpoint)
    if foreign is not None:
        return foreign
    if checkpoint.state is ThreadState.COMPLETED:
        return Failed(thread_id, FailureCode.COMPLETED, f"thread '{thread_id}' has completed")
    if checkpoint.state is ThreadState.ENDED:
        return Failed(thread_id, FailureCode.ENDED, f"thread '{thread_id}' was ended already")
    metadata = user_metadata(checkpoint.metadata)
    if by is not None:
        metadata[ENDED_BY] = fit(by)
    if reason is not None:
        metadata[ENDED_REASON] = fit(reason)
    ended = attrs.evolve(
        checkpoint,
        status=CheckpointStatus.ENDED,
        created_at=plan.clock.now(),
        next_node=None,
        metadata=metadata,
        wait=None,
        graph=plan.identity or checkpoint.graph,
        resumed_at=None,
    )
    write = partial(store.save_if_latest, ended, entry.revision, unleased=True, write_id=os.urandom(8))
    try:
        try:
            await write()
        except StoreUnavailableError as error:
            await repeat(write, error)
    except LeaseHeldError as error:
        text = f"thread '{thread_id}' is held by {error.owner!r}; end it when that lease was given back or has expired"
        return Failed(thread_id, FailureCode.LEASE_HELD, text)
    except ConflictError:
        text = f"somebody else went on with thread '{thread_id}'"
        return Failed(thread_id, FailureCode.ALREADY_RESUMED, text)
    _log.info("thread %r was ended at %r", thread_id, checkpoint.suspended_node)
    return Cancelled(thread_id, CancelReason.ENDED, checkpoint.suspended_node)
