"""Times and durations as text."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Any, Final

from strata_core.graph._misfit import MisfitError, mismatch

__all__ = ["dump_datetime", "dump_time", "load_datetime", "load_time", "read_duration", "write_duration"]

# A reader takes the zeros that other languages write behind the microseconds, and nothing that would be cut off.
_DATETIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6}0*)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{6})?)?)"
).fullmatch
_DURATION: Final = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>[0-9]+)D)?(?:T(?P<seconds>[0-9]+)(?:\.(?P<micro>[0-9]{1,6}))?S)?"
).fullmatch


def dump_datetime(value: Any) -> str:
    """Return the text of an aware datetime."""
    if type(value) is not datetime:
        raise mismatch(value, "a datetime")
    if value.utcoffset() is None:
        raise MisfitError("must be an aware datetime, for example datetime.now(timezone.utc)")
    text = value.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def load_datetime(value: Any) -> datetime:
    """Return the aware datetime of a text; its offset is kept."""
    if type(value) is not str:
        raise mismatch(value, "the text of an aware datetime")
    try:
        moment = datetime.fromisoformat(value) if _DATETIME(value) else None
    except ValueError:
        moment = None
    if moment is None:
        raise MisfitError("must be an aware datetime as ISO 8601 text, such as '2026-10-30T14:49:52Z'")
    return moment


def dump_time(value: Any) -> str:
    """Return the text of a time of day."""
    if type(value) is not time:
        raise mismatch(value, "a time")
    if value.tzinfo is not None and value.utcoffset() is None:
        raise MisfitError(
            "has a time zone whose offset depends on the date; save a datetime, or the zone's name beside"
        )
    return value.isoformat()


def load_time(value: Any) -> time:
    """Return the time of day of a text."""
    if type(value) is not str:
        raise mismatch(value, "the text of a time")
    try:
        found = time.fromisoformat(value)
        if found.isoformat() == value:
            return found
    except ValueError:
        pass
    raise MisfitError("must be a time as ISO 8601 text, such as '14:49:52'")


def write_duration(value: timedelta) -> str:
    """Return the ISO 8601 text of a duration, in days and seconds."""
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    day = f"{value.days}D" if value.days else ""
    seconds = str(value.seconds) + (f".{value.microseconds:06}".rstrip("0") if value.microseconds else "")
    return f"{sign}P{day}" + (f"T{seconds}S" if seconds != "0" or not day else "")


def read_duration(text: str) -> timedelta:
    """Return the duration of such a text.

    Raises:
        ValueError: It is none.
    """
    parts = _DURATION(text)
    if parts is None:
        raise ValueError("no duration")
    try:
        length = timedelta(
            int(parts["days"] or 0), int(parts["seconds"] or 0), int((parts["micro"] or "0").ljust(6, "0"))
        )
    except OverflowError:
        raise ValueError("too long") from None
    return -length if parts["sign"] else length
