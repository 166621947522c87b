"""Whether, where and with which state a stopped thread goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar, cast

from strata_core.codec import check_json, copy_json
from strata_core.errors import InvalidInputError, RehydrationError
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._results import Failed, FailureCode
from strata_core.graph._signals import HumanSignal
from strata_core.graph._texts import describe
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision, LogEntry, ThreadState, WaitKind

__all__ = ["Reentry", "plan_reentry", "refuse_foreign", "refuse_missing"]

S = TypeVar("S")

_IF_DEAD: Final = "if its process died, end it with graph.end() and run it anew under another ID"
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
    state = _rehydrate(plan, checkpoint, overrides)
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


def _refuse(thread_id: str, code: FailureCode, text: str, detail: str | None = None) -> Failed:
    return Failed(thread_id, code, f"thread '{thread_id}' {text}", detail=detail)


def refuse_missing(plan: Plan[S], thread_id: str) -> Failed:
    """Refuse a thread without a checkpoint."""
    text = "has no checkpoint"
    if plan.checkpointing is CheckpointPolicy.BOUNDARIES:
        text += "; a run that completes keeps none under CheckpointPolicy.BOUNDARIES"
    return _refuse(thread_id, FailureCode.NOT_FOUND, text)


def refuse_foreign(plan: Plan[S], checkpoint: Checkpoint) -> Failed | None:
    """Refuse a thread of another graph.  Without an identity on either side, nobody can tell."""
    identity, graph = plan.identity, checkpoint.graph
    if identity is None or graph is None or graph.id == identity.id:
        return None
    text = f"belongs to graph {graph.id!r}, not to {identity.id!r}"
    return _refuse(checkpoint.thread_id, FailureCode.WRONG_GRAPH, text)


def _refuse_state(checkpoint: Checkpoint, signal: HumanSignal | None) -> Failed | None:
    thread_id, state = checkpoint.thread_id, checkpoint.state
    if state is ThreadState.ENDED:
        return _refuse(thread_id, FailureCode.ENDED, "was ended")
    if state is ThreadState.RESUMED:
        return _refuse(thread_id, FailureCode.ALREADY_RESUMED, f"was resumed already; {_IF_DEAD}")
    if state in _FINAL:
        if signal is not None and checkpoint.decision is not None:
            since = f"is running; {_IF_DEAD}" if state is ThreadState.RUNNING else "has completed"
            return _refuse(thread_id, FailureCode.ALREADY_RESUMED, f"was answered already and {since}")
        code, text = _FINAL[state]
        return _refuse(thread_id, code, text)
    if state is ThreadState.INTERRUPTED:
        if checkpoint.wait is not None and checkpoint.wait.kind is not WaitKind.PERSON:
            return _refuse(thread_id, FailureCode.WRONG_WAIT, f"waits for {_KINDS[checkpoint.wait.kind]}, not a person")
        if signal is None:
            return _refuse(thread_id, FailureCode.SIGNAL_REQUIRED, "waits for a person; resume it with a HumanSignal")
    return None


_KINDS = {WaitKind.EVENT: "an event", WaitKind.TIMER: "a timer"}


def _target(plan: Plan[S], checkpoint: Checkpoint, answer: HumanSignal | None) -> Node | Failed | None:
    if checkpoint.nested is not None:
        text = f"stopped inside the subgraph {checkpoint.suspended_node!r}, which this graph does not have"
        return _refuse(checkpoint.thread_id, FailureCode.UNKNOWN_NODE, text)
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
        text = (
            f"goes on at node {name!r}, which this graph does not have; "
            "keep a node of that name for the threads that wait, or end the thread with graph.end()"
        )
        return _refuse(checkpoint.thread_id, FailureCode.UNKNOWN_NODE, text)
    return node


def _overrides(thread_id: str, signal: HumanSignal | None) -> dict[str, Any] | Failed:
    if signal is None:
        return {}
    twice = sorted(signal.overrides.keys() & signal.field_overrides.keys())
    if twice:
        detail = f"{twice[0]}: stands in overrides and in field_overrides"
        return _refuse(thread_id, FailureCode.INVALID_SIGNAL, _UNFIT, detail)
    overrides = {**signal.overrides, **signal.field_overrides}
    try:
        check_json(overrides, "overrides")
    except InvalidInputError as error:
        return _refuse(thread_id, FailureCode.INVALID_SIGNAL, _UNFIT, str(error))
    return {key: copy_json(value) for key, value in overrides.items()}


_UNFIT = "refuses the signal: an override does not fit the state; it still waits"


def _rehydrate(plan: Plan[S], checkpoint: Checkpoint, overrides: Mapping[str, Any]) -> tuple[S] | Failed:
    """Return the state with the overrides, in a tuple, because a state may be anything."""
    thread_id = checkpoint.thread_id
    message = f"failed to rehydrate state for thread '{thread_id}'"
    content: Mapping[str, Any] = checkpoint.frozen_state
    graph, identity = checkpoint.graph, plan.identity
    if plan.upcast is not None and graph is not None and identity is not None and graph.version != identity.version:
        try:
            content = plan.upcast(copy_json(dict(content)), graph.version)
        except Exception as error:  # noqa: BLE001  # upcast is a user's code
            detail = f"upcast from version {graph.version!r}: {describe(error)}"
            return Failed(thread_id, FailureCode.REHYDRATION_FAILED, message, detail=detail, error=error)
        if not isinstance(cast("object", content), Mapping):
            detail = f"upcast from version {graph.version!r} returned {type(content).__name__}, not a JSON object"
            return Failed(thread_id, FailureCode.REHYDRATION_FAILED, message, detail=detail)
    try:
        # A value that is taken into the state must be no part of the decision that is recorded.
        return (plan.codec.load({**content, **copy_json(dict(overrides))}),)
    except RehydrationError as error:
        if overrides:
            try:
                plan.codec.load(dict(content))
            except RehydrationError:
                pass
            else:
                return _refuse(thread_id, FailureCode.INVALID_SIGNAL, _UNFIT, str(error))
        detail = f"{error}; {_upcast_hint(plan, checkpoint)}"
        return Failed(thread_id, FailureCode.REHYDRATION_FAILED, message, detail=detail, error=error)


def _upcast_hint(plan: Plan[S], checkpoint: Checkpoint) -> str:
    """Say how a state of another version is brought up to this one, as far as that has not been done."""
    if plan.upcast is None:
        return "to read states of another version, give compile an identity and upcast=..."
    if plan.identity is None or checkpoint.graph is None:
        return "upcast was not called: the graph and the thread must both have an identity"
    if plan.identity.version == checkpoint.graph.version:
        return f"upcast was not called: the thread is of this version, {plan.identity.version!r}"
    return f"upcast from version {checkpoint.graph.version!r} must return a state of version {plan.identity.version!r}"
