"""Ending a thread."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Final, TypeVar

import attrs

from strata_core._validation import check_thread_id
from strata_core.errors import ConflictError, InvalidInputError, LeaseHeldError, StoreUnavailableError
from strata_core.graph._inputs import check_expected, check_store
from strata_core.graph._journal import RefusedError, repeat
from strata_core.graph._keys import CANCEL_REASON, ENDED_BY, ENDED_REASON, user_metadata
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse_changed, refuse_foreign, refuse_missing, refuse_overtaken
from strata_core.graph._results import Cancelled, CancelReason, Failed, FailureCode
from strata_core.graph._texts import fit
from strata_core.ports import CheckpointStore
from strata_core.records import CheckpointStatus, LogEntry, Revision, ThreadState

__all__ = ["end_expired", "end_thread"]

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")


async def end_thread(
    plan: Plan[S],
    thread_id: str,
    store: CheckpointStore,
    by: str | None,
    reason: str | None,
    expected: Revision | None = None,
) -> Cancelled | Failed:
    """End a thread where it stands, if nobody has written to it meanwhile and no live lease holds it."""
    check_thread_id(thread_id)
    check_store(store)
    check_expected(expected)
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
    if expected is not None and expected != entry.revision:
        return refuse_changed(thread_id, expected, entry)
    if checkpoint.state is ThreadState.COMPLETED:
        return Failed(thread_id, FailureCode.COMPLETED, f"thread '{thread_id}' has completed")
    if checkpoint.state is ThreadState.ENDED:
        return Failed(thread_id, FailureCode.ENDED, f"thread '{thread_id}' was ended already")
    extra = {}
    if by is not None:
        extra[ENDED_BY] = fit(by)
    if reason is not None:
        extra[ENDED_REASON] = fit(reason)
    try:
        await _write_end(plan, store, entry, extra)
    except LeaseHeldError as error:
        text = f"thread '{thread_id}' is held by {error.owner!r}; end it when that lease was given back or has expired"
        return Failed(thread_id, FailureCode.LEASE_HELD, text)
    except ConflictError:
        return await refuse_overtaken(store, entry, RefusedError(), expected)
    _logger.info("thread %r was ended at %r", thread_id, checkpoint.suspended_node)
    return Cancelled(thread_id, CancelReason.ENDED, checkpoint.suspended_node)


async def end_expired(
    plan: Plan[S], store: CheckpointStore, entry: LogEntry, expected: Revision | None = None
) -> Cancelled | Failed:
    """End a thread whose wait has timed out without a route, if nobody has gone on with it meanwhile."""
    checkpoint = entry.checkpoint
    reason = CancelReason.TIMED_OUT
    try:
        await _write_end(plan, store, entry, {CANCEL_REASON: reason.value})
    except ConflictError as error:
        refused = RefusedError(held=isinstance(error, LeaseHeldError))
        return await refuse_overtaken(store, entry, refused, expected)
    _logger.info("thread %r has timed out at %r, and was ended", checkpoint.thread_id, checkpoint.suspended_node)
    return Cancelled(checkpoint.thread_id, reason, checkpoint.suspended_node)


async def _write_end(plan: Plan[S], store: CheckpointStore, entry: LogEntry, extra: Mapping[str, str]) -> None:
    """Append the row that ends a thread.

    Raises:
        LeaseHeldError: Somebody holds it.
        ConflictError: Somebody has gone on with it.
    """
    checkpoint = entry.checkpoint
    ended = attrs.evolve(
        checkpoint,
        status=CheckpointStatus.ENDED,
        created_at=plan.clock.now(),
        next_node=None,
        metadata={**user_metadata(checkpoint.metadata), **extra},
        wait=None,
        graph=plan.identity or checkpoint.graph,
        resumed_at=None,
    )
    write = partial(store.save_if_latest, ended, entry.revision, unleased=True, write_id=os.urandom(8))
    try:
        await write()
    except StoreUnavailableError as error:
        await repeat(write, error)
