"""The versions of the record format."""

from __future__ import annotations

import re
from typing import Final

from strata_core.errors import SchemaVersionError

__all__ = ["DELTA", "ENCODED", "PLAIN", "SCHEMA_VERSION", "WITH_BLOBS", "MalformedRecordError", "check_version"]

PLAIN: Final = "1.7.0"
"""The version of a record that is whole and names no blob."""
DELTA: Final = "1.8.0"
"""The version of a record that is a difference and names no blob."""
WITH_BLOBS: Final = "1.9.0"
"""The version of a record that names blobs."""
SCHEMA_VERSION: Final = "1.9.0"
"""The newest record format that this release reads and writes."""
ENCODED: Final = (1, 8, 0)
"""From here on a stored body is an envelope."""
_NEWEST: Final = (1, 9, 0)
_VERSION: Final = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)


class MalformedRecordError(ValueError):
    """A record does not have its form; whoever knows the row turns this into `CorruptCheckpointError`."""


def check_version(version: object) -> tuple[int, ...]:
    """Let pass every 1.x up to our own, and return its three numbers.

    Raises:
        SchemaVersionError: It is newer.
        MalformedRecordError: It is no version.
    """
    match = _VERSION.fullmatch(version) if type(version) is str else None
    if match is None:
        raise MalformedRecordError(f"has schema_version {version!r}, which is no version")
    numbers = tuple(map(int, match.groups()))
    if numbers < (1, 0, 0):
        raise MalformedRecordError(f"has schema_version {version!r}, which never existed")
    if numbers <= _NEWEST:
        return numbers
    raise SchemaVersionError(
        f"schema_version {version} is newer than {SCHEMA_VERSION}; upgrade strata-core to read it",
        found=str(version),
        supported=SCHEMA_VERSION,
    )
