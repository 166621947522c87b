"""Writing a thread's log page by page, however long it is."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import AsyncIterator

from strata_core.ports import StorePorts
from strata_core.records import LogPage
from strata_host.cli._errors import CommandError
from strata_host.cli._json_shapes import record_json
from strata_host.cli._text import phrase
from strata_host.cli._views import log_line
from strata_host.cli.output import output, to_json

__all__ = ["write_log"]


async def write_log(store: StorePorts, thread_id: str, *, as_json: bool) -> None:
    """Write every checkpoint of a thread to stdout; only one page of them is in memory at a time.

    Raises:
        CommandError: There is no such thread; nothing was written.
        StrataError: A checkpoint cannot be read; the pages before it were written.
    """
    if as_json:
        await _write_json(store, thread_id)
        return
    out = output()
    async for page in _pages(store, thread_id):
        for entry in page.entries:
            out.line(log_line(entry))


async def _write_json(store: StorePorts, thread_id: str) -> None:
    separator = f'{{\n  "thread_id": {to_json(thread_id)},\n  "checkpoints": [\n'
    async for page in _pages(store, thread_id):
        for entry in page.entries:
            item = to_json({"sequence": entry.sequence, "checkpoint": record_json(entry.checkpoint)})
            sys.stdout.write(separator + textwrap.indent(item, "    "))
            separator = ",\n"
    sys.stdout.write("\n  ]\n}\n")


async def _pages(store: StorePorts, thread_id: str) -> AsyncIterator[LogPage]:
    page = await store.get_log(thread_id)
    if not page.entries:
        raise CommandError(f"there is no thread {phrase(thread_id)}")
    yield page
    while page.next_start is not None:
        page = await store.get_log(thread_id, start=page.next_start)
        yield page
