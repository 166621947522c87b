"""What the commands show of the records, as spans that are safe to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from strata_core.records import (
    Checkpoint,
    GraphIdentity,
    HumanDecision,
    Lease,
    LogEntry,
    ThreadState,
    ThreadSummary,
    Wait,
    WaitKind,
)
from strata_host.cli._text import json_text, phrase, word
from strata_host.cli.output import Line, Role, Span

__all__ = [
    "THREAD_HEADER",
    "decision_fields",
    "levels",
    "log_line",
    "resumes_at",
    "thread_fields",
    "thread_row",
    "time_text",
    "where",
]

THREAD_HEADER: Final = ("THREAD", "NODE", "SEQ", "STATE", "WAITS FOR", "LEASE", "UPDATED")

_NOTHING: Final = (Span("-"),)
_WHY: Final = {
    "strata.recovered_by": "recovered-by",
    "strata.cancel_reason": "reason",
    "strata.ended_by": "ended-by",
}
"""What the engine's metadata says of why a checkpoint was written, and what a timeline calls it."""


def time_text(moment: datetime) -> str:
    """Return a time in UTC to the second."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def thread_row(thread: ThreadSummary) -> Sequence[Line]:
    """Return a thread's row under `THREAD_HEADER`."""
    return (
        (Span(word(thread.thread_id), Role.THREAD),),
        (Span(word(thread.suspended_node), Role.NODE),),
        (Span(f"#{thread.sequence}"),),
        (Span(thread.state.value, Role(thread.state.value)),),
        (Span(_wait_text(thread.state, thread.wait)),),
        (Span("-" if thread.lease is None else word(thread.lease.owner)),),
        (Span(time_text(thread.updated_at), Role.TIME),),
    )


def log_line(entry: LogEntry) -> Line:
    """Return the line of a checkpoint in its thread's timeline."""
    checkpoint = entry.checkpoint
    status = checkpoint.status.value
    line = [
        Span(f"#{entry.sequence:<4} ["),
        Span(status, Role(status)),
        Span("] node="),
        Span(word(checkpoint.suspended_node), Role.NODE),
        Span(" -> "),
        Span(word(checkpoint.next_node), Role.NODE),
        Span(f" at={time_text(checkpoint.created_at)}", Role.TIME),
    ]
    if checkpoint.resumed_at is not None:
        line.append(Span(f" resumed={time_text(checkpoint.resumed_at)}", Role.TIME))
    path: list[str] = []
    for level in levels(checkpoint):
        if level.decision is not None:
            inside = f" in={'/'.join(path)}" if path else ""
            line += (Span(" decision="), _verdict(level.decision), Span(f" by={word(level.decision.reviewer)}{inside}"))
        path.append(word(level.suspended_node))
    for key, label in _WHY.items():
        if key in checkpoint.metadata:
            line.append(Span(f" {label}={word(checkpoint.metadata[key])}"))
    return line


def thread_fields(entry: LogEntry, lease: Lease | None) -> Iterator[tuple[str, Line]]:
    """Yield the labels and values of a thread in full, apart from its state."""
    checkpoint = entry.checkpoint
    yield "thread", (Span(word(checkpoint.thread_id), Role.THREAD),)
    yield "status", _status(checkpoint)
    yield "node", where(checkpoint)
    yield "next node", (Span(word(checkpoint.next_node), Role.NODE),)
    yield "graph", _graph(checkpoint.graph)
    yield "lease", _lease(lease)
    yield "waits for", (Span(_wait_text(checkpoint.state, checkpoint.wait)),)
    yield from decision_fields(checkpoint)
    for number, (key, value) in enumerate(checkpoint.metadata.items()):
        yield ("" if number else "metadata"), (Span(f"{word(key)}={phrase(value)}"),)
    if not checkpoint.metadata:
        yield "metadata", _NOTHING
    yield "checkpoints", (Span(str(entry.sequence + 1)),)
    yield "revision", (Span(str(entry.revision)),)
    yield "written", (Span(time_text(checkpoint.created_at), Role.TIME),)
    if checkpoint.resumed_at is not None:
        yield "resumed", (Span(time_text(checkpoint.resumed_at), Role.TIME),)


def where(checkpoint: Checkpoint) -> Line:
    """Return where a checkpoint stands: its node, and the path below it when that is inside a subgraph."""
    path = [word(level.suspended_node) for level in levels(checkpoint)]
    return (Span(" / ".join(path), Role.NODE),)


def resumes_at(checkpoint: Checkpoint) -> Line:
    """Return where a resume would go on: inside the subgraphs that the thread stopped in, if it did."""
    *outer, innermost = levels(checkpoint)
    path = [word(level.suspended_node) for level in outer]
    return (Span(" / ".join([*path, word(innermost.next_node)]), Role.NODE),)


def levels(checkpoint: Checkpoint) -> Iterator[Checkpoint]:
    """Yield a checkpoint and those nested in it, outermost first."""
    level: Checkpoint | None = checkpoint
    while level is not None:
        yield level
        level = level.nested


def decision_fields(checkpoint: Checkpoint) -> Iterator[tuple[str, Line]]:
    """Yield the human decision in effect, and below it those that are in effect inside of subgraphs only."""
    yield "decision", _decision(checkpoint.decision)
    path: list[str] = []
    for outer in levels(checkpoint):
        path.append(word(outer.suspended_node))
        if outer.nested is not None and outer.nested.decision is not None:
            yield "", (Span(f"in {' / '.join(path)}: "), *_decision(outer.nested.decision))


def _decision(decision: HumanDecision | None) -> Line:
    if decision is None:
        return _NOTHING
    overrides = f", overrides {json_text(dict(decision.overrides))}" if decision.overrides else ""
    return (
        _verdict(decision),
        Span(f" at {word(decision.boundary)} by {word(decision.reviewer)}{overrides}"),
        Span(f", {time_text(decision.decided_at)}", Role.TIME),
    )


def _verdict(decision: HumanDecision) -> Span:
    return Span("approved", Role.ADDED) if decision.is_approved else Span("rejected", Role.REMOVED)


def _status(checkpoint: Checkpoint) -> Line:
    state = checkpoint.state.value
    shown = Span(state, Role(state))
    if state == checkpoint.status.value:
        return (shown,)
    return (shown, Span(f" (its latest checkpoint is {checkpoint.status.value})"))


def _graph(graph: GraphIdentity | None) -> Line:
    return _NOTHING if graph is None else (Span(f"{word(graph.id)}@{word(graph.version)}"),)


def _lease(lease: Lease | None) -> Line:
    if lease is None:
        return _NOTHING
    return (Span(f"{word(lease.owner)}, token {lease.token}, until {time_text(lease.expires_at)}"),)


def _wait_text(state: ThreadState, wait: Wait | None) -> str:
    if state is not ThreadState.INTERRUPTED:
        return "-"
    if wait is None:
        return WaitKind.PERSON.value
    event = "" if wait.event_type is None else f" {word(wait.event_type)}"
    due = "" if wait.due_at is None else f" until {time_text(wait.due_at)}"
    route = "" if wait.on_timeout is None else f", then {word(wait.on_timeout)}"
    return f"{wait.kind.value}{event}{due}{route}"
