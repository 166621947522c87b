"""`strata thread`: which threads there are, and one of them in full."""

from __future__ import annotations

import attrs
import click

from strata_core.clock import SYSTEM_CLOCK
from strata_core.ports import StorePorts
from strata_core.records import Lease, LogEntry, ThreadQuery
from strata_host.cli._errors import CommandError
from strata_host.cli._filters import filter_options
from strata_host.cli._json_shapes import lease_json, page_json, record_json
from strata_host.cli._source import Source, json_option, source_options
from strata_host.cli._states import show_states
from strata_host.cli._text import argument, phrase
from strata_host.cli._views import THREAD_HEADER, thread_fields, thread_row
from strata_host.cli.output import Span, output, print_json

__all__ = ["thread"]


@click.group()
def thread() -> None:
    """Which threads there are, and where they stand."""


@thread.command("list")
@filter_options
@click.option("--due", is_flag=True, help="Only threads whose timer or timeout is due, by this machine's clock.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Threads a page.")
@click.option("--cursor", help="Go on where the page before ended: what it printed as its next page.")
@json_option
@source_options
def list_threads(
    source: Source,
    filters: ThreadQuery,
    due: bool,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List threads, the latest updated first.

    Threads updated at the same time stand in descending order of their IDs.
    """
    query = attrs.evolve(filters, due_before=SYSTEM_CLOCK.now() if due else None, limit=limit, cursor=cursor)
    page = source.read(lambda store: store.list_threads(query))
    if as_json:
        print_json(page_json(page))
        return
    out = output()
    if page.threads:
        out.table(THREAD_HEADER, [thread_row(found) for found in page.threads])
    else:
        out.line([Span("no thread matches" if cursor is None else "no more threads")])
    if page.next_cursor is not None:
        out.line([Span(f"next page: --cursor {argument(page.next_cursor)}")])


@thread.command()
@click.argument("thread_id", metavar="ID")
@json_option
@source_options
def inspect(source: Source, thread_id: str, as_json: bool) -> None:
    """Show the latest checkpoint of a thread in full."""
    entry, lease = source.read(lambda store: _latest(store, thread_id))
    checkpoint = entry.checkpoint
    if as_json:
        print_json(
            {
                "thread_id": checkpoint.thread_id,
                "state": checkpoint.state.value,
                "sequence": entry.sequence,
                "revision": str(entry.revision),
                "checkpoints": entry.sequence + 1,
                "lease": lease_json(lease),
                "checkpoint": record_json(checkpoint),
            }
        )
        return
    out = output()
    out.fields(list(thread_fields(entry, lease)))
    show_states(out, checkpoint)


async def _latest(store: StorePorts, thread_id: str) -> tuple[LogEntry, Lease | None]:
    entry = await store.load(thread_id)
    if entry is None:
        raise CommandError(f"there is no thread {phrase(thread_id)}")
    return entry, await store.live_lease(thread_id)
