"""Whether, where and with which state a stopped thread goes on."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from strata_core.codec import check_json, copy_json
from strata_core.errors import InvalidInputError
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse, refuse_foreign, refuse_missing, refuse_unknown
from strata_core.graph._rehydrate import UNFIT, rehydrate
from strata_core.graph._results import Failed, FailureCode
from strata_core.graph._signals import HumanSignal
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision, LogEntry, ThreadState, WaitKind

__all__ = ["Reentry", "plan_reentry"]

S = TypeVar("S")

_IF_DEAD: Final = "if its process died, graph.recover() finishes it"
_IF_LOST: Final = "if its process died, end it with graph.end() and run it anew under another ID"
_FINAL: Final = {
    ThreadState.RUNNING: (FailureCode.RUNNING, f"is running; {_IF_DEAD}"),
    ThreadState.COMPLETED: (FailureCode.COMPLETED, "has completed"),
}


class Reentry(Generic[S]):
    """How a stopped thread goes on.

    Attributes:
        entry: The checkpoint it goes on from.
        node: Where it goes on; None when the boundary was on an end of the graph.
        state: The state, with the signal's overrides.
        decision: The decision in effect from now on.
    """

    __slots__ = ("decision", "entry", "node", "state")

    def __init__(self, entry: LogEntry, node: Node | None, state: S, decision: HumanDecision | None) -> None:
        self.entry = entry
        self.node = node
        self.state = state
        self.decision = decision


def plan_reentry(
    plan: Plan[S], thread_id: str, entry: LogEntry | None, signal: HumanSignal | None
) -> Reentry[S] | Failed:
    """Find out how a thread goes on, or why it does not; writes nothing."""
    if entry is None:
        return refuse_missing(plan, thread_id)
    checkpoint = entry.checkpoint
    refusal = refuse_foreign(plan, checkpoint) or _refuse_state(checkpoint, signal)
    if refusal is not None:
        return refusal
    answered = checkpoint.status is CheckpointStatus.INTERRUPTED
    node = _target(plan, checkpoint, signal if answered else None)
    if isinstance(node, Failed):
        return node
    overrides = _overrides(thread_id, signal)
    if isinstance(overrides, Failed):
        return overrides
    state = rehydrate(plan, checkpoint, overrides)
    if isinstance(state, Failed):
        return state
    decision = checkpoint.decision
    if answered and signal is not None:
        decision = HumanDecision(
            boundary=checkpoint.suspended_node or "",
            is_approved=signal.is_approved,
            reviewer=signal.reviewer_token,
            decided_at=plan.clock.now(),
            overrides=overrides,
        )
    return Reentry(entry, node, state[0], decision)


def _refuse_state(checkpoint: Checkpoint, signal: HumanSignal | None) -> Failed | None:
    thread_id, state = checkpoint.thread_id, checkpoint.state
    if state is ThreadState.ENDED:
        return refuse(thread_id, FailureCode.ENDED, "was ended")
    if state is ThreadState.RESUMED:
        return refuse(thread_id, FailureCode.ALREADY_RESUMED, f"was resumed already; {_IF_LOST}")
    if state in _FINAL:
        if signal is not None and checkpoint.decision is not None:
            since = f"is running; {_IF_DEAD}" if state is ThreadState.RUNNING else "has completed"
            return refuse(thread_id, FailureCode.ALREADY_RESUMED, f"was answered already and {since}")
        code, text = _FINAL[state]
        return refuse(thread_id, code, text)
    if state is ThreadState.INTERRUPTED:
        if checkpoint.wait is not None and checkpoint.wait.kind is not WaitKind.PERSON:
            return refuse(thread_id, FailureCode.WRONG_WAIT, f"waits for {_KINDS[checkpoint.wait.kind]}, not a person")
        if signal is None:
            return refuse(thread_id, FailureCode.SIGNAL_REQUIRED, "waits for a person; resume it with a HumanSignal")
    return None


_KINDS = {WaitKind.EVENT: "an event", WaitKind.TIMER: "a timer"}


def _target(plan: Plan[S], checkpoint: Checkpoint, answer: HumanSignal | None) -> Node | Failed | None:
    if checkpoint.nested is not None:
        return refuse_unknown(checkpoint)
    stopped = plan.nodes.get(checkpoint.suspended_node or "")
    if answer is not None and not answer.is_approved and stopped is not None and stopped.boundary is not None:
        on_reject = stopped.boundary.on_reject
        if on_reject is not None:
            return on_reject
    name = checkpoint.next_node
    if name is None and answer is not None:
        return None
    node = plan.nodes.get(name or "")
    if node is None:
        return refuse_unknown(checkpoint)
    return node


def _overrides(thread_id: str, signal: HumanSignal | None) -> dict[str, Any] | Failed:
    if signal is None:
        return {}
    twice = sorted(signal.overrides.keys() & signal.field_overrides.keys())
    if twice:
        detail = f"{twice[0]}: stands in overrides and in field_overrides"
        return refuse(thread_id, FailureCode.INVALID_SIGNAL, UNFIT, detail)
    overrides = {**signal.overrides, **signal.field_overrides}
    try:
        check_json(overrides, "overrides")
    except InvalidInputError as error:
        return refuse(thread_id, FailureCode.INVALID_SIGNAL, UNFIT, str(error))
    return {key: copy_json(value) for key, value in overrides.items()}
