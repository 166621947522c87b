"""What a user can choose about the file."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

import attrs

from strata_core.errors import InvalidInputError

__all__ = ["SqliteOptions", "Synchronous"]

_LONGEST_TIMEOUT = timedelta(hours=1)


class Synchronous(StrEnum):
    """When SQLite waits for the disk; see ``PRAGMA synchronous``."""

    FULL = "FULL"
    """Every commit is on the disk before it is answered: nothing acknowledged is lost, not even by a power cut."""
    NORMAL = "NORMAL"
    """A commit is safe from a killed process at once, and from a power cut after the next WAL checkpoint."""


def _synchronous(value: object) -> Synchronous:
    try:
        return Synchronous(value)  # type: ignore[arg-type]  # checked by the call
    except ValueError:
        raise InvalidInputError("synchronous", f"must be 'FULL' or 'NORMAL', not {value!r}") from None


def _timeout(_: object, attribute: attrs.Attribute[timedelta], value: object) -> None:
    if not isinstance(value, timedelta) or not timedelta(0) <= value <= _LONGEST_TIMEOUT:
        raise InvalidInputError(attribute.name, f"must be a timedelta from 0 to one hour, not {value!r}")


@attrs.frozen
class SqliteOptions:
    """The options of `SqliteBackend`.

    Attributes:
        synchronous: ``FULL`` (a commit that was answered survives a power cut) or ``NORMAL`` (it survives a killed
            process; a power cut may take the last ones).
        busy_timeout: How long a write waits for a writer of another process before it fails with `StoreBusyError`;
            from 0 to one hour.
    """

    synchronous: Synchronous = attrs.field(default=Synchronous.FULL, converter=_synchronous)
    busy_timeout: timedelta = attrs.field(default=timedelta(seconds=10), validator=_timeout)
