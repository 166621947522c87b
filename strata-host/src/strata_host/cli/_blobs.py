"""`strata blobs`: what lies in a blob store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from strata_core.clock import SYSTEM_CLOCK
from strata_core.ports import BlobStore, StorePorts
from strata_host.cli._json_shapes import orphans_json
from strata_host.cli._source import Source, json_option, source_options
from strata_host.cli._text import word
from strata_host.cli._views import time_text
from strata_host.cli.output import Line, Role, Span, output, print_json

if TYPE_CHECKING:
    from strata_core.blobs import BlobCheck

__all__ = ["blobs"]

_HEADER: Final = ("THREAD", "WHY", "BLOBS", "BYTES", "NEWEST")
_AGE: Final = re.compile(r"(\d{1,6})([smhd])")
_LONGEST: Final = timedelta(days=36_500)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _age(_ctx: click.Context, _parameter: click.Parameter, text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a number with a unit, such as 90m, 24h or 7d")
    age = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if age > _LONGEST:
        raise click.BadParameter(f"{text!r} is more than {_LONGEST.days} days")
    return age


@click.group()
def blobs() -> None:
    """Look into a blob store that is apart from the rows."""


@blobs.command()
@click.option(
    "--older-than",
    default="24h",
    show_default=True,
    metavar="AGE",
    callback=_age,
    help="Only blobs put longer ago than this, in s, m, h or d: a blob is put before its checkpoint.",
)
@json_option
@source_options
def orphans(source: Source, older_than: timedelta, as_json: bool) -> None:
    """Show blobs that no checkpoint of the store refers to.

    Nothing is deleted.  A save that failed leaves them; they go when their thread is purged.  Do not delete one by hand
    while anything writes to the store: a save of the same value finds it, and does not put it again.  A purge that is
    under way shows, too.
    """
    before = SYSTEM_CLOCK.now() - older_than
    checks = source.read_with_blobs(lambda store, blobs: _checks(store, blobs, before))
    found = [check for check in checks if check.orphans]
    if as_json:
        print_json(orphans_json(checks, before))
        return
    out = output()
    if found:
        out.table(_HEADER, [_row(check) for check in found])
    total = sum(len(check.blobs) for check in checks)
    lost = sum(len(check.orphans) for check in found)
    out.line([Span(f"{lost} of {total} blobs in {len(checks)} folders: no checkpoint refers to them")])


async def _checks(store: StorePorts, blobs: BlobStore, before: datetime) -> list[BlobCheck]:
    from strata_core.blobs import check_blobs

    return [check async for check in check_blobs(store, blobs, older_than=before)]


def _row(check: BlobCheck) -> Sequence[Line]:
    return (
        (Span(check.folder if check.thread_id is None else word(check.thread_id), Role.THREAD),),
        (Span("no checkpoint refers to them" if check.has_thread else "the store has no such thread"),),
        (Span(str(len(check.orphans))),),
        (Span(str(sum(blob.size for blob in check.orphans))),),
        (Span(time_text(max(blob.stored_at for blob in check.orphans)), Role.TIME),),
    )
