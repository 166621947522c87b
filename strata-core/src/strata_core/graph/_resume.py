"""Whether, where and with which state a stopped thread goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from strata_core.codec import check_json, copy_json
from strata_core.errors import InvalidInputError
from strata_core.graph._answering import refuse_answer
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse, refuse_foreign, refuse_missing, refuse_unknown
from strata_core.graph._rehydrate import UNFIT, rehydrate
from strata_core.graph._results import Failed, FailureCode
from strata_core.graph._signals import Answer, DueSignal, EventSignal, HumanSignal
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision, LogEntry, Wait, WaitKind

__all__ = ["Expiry", "Reentry", "plan_reentry"]

S = TypeVar("S")


class Reentry(Generic[S]):
    """How a stopped thread goes on.

    Attributes:
        entry: The checkpoint it goes on from.
        node: Where it goes on; None when it waited at an end of the graph.
        state: The state, with the signal's overrides.
        decision: The decision in effect from now on.
    """

    __slots__ = ("decision", "entry", "node", "state")

    def __init__(self, entry: LogEntry, node: Node | None, state: S, decision: HumanDecision | None) -> None:
        self.entry = entry
        self.node = node
        self.state = state
        self.decision = decision


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
    outer: Mapping[tuple[str, ...], Mapping[str, Any]],
) -> Reentry[S] | Expiry | Failed:
    """Find out how a thread goes on, or why it does not; writes nothing.

    What it waits for, until when and where it goes on then is told by its checkpoint, whatever the graph says by now.
    """
    if entry is None:
        return refuse_missing(plan, thread_id)
    checkpoint = entry.checkpoint
    refusal = (
        refuse_foreign(plan, checkpoint)
        or refuse_answer(checkpoint, answer, plan.clock.now())
        or _refuse_levels(checkpoint, outer)
    )
    if refusal is not None:
        return refusal
    wait = _timed_out(checkpoint, answer)
    if wait is not None and wait.on_timeout is None:
        return _refuse_stranger(plan, checkpoint) or Expiry(entry)
    node = _target(plan, checkpoint, answer)
    if isinstance(node, Failed):
        return node
    overrides = _overrides(thread_id, answer)
    if isinstance(overrides, Failed):
        return overrides
    state = rehydrate(plan, checkpoint, overrides)
    if isinstance(state, Failed):
        return state
    decision = checkpoint.decision
    if isinstance(answer, HumanSignal) and checkpoint.status is CheckpointStatus.INTERRUPTED:
        decision = HumanDecision(
            boundary=checkpoint.suspended_node or "",
            is_approved=answer.is_approved,
            reviewer=answer.reviewer_token,
            decided_at=plan.clock.now(),
            overrides=overrides,
        )
    return Reentry(entry, node, state[0], decision)


def _refuse_stranger(plan: Plan[S], checkpoint: Checkpoint) -> Failed | None:
    """Refuse to end a thread that may be another graph's: no ID tells, and it waits at a node that is not here."""
    if (plan.identity is not None and checkpoint.graph is not None) or checkpoint.suspended_node in plan.nodes:
        return None
    text = (
        f"has timed out at node {checkpoint.suspended_node!r}, which this graph does not have; give graphs identities"
    )
    return refuse(checkpoint.thread_id, FailureCode.UNKNOWN_NODE, text)


def _refuse_levels(checkpoint: Checkpoint, outer: Mapping[tuple[str, ...], Mapping[str, Any]]) -> Failed | None:
    for path in outer:
        text = f"has no level {path!r} around where it stands; what it stands in itself is overridden by the signal"
        return refuse(checkpoint.thread_id, FailureCode.UNKNOWN_LEVEL, text)
    return None


def _timed_out(checkpoint: Checkpoint, answer: Answer) -> Wait | None:
    """Return the wait that a due thread has waited for in vain; None when a timer has come to its end."""
    wait = checkpoint.wait
    return wait if isinstance(answer, DueSignal) and wait is not None and wait.kind is not WaitKind.TIMER else None


def _target(plan: Plan[S], checkpoint: Checkpoint, answer: Answer) -> Node | Failed | None:
    if checkpoint.nested is not None:
        return refuse_unknown(checkpoint)
    waited = checkpoint.status is CheckpointStatus.INTERRUPTED
    wait = _timed_out(checkpoint, answer)
    if wait is not None:
        return plan.nodes.get(wait.on_timeout or "") or refuse_unknown(checkpoint, wait.on_timeout)
    if waited and isinstance(answer, HumanSignal) and not answer.is_approved:
        stopped = plan.nodes.get(checkpoint.suspended_node or "")
        if stopped is not None and stopped.pause is not None and stopped.pause.on_reject is not None:
            return stopped.pause.on_reject
    if waited and checkpoint.next_node is None:
        return None
    return plan.nodes.get(checkpoint.next_node or "") or refuse_unknown(checkpoint)


def _overrides(thread_id: str, answer: Answer) -> dict[str, Any] | Failed:
    if not isinstance(answer, HumanSignal | EventSignal):
        return {}
    overrides = dict(answer.overrides)
    if isinstance(answer, HumanSignal):
        twice = sorted(answer.overrides.keys() & answer.field_overrides.keys())
        if twice:
            detail = f"{twice[0]}: stands in overrides and in field_overrides"
            return refuse(thread_id, FailureCode.INVALID_SIGNAL, UNFIT, detail)
        overrides |= answer.field_overrides
    try:
        check_json(overrides, "overrides")
    except InvalidInputError as error:
        return refuse(thread_id, FailureCode.INVALID_SIGNAL, UNFIT, str(error))
    return {key: copy_json(value) for key, value in overrides.items()}
