"""RFC 3339 times in UTC with microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from strata_core.clock import from_micros

__all__ = ["format_time", "parse_time"]

_SHAPE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def format_time(micros: int) -> str:
    """Return a time, in microseconds since 1970 UTC, as ``2026-10-30T14:49:52.000000Z``.

    Raises:
        OverflowError: It lies outside the years 1 to 9999.
    """
    seconds, rest = divmod(micros, 1_000_000)
    return _format_seconds(seconds) + str(1_000_000 + rest)[1:] + "Z"  # half of what {rest:06} costs


@lru_cache(maxsize=16)
def _format_seconds(seconds: int) -> str:
    """Return the part that many checkpoints in a row have in common."""
    return from_micros(seconds * 1_000_000).isoformat()[:19] + "."


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
