"""RFC 3339 times in UTC with microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timezone
from typing import Final

__all__ = ["format_time", "parse_time"]

_SHAPE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_utc: Final = timezone.utc  # noqa: UP017  # the same object as datetime.UTC; compared by identity below


def format_time(moment: datetime) -> str:
    """Return an aware datetime as ``2026-10-30T14:49:52.000000Z``.

    Raises:
        OverflowError: The time in UTC lies outside the years 1 to 9999.
    """
    if moment.tzinfo is not _utc:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def parse_time(text: str) -> datetime:
    """Return an RFC 3339 time as an aware UTC datetime; digits beyond microseconds are cut.

    Raises:
        ValueError: It is none.
    """
    if _SHAPE.fullmatch(text) is None:
        raise ValueError("is not an RFC 3339 time with an offset")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999 in UTC") from None
