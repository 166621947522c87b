"""The engine's own keys in the metadata of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strata_core._validation import check_metadata
from strata_core.errors import InvalidInputError

__all__ = [
    "AFTER_WAIT",
    "CANCEL_DETAIL",
    "CANCEL_REASON",
    "ENDED_BY",
    "ENDED_REASON",
    "ERROR",
    "RECOVERED_BY",
    "VISIT",
    "check_user_metadata",
    "pack_visit",
    "read_visit",
    "user_metadata",
]

PREFIX: Final = "strata."
MAX_PAIRS: Final = 64
"""How many pairs a user may give: each is indexed at every save that changes it."""
ERROR: Final = "strata.error"
"""The type and text of the error of a failed node."""
CANCEL_REASON: Final = "strata.cancel_reason"
"""A `CancelReason`."""
CANCEL_DETAIL: Final = "strata.cancel_detail"
"""What the cancellation token gave as its reason."""
ENDED_BY: Final = "strata.ended_by"
"""Who ended the thread."""
ENDED_REASON: Final = "strata.ended_reason"
"""Why they ended it."""
VISIT: Final = "strata.visit"
"""Anchor and step of a visit that a failure or a cancellation cut short: keeps idempotency keys the same."""

RECOVERED_BY: Final = "strata.recovered_by"
"""Who went on with a thread whose process had died."""
AFTER_WAIT: Final = "strata.after_wait"
"""Stands on rows between the end of a wait and the next commit, for graphs that check a state again after a wait."""


def check_user_metadata(metadata: object) -> dict[str, str]:
    """Return a copy of a user's metadata.

    Raises:
        InvalidInputError: It breaks a rule, has a key of the engine's, or more than `MAX_PAIRS` pairs.
    """
    pairs = dict(check_metadata({} if metadata is None else metadata))
    if len(pairs) > MAX_PAIRS:
        text = f"has {len(pairs)} pairs, at most {MAX_PAIRS} are allowed: what is not searched for belongs in the state"
        raise InvalidInputError("metadata", text)
    for key in pairs:
        if key.startswith(PREFIX):
            raise InvalidInputError(f"metadata key {key!r}", f"the prefix {PREFIX!r} is the engine's; use another one")
    return pairs


def user_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the pairs of a checkpoint's metadata that are the user's."""
    return {key: value for key, value in metadata.items() if not key.startswith(PREFIX)}


def pack_visit(anchor: bytes, step: int) -> str:
    """Return anchor and step as text."""
    return f"{anchor.hex()}.{step}"


def read_visit(metadata: Mapping[str, str]) -> tuple[bytes, int] | None:
    """Return the anchor and step that a checkpoint carries; None without, or when they are not ours."""
    anchor, _, step = metadata.get(VISIT, "").partition(".")
    if len(anchor) != 16 or not step.isdecimal() or len(step) > 18:
        return None
    try:
        return bytes.fromhex(anchor), int(step)
    except ValueError:
        return None
