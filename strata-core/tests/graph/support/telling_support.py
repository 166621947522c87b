"""What a call has done to a thread: told as CALLS.md tells it, and compared whole with what it may have done."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from threads_support import IDENTITY, METADATA

from strata_core.graph import Cancelled, Completed, Failed, Interrupted
from strata_core.graph._keys import PREFIX, RECOVERED_BY, VISIT, pack_visit
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


@attrs.frozen
class Look:
    """What a store shows of a thread: its log, where it stands, and who holds it."""

    log: Sequence[LogEntry]
    summary: ThreadSummary | None
    lease: Lease | None


async def look(store: Any, names: Collection[str]) -> dict[str, Look]:
    """Look at all threads."""
    page = await store.list_threads(ThreadQuery(limit=1000))
    assert page.next_cursor is None
    summaries = {summary.thread_id: summary for summary in page.threads}
    assert summaries.keys() <= set(names)
    return dict(
        zip(names, await asyncio.gather(*(_look(store, name, summaries.get(name)) for name in names)), strict=True)
    )


async def _look(store: Any, name: str, summary: ThreadSummary | None) -> Look:
    log = await store.get_log(name)
    assert log.next_start is None
    lease = await store.live_lease(name) if summary is None else summary.lease
    return Look(log.entries, summary, lease)


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
    parts += [f"`{key}={value}`" for key, value in _engine_metadata(row) if key != VISIT]
    return ", ".join(parts)


def _engine_metadata(row: Checkpoint) -> list[tuple[str, str]]:
    return sorted((key, value) for key, value in row.metadata.items() if key.startswith(PREFIX))


def tell(result: Any, rows: Sequence[Checkpoint]) -> str:
    """Tell what a call came to and the rows that it appended, as the page does; a result of None is none."""
    told = f"`{type(result).__name__}`"
    node: str | None = None
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


def violations(before: Look, after: Look, result: Any, now: datetime, *, anew: bool) -> Iterator[str]:
    """Yield what a call has done to a thread besides what `tell` tells of it, and must not have done."""
    latest = before.log[-1] if before.log else None
    trace = [] if anew or latest is None else list(latest.checkpoint.frozen_state["trace"])
    rows = [entry.checkpoint for entry in after.log[len(before.log) :]]
    if list(before.log) != list(after.log[: len(before.log)]):
        yield "rows that were there have changed"
    if list(range(len(after.log))) != [entry.sequence for entry in after.log]:
        yield "the log has gaps"
    if before.lease != after.lease:
        yield f"the lease was {before.lease}, and is {after.lease}"
    if not rows and before != after:
        yield "nothing was appended, and where the thread stands has changed"
    if rows and (after.summary is None or now != after.summary.updated_at):
        yield "the thread was not updated now"
    for row, whole in zip(rows, _whole(latest, list(trace), rows, now), strict=True):
        if whole != row:
            yield f"the row is {row}, and not {whole}"
    yield from _wrong_result(trace, rows, result)


def _whole(
    latest: LogEntry | None, trace: list[str], rows: Sequence[Checkpoint], now: datetime
) -> Iterator[Checkpoint]:
    """Yield what each of the appended rows must be as a whole, given what the page tells of it."""
    before = None if latest is None else latest.checkpoint
    for row in rows:
        decision = _decision(before, row, now)
        if row.resumed_at is not None and before is not None:
            yield attrs.evolve(before, resumed_at=now, decision=decision)
            continue
        node = row.suspended_node
        if node is not None and node not in trace and row.status is not CheckpointStatus.ENDED:
            trace.append(node)
        metadata = METADATA | {key: value for key, value in _engine_metadata(row) if key != VISIT}
        if RECOVERED_BY in metadata and latest is not None:
            metadata[VISIT] = pack_visit(latest.revision.write_id, 0)
        yield Checkpoint(
            row.thread_id, row.status, {"trace": list(trace)}, now, node, row.next_node, metadata, None, decision,
            row.wait, IDENTITY,
        )  # fmt: skip


def _decision(before: Checkpoint | None, row: Checkpoint, now: datetime) -> HumanDecision | None:
    if row.decision is None:
        return None
    if row.decision.reviewer == "bob":
        return HumanDecision("Prepare", row.decision.is_approved, "bob", now)
    return None if before is None else before.decision


def _wrong_result(trace: list[str], rows: Sequence[Checkpoint], result: Any) -> Iterator[str]:
    """Yield how a result does not fit the rows, and the nodes that had committed."""
    last = rows[-1] if rows else None
    match result:
        case Failed(error=error) if error is not None:
            yield f"a refusal has no error: {error!r}"
        case Completed(state=state) if trace != state["trace"][:-1]:
            yield f"other nodes ran than one behind {trace}: {state}"
        case Interrupted(suspended_node=node, next_node=following, wait=wait, frozen_state=state):
            if last is None or (node, following, wait, state) != (
                last.suspended_node, last.next_node, last.wait, last.frozen_state,
            ):  # fmt: skip
                yield f"it waits elsewhere than its row tells: {result}"
        case Cancelled(node=node) if last is None or node != last.suspended_node:
            yield f"it was ended elsewhere than its row tells: {result}"


def compare(
    expected: Mapping[str, str],
    before: Mapping[str, Look],
    after: Mapping[str, Look],
    results: Mapping[str, Any],
    now: datetime,
    *,
    anew: bool,
) -> list[str]:
    """Return where the page and the store do not tell the same.

    Args:
        expected: By thread, what the page says that the call does.
        before: What the store showed before the call.
        after: What it shows now.
        results: By thread, what the call came to; nothing of threads that it passed over.
        now: When the call was made.
        anew: Whether the call begins a new execution.
    """
    wrong = [f"{name}: is in the report, and was not stored" for name in results.keys() - expected.keys()]
    for name, cell in expected.items():
        result = results.get(name)
        told = tell(result, [entry.checkpoint for entry in after[name].log[len(before[name].log) :]])
        if cell != told:
            wrong.append(f"{name}:\n  the page says {cell}\n  what it does  {told}")
        if result is not None and name != result.thread_id:
            wrong.append(f"{name}: the result is that of another thread")
        wrong += [f"{name}: {what}" for what in violations(before[name], after[name], result, now, anew=anew)]
    return wrong
