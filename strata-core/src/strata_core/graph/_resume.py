"""Whether, where and with which state a stopped thread goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from strata_core.codec import check_json, copy_json
from strata_core.errors import InvalidInputError
from strata_core.graph._answering import refuse_answer
from strata_core.graph._descent import Floor, Place, descend
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse, refuse_changed, refuse_foreign, refuse_missing, refuse_unknown
from strata_core.graph._rehydrate import UNFIT, rehydrate
from strata_core.graph._results import Failed, FailureCode
from strata_core.graph._signals import Answer, DueSignal, EventSignal, HumanSignal
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision, LogEntry, Revision, Wait, WaitKind

__all__ = ["Expiry", "Reentry", "plan_reentry", "target_of"]

S = TypeVar("S")

Levels = Mapping[tuple[str, ...], Mapping[str, Any]]
"""Overrides by the path to a level."""


class Reentry:
    """How a stopped thread goes on.

    Attributes:
        entry: The checkpoint it goes on from.
        places: Where it goes on, on every level, outermost first; with the signal's overrides and the decisions.
    """

    __slots__ = ("entry", "places")

    def __init__(self, entry: LogEntry, places: Sequence[Place[Any]]) -> None:
        self.entry = entry
        self.places = places


class Expiry:
    """A thread goes on nowhere: its wait has timed out, and no route was given for that.

    Attributes:
        entry: The checkpoint at which it ends.
    """

    __slots__ = ("entry",)

    def __init__(self, entry: LogEntry) -> None:
        self.entry = entry


def plan_reentry(
    plan: Plan[S],
    thread_id: str,
    entry: LogEntry | None,
    answer: Answer,
    outer: Levels,
    expected: Revision | None = None,
) -> Reentry | Expiry | Failed:
    """Find out how a thread goes on, or why it does not; writes nothing.

    What it waits for, until when and where it goes on then is told by its checkpoint, whatever the graph says by now.
    The answer is for the innermost level, `outer` for those around it.  Where it must stand at a certain checkpoint,
    that is `expected`.
    """
    if entry is None:
        return refuse_missing(plan, thread_id)
    checkpoint = entry.checkpoint
    foreign = refuse_foreign(plan, checkpoint)
    if foreign is not None:
        return foreign
    if expected is not None and expected != entry.revision:
        return refuse_changed(thread_id, expected, entry)
    refusal = refuse_answer(checkpoint, answer, plan.clock.now())
    if refusal is not None:
        return refusal
    floors = descend(plan, checkpoint)
    if isinstance(floors, Failed):
        return floors
    refusal = _refuse_levels(floors, outer)
    if refusal is not None:
        return refusal
    innermost = floors[-1]
    wait = _timed_out(innermost.checkpoint, answer)
    if wait is not None and wait.on_timeout is None:
        return _refuse_stranger(plan, checkpoint) or Expiry(entry)
    target = _target(innermost, answer)
    if isinstance(target, Failed):
        return target
    overrides = _overrides(thread_id, answer, outer, innermost.path)
    if isinstance(overrides, Failed):
        return overrides
    places = []
    for floor, inside in zip(floors, [*floors[1:], None], strict=True):
        state = rehydrate(floor.plan, floor.checkpoint, overrides.get(floor.path), floor.path)
        if isinstance(state, Failed):
            return state
        node, decision = target, floor.checkpoint.decision
        if inside is not None:
            node = inside.around
        elif isinstance(answer, HumanSignal) and checkpoint.status is CheckpointStatus.INTERRUPTED:
            decision = HumanDecision(
                boundary=floor.checkpoint.suspended_node or "",
                is_approved=answer.is_approved,
                reviewer=answer.reviewer_token,
                decided_at=plan.clock.now(),
                overrides=overrides.get(floor.path, {}),
            )
        places.append(Place(floor.plan, floor.around, node, state[0], decision))
    return Reentry(entry, places)


def _refuse_stranger(plan: Plan[S], checkpoint: Checkpoint) -> Failed | None:
    """Refuse to end a thread that may be another graph's: no ID tells, and it waits at a node that is not here."""
    if (plan.identity is not None and checkpoint.graph is not None) or checkpoint.suspended_node in plan.nodes:
        return None
    text = (
        f"has timed out at node {checkpoint.suspended_node!r}, which this graph does not have; give graphs identities"
    )
    return refuse(checkpoint.thread_id, FailureCode.UNKNOWN_NODE, text)


