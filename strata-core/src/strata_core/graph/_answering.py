"""Which answer a stopped thread takes."""

from __future__ import annotations

from datetime import datetime
from typing import Final, assert_never

from strata_core.graph._descent import innermost, levels
from strata_core.graph._refusals import refuse, refuse_ended
from strata_core.graph._results import Failed, FailureCode
from strata_core.graph._signals import Answer, DueSignal, EventSignal, HumanSignal
from strata_core.records import Checkpoint, ThreadState, Wait, WaitKind

__all__ = ["refuse_answer"]

_IF_DEAD: Final = "if its process died, graph.recover() finishes it"
_IF_LOST: Final = "if its process died, end it with graph.end() and run it anew under another ID"
_FINAL: Final = {
    ThreadState.RUNNING: (FailureCode.RUNNING, f"is running; {_IF_DEAD}"),
    ThreadState.COMPLETED: (FailureCode.COMPLETED, "has completed"),
}
_PERSON: Final = Wait(WaitKind.PERSON)


def refuse_answer(checkpoint: Checkpoint, answer: Answer, now: datetime) -> Failed | None:
    """Refuse an answer that a thread with this as its latest checkpoint does not take; None when it does."""
    thread_id, state = checkpoint.thread_id, checkpoint.state
    if state is ThreadState.ENDED:
        return refuse_ended(checkpoint)
    if state is ThreadState.RESUMED:
        return refuse(thread_id, FailureCode.ALREADY_RESUMED, f"was resumed already; {_IF_LOST}")
    if state in _FINAL:
        if isinstance(answer, HumanSignal) and any(level.decision is not None for level in levels(checkpoint)):
            since = f"is running; {_IF_DEAD}" if state is ThreadState.RUNNING else "has completed"
            return refuse(thread_id, FailureCode.ALREADY_RESUMED, f"was answered already and {since}")
        code, text = _FINAL[state]
        if state is ThreadState.RUNNING and isinstance(answer, EventSignal):
            text += "; a signal that comes before its wait is not kept: send it again"
        return refuse(thread_id, code, text)
    if state is ThreadState.INTERRUPTED:
        return _refuse_wait(thread_id, innermost(checkpoint).wait or _PERSON, answer, now)
    if isinstance(answer, EventSignal | DueSignal):
        text = f"is {state.value} and waits for nothing; resume it with None, or with a HumanSignal that corrects it"
        return refuse(thread_id, FailureCode.NOT_WAITING, text)
    return None


def _refuse_wait(thread_id: str, wait: Wait, answer: Answer, now: datetime) -> Failed | None:
    kind = wait.kind
    if isinstance(answer, DueSignal):
        if wait.due_at is None:
            return refuse(thread_id, FailureCode.NEVER_DUE, f"waits for {_named(wait)}, for as long as it takes")
        if now < wait.due_at:
            return refuse(thread_id, FailureCode.NOT_DUE, f"is not due before {wait.due_at.isoformat()}")
        return None
    if isinstance(answer, EventSignal):
        if kind is not WaitKind.EVENT:
            return refuse(thread_id, FailureCode.WRONG_WAIT, f"waits for {_named(wait)}, not for an event")
        if answer.event_type != wait.event_type:
            text = f"waits for {_named(wait)}, not for {answer.event_type!r}"
            return refuse(thread_id, FailureCode.WRONG_EVENT, text)
        return None
    if kind is not WaitKind.PERSON:
        text = f"waits for {_named(wait)}, not for a person; {_WAYS[kind]}"
        return refuse(thread_id, FailureCode.WRONG_WAIT, text)
    if answer is None:
        return refuse(thread_id, FailureCode.SIGNAL_REQUIRED, "waits for a person; resume it with a HumanSignal")
    return None


_WAYS: Final = {WaitKind.EVENT: "signal it with an EventSignal", WaitKind.TIMER: "graph.wake_due wakes it then"}


def _named(wait: Wait) -> str:
    if wait.kind is WaitKind.PERSON:
        return "a person"
    if wait.kind is WaitKind.EVENT:
        return f"the event {wait.event_type!r}"
    if wait.kind is WaitKind.TIMER:
        return "a timer" if wait.due_at is None else f"a timer, until {wait.due_at.isoformat()}"
    assert_never(wait.kind)
