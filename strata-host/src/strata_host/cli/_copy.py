"""`strata copy`: threads with their whole logs into another store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import attrs
import click

from strata_core.options import Deltas, Offload, Setup
from strata_core.ports import StorePorts
from strata_core.records import FINISHED, ThreadQuery
from strata_host.cli._entered import entered
from strata_host.cli._errors import opening, querying
from strata_host.cli._filters import filter_options
from strata_host.cli._progress import progress
from strata_host.cli._source import Source, json_option, shared_url
from strata_host.cli._text import argument, counted, one_line, phrase, word
from strata_host.cli.output import Role, Span, output, print_json

__all__ = ["copy"]


@attrs.frozen
class Target:
    """Where to write.

    Attributes:
        storage: A path or URL.  May hold a password, so it is not shown.
        blobs: A folder or a blob URL for offloaded values; None is the store's own database.
        deltas: Store running checkpoints as deltas.
        offload: Store large values apart, once.
    """

    storage: str = attrs.field(repr=False)
    blobs: str | None = attrs.field(repr=False)
    deltas: bool
    offload: bool

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[StorePorts]:
        """Open the store for writing, and set it up where that is needed."""
        from strata_core.opening import open_store

        options = "'--to'", "'--to-blobs'"
        with opening(*options):
            offload = Offload(blobs=self.blobs) if self.offload or self.blobs is not None else None
            context = open_store(
                shared_url(self.storage, "'--to'"),
                deltas=Deltas() if self.deltas else None,
                offload=offload,
                setup=Setup.AUTO,
            )
        async with entered(context, *options) as store:
            yield store


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    metavar="PATH|URL",
    help="The store to copy from; only read.  A URL with a password is best given as $STRATA_STORAGE.",
    envvar="STRATA_STORAGE",
)
@click.option("--from-blobs", metavar="FOLDER|URL", help="Where its offloaded values are, when not in its database.")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="PATH|URL",
    help="The store to copy to; made where it is not there.",
    envvar="STRATA_TARGET",
    show_envvar=True,
)
@click.option("--to-blobs", metavar="FOLDER|URL", help="Offload large values there.  Implies --offload.")
@click.option("--deltas", is_flag=True, help="Store running checkpoints as deltas there.")
@click.option("--offload", is_flag=True, help="Store values of 64 KiB and more apart there, each once.")
@click.option("--thread", "threads", multiple=True, metavar="ID", help="Only this thread; repeat it for several.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=8, show_default=True, help="Threads at once.")
@filter_options
@json_option
def copy(
    source: str,
    from_blobs: str | None,
    target: str,
    to_blobs: str | None,
    deltas: bool,
    offload: bool,
    threads: Sequence[str],
    concurrency: int,
    filters: ThreadQuery,
    as_json: bool,
) -> int:
    """Copy threads, with their whole logs, into another store.

    Writes to the target only.  Each log is read back and compared by hash.  A thread that the target has already, with
    the same log, is left as it is; one that an interrupted copy began is finished; any other of the same ID is refused.

    A thread that still waits in the source waits in both stores then: end it in the source before the copy is answered.

    Exit codes: 0 when all is copied, 1 when a thread was refused or a store failed, 2 for wrong usage.
    """
    if threads and filters != ThreadQuery():
        raise click.UsageError("'--thread' names the threads, so it does not go with filters")
    if source == target or _is_same_file(source, target):
        raise click.BadParameter("it is the same store as '--from'", param_hint="'--to'")
    read = Source(source, from_blobs, "'--from'", "'--from-blobs'")
    write = Target(target, to_blobs, deltas, offload)
    found = asyncio.run(_copy(read, write, threads, filters, concurrency, quiet=as_json))
    if as_json:
        print_json(found)
    else:
        _tell(found)
    return 1 if found["refused"] else 0


def _is_same_file(source: str, target: str) -> bool:
    """Tell whether both are paths to one file; a URL of it is found out when its first thread is copied."""
    paths = [os.path.expanduser(path) for path in (source, target)]  # noqa: PTH111  # Path() refuses what is no path
    return all(map(os.path.exists, paths)) and os.path.samefile(*paths)  # noqa: PTH121


async def _copy(
    source: Source, target: Target, threads: Sequence[str], filters: ThreadQuery, concurrency: int, *, quiet: bool
) -> dict[str, Any]:
    from strata_core.copying import CopyRefused, copy_threads
    from strata_core.errors import InvalidInputError

    copied: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    async with source.opened() as old:
        with querying():
            names = threads or await _listed(old, filters)
        async with target.opened() as new:
            with querying(), progress("threads", len(names), quiet=quiet) as step:
                async with aclosing(copy_threads(old, new, names, concurrency=concurrency)) as copies:
                    async for found in copies:
                        if isinstance(found, CopyRefused):
                            why = found.error  # the thread is named already, so an argument that names it is not
                            error = why.problem if isinstance(why, InvalidInputError) else str(why)
                            refused.append({"thread_id": found.thread_id, "error": error})
                        else:
                            copied.append(attrs.asdict(found) | {"can_go_on": found.state not in FINISHED})
                        step()
    place = {name: at for at, name in enumerate(names)}  # several are copied at once, and end in any order
    return {
        kind: sorted(found, key=lambda one: place[one["thread_id"]])
        for kind, found in (("copied", copied), ("refused", refused))
    }


async def _listed(store: StorePorts, filters: ThreadQuery) -> list[str]:
    """Return all threads that match; also those that cannot be read, whose copies are then refused one by one."""
    from strata_core.listing import ThreadWalk, UnreadableThread

    walk, names = ThreadWalk(store, filters), []
    while not walk.is_over:
        page = await walk.next_page()
        names += [thread.thread_id for thread in ([page] if isinstance(page, UnreadableThread) else page)]
    return names


def _tell(found: dict[str, Any]) -> None:
    out = output()
    for thread in found["copied"]:
        size = counted(thread["checkpoints"], "checkpoint")
        what = f" {thread['outcome']}: {size}, {thread['written']} written, "
        out.line([Span(word(thread["thread_id"]), Role.THREAD), Span(what + thread["digest"])])
    going = [thread["thread_id"] for thread in found["copied"] if thread["can_go_on"]]
    there, not_there = len(found["copied"]), len(found["refused"])
    are, were = "is" if there == 1 else "are", "was" if not_there == 1 else "were"
    out.line([Span(f"{counted(there, 'thread')} {are} in the target, {not_there} {were} refused")])
    if going:
        out.line([Span("these can still go on in the source: end them there before their copies are answered")])
        for thread_id in going:
            out.line([Span("  "), Span(argument(thread_id), Role.THREAD)])
    for thread in found["refused"]:
        click.echo(f"strata: {phrase(thread['thread_id'])} was not copied: {one_line(thread['error'])}", err=True)