def _refuse_levels(floors: Sequence[Floor], outer: Levels) -> Failed | None:
    known = [floor.path for floor in floors[:-1]]
    for path in outer:
        if path not in known:
            text = f"has no level {path!r} around where it stands; what it stands in itself is overridden by the signal"
            if known:
                text += f", and the levels around it are {', '.join(map(repr, known))}"
            return refuse(floors[0].checkpoint.thread_id, FailureCode.UNKNOWN_LEVEL, text)
    return None


def _timed_out(checkpoint: Checkpoint, answer: Answer) -> Wait | None:
    """Return the wait that a due thread has waited for in vain; None when a timer has come to its end."""
    wait = checkpoint.wait
    return wait if isinstance(answer, DueSignal) and wait is not None and wait.kind is not WaitKind.TIMER else None


def _target(floor: Floor, answer: Answer) -> Node | Failed | None:
    """Return where the innermost level goes on; None when nothing is left to do there."""
    plan, checkpoint = floor.plan, floor.checkpoint
    wait = _timed_out(checkpoint, answer)
    if wait is not None:
        route = plan.nodes.get(wait.on_timeout or "")
        return route or refuse_unknown(checkpoint, floor.path, wait.on_timeout)
    waited = checkpoint.status is CheckpointStatus.INTERRUPTED
    if waited and isinstance(answer, HumanSignal) and not answer.is_approved:
        stopped = plan.nodes.get(checkpoint.suspended_node or "")
        if stopped is not None and stopped.pause is not None and stopped.pause.on_reject is not None:
            return stopped.pause.on_reject
    if waited and checkpoint.next_node is None:
        return None
    return target_of(floor)


def target_of(floor: Floor) -> Node | Failed | None:
    """Return the node at which a level goes on that does not wait; None when nothing is left to do there."""
    checkpoint = floor.checkpoint
    if checkpoint.status is CheckpointStatus.COMPLETED and floor.around is not None:
        return None
    return floor.plan.nodes.get(checkpoint.next_node or "") or refuse_unknown(checkpoint, floor.path)


def _overrides(
    thread_id: str, answer: Answer, outer: Levels, path: tuple[str, ...]
) -> dict[tuple[str, ...], dict[str, Any]] | Failed:
    """Return the overrides of every level by its path; the answer's are those of the level at `path`."""
    given: dict[tuple[str, ...], dict[str, Any]] = {level: dict(values) for level, values in outer.items()}
    if isinstance(answer, HumanSignal | EventSignal):
        given[path] = dict(answer.overrides)
    if isinstance(answer, HumanSignal):
        twice = sorted(answer.overrides.keys() & answer.field_overrides.keys())
        if twice:
            detail = f"{twice[0]}: stands in overrides and in field_overrides"
            return refuse(thread_id, FailureCode.INVALID_SIGNAL, UNFIT, detail)
        given[path] |= answer.field_overrides
    for level, values in given.items():
        try:
            check_json(values, "overrides" if level == path else f"outer[{level!r}]")
        except InvalidInputError as error:
            hint = "; an override is JSON, so give its text: str(...)" if _has_decimal(values) else ""
            return refuse(thread_id, FailureCode.INVALID_SIGNAL, UNFIT, f"{error}{hint}")
    return {level: {key: copy_json(value) for key, value in values.items()} for level, values in given.items()}


def _has_decimal(values: Mapping[str, Any]) -> bool:
    from decimal import Decimal

    return any(isinstance(value, Decimal) for value in values.values())
