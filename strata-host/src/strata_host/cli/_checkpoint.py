"""`strata checkpoint`: the log of a thread, and single checkpoints of it."""

from __future__ import annotations

import click

from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.ports import StorePorts
from strata_core.records import LogEntry
from strata_host.cli._diff import Diff, diff_states
from strata_host.cli._errors import CommandError
from strata_host.cli._json_shapes import record_json
from strata_host.cli._log import write_log
from strata_host.cli._source import Source, json_option, source_options
from strata_host.cli._states import show_states
from strata_host.cli._text import json_text, phrase, word
from strata_host.cli._views import decision_fields, resumes_at, where
from strata_host.cli.output import Output, Role, Span, output, print_json

__all__ = ["checkpoint"]

_SEQUENCE = click.IntRange(min=0)


@click.group()
def checkpoint() -> None:
    """What a thread's checkpoints hold, and what changed."""


@checkpoint.command()
@click.argument("thread_id", metavar="ID")
@json_option
@source_options
def log(source: Source, thread_id: str, as_json: bool) -> None:
    """Show a thread's timeline, one line a checkpoint, oldest first."""
    source.read(lambda store: write_log(store, thread_id, as_json=as_json))


@checkpoint.command()
@click.argument("thread_id", metavar="ID")
@click.option("--seq-a", required=True, type=_SEQUENCE, help="The checkpoint to compare from.")
@click.option("--seq-b", required=True, type=_SEQUENCE, help="The checkpoint to compare to.")
@json_option
@source_options
def diff(source: Source, thread_id: str, seq_a: int, seq_b: int, as_json: bool) -> None:
    """Show the fields of the state that changed between two checkpoints.

    The top-level ones, each with its whole value before and after.
    """

    async def both(store: StorePorts) -> tuple[LogEntry, LogEntry]:
        return await _entry(store, thread_id, seq_a), await _entry(store, thread_id, seq_b)

    before, after = source.read(both)
    changes = diff_states(before.checkpoint.frozen_state, after.checkpoint.frozen_state)
    if as_json:
        print_json({"thread_id": thread_id, "seq_a": seq_a, "seq_b": seq_b, **changes.as_json()})
    else:
        _show_diff(output(), changes)


@checkpoint.command()
@click.argument("thread_id", metavar="ID")
@click.option("--sequence", required=True, type=_SEQUENCE, help="The checkpoint to stand at.")
@json_option
@source_options
def replay(source: Source, thread_id: str, sequence: int, as_json: bool) -> None:
    """Show a thread as of one checkpoint.

    Its state, the decision in effect, and where it would go on.  No node is run.
    """
    entry = source.read(lambda store: _entry(store, thread_id, sequence))
    found = entry.checkpoint
    if as_json:
        record = record_json(found)
        print_json(
            {
                "thread_id": thread_id,
                "sequence": entry.sequence,
                "status": found.status.value,
                "suspended_node": found.suspended_node,
                "next_node": found.next_node,
                "decision": record.get("decision"),
                "frozen_state": record["frozen_state"],
                "nested": record.get("nested"),
            }
        )
        return
    status = found.status.value
    out = output()
    out.fields(
        [
            ("thread", (Span(word(thread_id), Role.THREAD),)),
            ("checkpoint", (Span(f"#{entry.sequence}"),)),
            ("status", (Span(status, Role(status)),)),
            ("node", where(found)),
            ("resumes at", resumes_at(found)),
            *decision_fields(found),
        ]
    )
    show_states(out, found)


async def _entry(store: StorePorts, thread_id: str, sequence: int) -> LogEntry:
    entry = await store.load(thread_id, at=sequence)
    if entry is not None:
        return entry
    latest = await _latest_sequence(store, thread_id)
    raise CommandError(f"thread {phrase(thread_id)} has no checkpoint #{sequence}; its latest is {latest}")


async def _latest_sequence(store: StorePorts, thread_id: str) -> str:
    """Return the sequence of a thread's latest checkpoint, also when that cannot be read, for want of its blobs say."""
    try:
        latest = await store.load(thread_id)
    except CorruptCheckpointError as error:
        return "unknown" if error.sequence is None else f"#{error.sequence}"
    except SchemaVersionError:
        return "of a newer format"
    if latest is None:
        raise CommandError(f"there is no thread {phrase(thread_id)}")
    return f"#{latest.sequence}"


def _show_diff(out: Output, changes: Diff) -> None:
    for key, value in changes.added.items():
        out.line([Span(f"+ {word(key)}: {json_text(value)}", Role.ADDED)])
    for key, value in changes.removed.items():
        out.line([Span(f"- {word(key)}: {json_text(value)}", Role.REMOVED)])
    for key, (before, after) in changes.changed.items():
        out.line([Span(f"~ {word(key)}: {json_text(before)} -> {json_text(after)}", Role.CHANGED)])
    if changes.is_empty:
        out.line([Span("no field of the state differs")])
