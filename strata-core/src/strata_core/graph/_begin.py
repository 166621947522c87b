"""How a run begins: its state, its journal, and the first row of a resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import attrs

from strata_core.codec import check_json
from strata_core.errors import CorruptCheckpointError, InvalidInputError, SchemaVersionError
from strata_core.graph._boundaries import BoundariesJournal
from strata_core.graph._copying import isolate
from strata_core.graph._descent import Place, innermost, levels
from strata_core.graph._every_node import EveryNodeJournal
from strata_core.graph._journal import Journal, Position, StoreJournal
from strata_core.graph._keys import AFTER_WAIT, VISIT, pack_visit
from strata_core.graph._plan import Plan
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._resume import Reentry
from strata_core.graph._run import Run
from strata_core.graph._stop import Stop
from strata_core.ports import CheckpointStore
from strata_core.records import Checkpoint, CheckpointStatus, LogEntry

__all__ = ["is_after_wait", "open_journal", "own_state", "take_over"]

S = TypeVar("S")


def own_state(plan: Plan[S], state: S, store: CheckpointStore | None) -> S:
    """Return the run's own copy of the state it begins with.

    Raises:
        InvalidInputError: It is no state of the graph, or cannot be copied, or not be saved where a run will save it.
    """
    codec = plan.codec
    if not isinstance(state, codec.cls):
        raise InvalidInputError("state", f"must be of type {codec.cls.__name__}, not {type(state).__name__}")
    try:
        state = isolate(state)
        if store is not None and plan.checkpointing is CheckpointPolicy.BOUNDARIES:
            check_json(codec.dump(state))  # rather now than at the first stop, after nodes have run
    except InvalidInputError:
        raise
    except RecursionError:
        raise InvalidInputError("state", "contains itself, or is nested too deeply") from None
    except Exception as error:
        raise InvalidInputError("state", f"cannot be copied: {type(error).__name__}: {error}") from error
    return state


def open_journal(
    plan: Plan[S], thread_id: str, store: CheckpointStore | None, metadata: Mapping[str, str], stop: Stop
) -> Journal[S]:
    """Return the journal of a run by its graph's policy."""
    if store is None:
        return Journal(plan, thread_id, metadata)
    if plan.checkpointing is CheckpointPolicy.EVERY_NODE:
        return EveryNodeJournal(plan, thread_id, metadata, store, stop)
    return BoundariesJournal(plan, thread_id, metadata, store)


def is_after_wait(checkpoint: Checkpoint) -> bool:
    """Tell whether no node has committed since the thread's last wait, so that `on_resume` is still to be asked."""
    return checkpoint.status is CheckpointStatus.INTERRUPTED or AFTER_WAIT in checkpoint.metadata


async def take_over(run: Run[S], store: CheckpointStore, found: Reentry) -> None:
    """Write the first row of a resume, which also keeps every other writer out; the run stands where it goes on.

    Raises:
        RefusedError: Another writer was first, or, `held`, holds the thread: perhaps one who has gone on with it.
        SupersededError: The thread was taken, and lost before that was known.
        UnsavableStateError: The state has no JSON form.
    """
    plan, journal = run.plan, run.journal
    checkpoint, revision = found.entry.checkpoint, found.entry.revision
    if run.node is None and isinstance(journal, StoreJournal) and journal.records_completion:
        await journal.finish(Position(checkpoint.suspended_node, None, run.state), revision)
    elif isinstance(journal, BoundariesJournal):
        decided = _decided(checkpoint, found.places)
        await journal.stamp(attrs.evolve(decided, resumed_at=plan.clock.now()), revision)
    elif isinstance(journal, EveryNodeJournal) and run.node is not None:
        extra = {}
        if journal.carried is not None:
            extra[VISIT] = pack_visit(*journal.carried)
        if is_after_wait(checkpoint) and plan.on_resume is not None:
            extra[AFTER_WAIT] = "true"
        run.note_last(await _last_committed(store, found.entry))
        await journal.take(CheckpointStatus.RUNNING, run.standing(CheckpointStatus.RUNNING), revision, extra)


def _decided(checkpoint: Checkpoint, places: Sequence[Place[Any]]) -> Checkpoint:
    """Return a checkpoint with the decisions that are in effect now, and nothing else changed."""
    (place, *inside), nested = places, checkpoint.nested
    return attrs.evolve(
        checkpoint, decision=place.decision, nested=None if nested is None else _decided(nested, inside)
    )


async def _last_committed(store: CheckpointStore, entry: LogEntry) -> str | None:
    """Return the node of the innermost level that last committed: a boundary node has, one that failed or was cancelled
    has not.

    What came before that is told by the running row that it replaced; it is for people, and nothing depends on it.
    """
    checkpoint = entry.checkpoint
    stopped = innermost(checkpoint)
    if stopped.status in (CheckpointStatus.INTERRUPTED, CheckpointStatus.COMPLETED):
        return stopped.suspended_node
    if entry.sequence == 0:
        return None
    try:
        before = await store.load(checkpoint.thread_id, at=entry.sequence - 1)
    except (CorruptCheckpointError, SchemaVersionError):
        return None
    if before is None or before.checkpoint.status is not CheckpointStatus.RUNNING:
        return None
    *around, last = levels(before.checkpoint)
    paths = [[level.suspended_node for level in outer] for outer in (around, list(levels(checkpoint))[:-1])]
    return last.suspended_node if paths[0] == paths[1] else None
