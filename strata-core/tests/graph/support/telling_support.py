"""What a call has done to a thread: told as CALLS.md tells it, and compared whole with what it may have done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from table_support import IDENTITY, METADATA

from strata_core.graph import Cancelled, Completed, Failed, Interrupted
from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    HumanDecision,
    Lease,
    LogEntry,
    ThreadQuery,
    ThreadSummary,
    Wait,
    WaitKind,
)

_PREFIX = "strata."
_VISIT = "strata.visit"
_RECOVERED = "strata.recovered_by"


@attrs.frozen
class Look:
    """What a store shows of a thread: its log, where it stands, and who holds it."""

    log: Sequence[LogEntry]
    summary: ThreadSummary | None
    lease: Lease | None


async def look(store: Any, names: Iterable[str]) -> dict[str, Look]:
    """Look at all threads."""
    page = await store.list_threads(ThreadQuery(limit=1000))
    assert page.next_cursor is None
    summaries = {summary.thread_id: summary for summary in page.threads}
    assert summaries.keys() <= set(names)
    found = {}
    for name in names:
        log = await store.get_log(name)
        assert log.next_start is None
        summary = summaries.get(name)
        lease = await store.live_lease(name) if summary is None else summary.lease
        found[name] = Look(log.entries, summary, lease)
    return found


def tell_wait(created_at: datetime, wait: Wait) -> str:
    """Tell what a thread waits for, as the page does."""
    days = None if wait.due_at is None else (wait.due_at - created_at).days
    time = f"{days} day" if days == 1 else f"{days} days"
    if wait.kind is WaitKind.TIMER:
        return f"timer of {time}"
    what = "person" if wait.kind is WaitKind.PERSON else f"event `{wait.event_type}`"
    return what if days is None else f"{what} within {time}, else {wait.on_timeout or 'ended'}"


def tell_row(row: Checkpoint) -> str:
    """Tell what a row holds, as the page does."""
    parts = [f"`{row.state.value}`"]
    if row.suspended_node is not None:
        parts[0] += f" {row.suspended_node}"
    if row.next_node is not None:
        parts[0] += f" → {row.next_node}"
    if row.wait is not None:
        parts.append(tell_wait(row.created_at, row.wait))
    if row.decision is not None:
        parts.append(f"{'approved' if row.decision.is_approved else 'rejected'} by {row.decision.reviewer}")
    for key, value in sorted(row.metadata.items()):
        if key.startswith(_PREFIX) and key != _VISIT:
            parts.append(f"`{key}={value}`")
    return ", ".join(parts)


def tell(result: Any, rows: Sequence[Checkpoint]) -> str:
    """Tell what a call came to and the rows that it appended, as the page does; a result of None is none."""
    told, node = f"`{type(result).__name__}`", None
    match result:
        case None:
            told = "—"
        case Failed(code=code, node=node):
            told = f"`{code.name}`"
        case Completed(state=state):
            node = state["trace"][-1]
        case Interrupted(suspended_node=node):
            pass
        case Cancelled(reason=reason, node=node):
            told += f" `{reason.name}`"
    if node is not None:
        told += f" at {node}"
    return told if not rows else f"{told}: {'; '.join(tell_row(row) for row in rows)}"


def violations(before: Look, after: Look, result: Any, now: datetime) -> Iterator[str]:
    """Yield what a call has done to a thread besides what `tell` tells of it, and must not have done."""
    old, rows = list(before.log), [entry.checkpoint for entry in after.log[len(before.log) :]]
    if old != list(after.log[: len(old)]):
        yield "rows that were there have changed"
    if list(range(len(after.log))) != [entry.sequence for entry in after.log]:
        yield "the log has gaps"
    if before.lease != after.lease:
        yield f"the lease was {before.lease}, and is {after.lease}"
    if not rows and before != after:
        yield "nothing was appended, and where the thread stands has changed"
    if rows and (after.summary is None or now != after.summary.updated_at):
        yield "the thread was not updated now"
    expected = list(_whole(old[-1] if old else None, rows, now))
    for row, whole in zip(rows, expected, strict=True):
        if whole != row:
            yield f"the row is {row}, and not {whole}"
    yield from _wrong_result(old[-1].checkpoint if old else None, rows, result)


def _whole(latest: LogEntry | None, rows: Sequence[Checkpoint], now: datetime) -> Iterator[Checkpoint]:
    """Yield what each of the appended rows must be as a whole, given what the page tells of it."""
    before = None if latest is None else latest.checkpoint
    anew = bool(rows) and rows[0].next_node == "Prepare" and _RECOVERED not in rows[0].metadata
    anew = anew or (bool(rows) and rows[0].status is CheckpointStatus.INTERRUPTED and rows[0].resumed_at is None)
    trace: list[str] = [] if before is None or anew else list(before.frozen_state["trace"])
    for row in rows:
        decision = _decision(before, row, now)
        if row.resumed_at is not None:
            assert before is not None
            yield attrs.evolve(before, resumed_at=now, decision=decision)
            continue
        node = row.suspended_node
        if node is not None and node not in trace and row.status is not CheckpointStatus.ENDED:
            trace.append(node)
        extra = {key: value for key, value in row.metadata.items() if key.startswith(_PREFIX) and key != _VISIT}
        if _RECOVERED in extra and latest is not None:
            extra[_VISIT] = f"{latest.revision.write_id.hex()}.0"  # the row behind which the node ran that runs again
        yield Checkpoint(
            row.thread_id, row.status, {"trace": list(trace)}, now, node, row.next_node, {**METADATA, **extra}, None,
            decision, row.wait, IDENTITY,
        )  # fmt: skip


def _decision(before: Checkpoint | None, row: Checkpoint, now: datetime) -> HumanDecision | None:
    if row.decision is None:
        return None
    if row.decision.reviewer == "bob":
        return HumanDecision("Prepare", row.decision.is_approved, "bob", now)
    return None if before is None else before.decision


def _wrong_result(before: Checkpoint | None, rows: Sequence[Checkpoint], result: Any) -> Iterator[str]:
    """Yield how a result does not fit the rows."""
    last = rows[-1] if rows else None
    match result:
        case Failed(node=node, error=error) if node is not None or error is not None:
            yield f"a refusal is not that of a node: {result}"
        case Completed(state=state):
            ran = [row.next_node for row in rows if row.resumed_at is None and row.next_node is not None]
            trace = [] if before is None else list(before.frozen_state["trace"])
            if [*trace, *ran] != state["trace"] and (ran or trace != state["trace"][:-1]):
                yield f"other nodes ran than the rows tell: {state}"
        case Interrupted(suspended_node=node, next_node=following, wait=wait, frozen_state=state):
            if last is None or (node, following, wait, state) != (
                last.suspended_node, last.next_node, last.wait, last.frozen_state,
            ):  # fmt: skip
                yield f"it waits elsewhere than its row tells: {result}"
        case Cancelled(node=node):
            if last is None or node != last.suspended_node:
                yield f"it was ended elsewhere than its row tells: {result}"


def compare(
    expected: Mapping[str, str], before: Mapping[str, Look], after: Mapping[str, Look], results: Mapping[str, Any], now: datetime
) -> list[str]:
    """Return where the page and the store do not tell the same."""
    wrong = [f"{name}: is in the report, and was not stored" for name in results.keys() - expected.keys()]
    for name, cell in expected.items():
        rows = [entry.checkpoint for entry in after[name].log[len(before[name].log) :]]
        told = tell(results.get(name), rows)
        if cell != told:
            wrong.append(f"{name}:\n  the page says {cell}\n  what it does  {told}")
        wrong += [f"{name}: {what}" for what in violations(before[name], after[name], results.get(name), now)]
    return wrong
