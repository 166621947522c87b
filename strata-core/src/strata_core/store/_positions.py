"""Where a save expects a thread to stand."""

from __future__ import annotations

from typing import Final, Literal

from strata_core._validation import MAX_SEQUENCE, check_int, check_write_id
from strata_core.errors import InvalidInputError
from strata_core.ports import ANY as ANY_REVISION
from strata_core.ports import AnyRevision
from strata_core.records import Revision
from strata_core.rows import ANY, NOTHING

__all__ = ["ANYWHERE", "MAX_SEQUENCE", "Position", "position_of"]

Position = tuple[int, bytes]
"""`Commit.after` and `Commit.after_id`: the sequence and write ID of what must be the latest row."""
ANYWHERE: Final[Position] = (ANY, b"")


def position_of(expected: int | Revision | Literal[AnyRevision.ANY] | None) -> Position:
    """Return the position that an `expected` argument of a port names.

    Raises:
        InvalidInputError: It names none.
    """
    if isinstance(expected, Revision):
        sequence, write_id = expected.sequence, expected.write_id
        if type(sequence) is int and 0 <= sequence <= MAX_SEQUENCE and type(write_id) is bytes and len(write_id) == 8:
            return sequence, write_id  # as all are that a store gave
        sequence = check_int(expected.sequence, "expected.sequence", 0, MAX_SEQUENCE)
        return sequence, check_write_id(expected.write_id, "expected.write_id")
    if expected is ANY_REVISION:
        return ANYWHERE
    if expected is None:
        return NOTHING, b""
    if type(expected) is not int:
        raise InvalidInputError("expected", f"must be a Revision, an int or None, not {type(expected).__name__}")
    return check_int(expected, "expected", 0, MAX_SEQUENCE), b""
