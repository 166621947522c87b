"""What a run says whose lease is lost: how that came."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from strata_core.graph import Cancelled, CancelReason

STOOD_STILL: Final = "the process, or its event loop, stood still"
NO_ANSWER: Final = "the store did not answer in time"
TAKEN: Final = "the store says that it has expired, or that somebody else has taken the thread"
OVERWRITTEN: Final = "somebody has written to the thread without it"


def lost(node: str, why: str, ttl: timedelta | None = None, thread_id: str = "t") -> Cancelled:
    """Return what a run comes to whose lease was lost at a node; with a ttl, because it was not renewed within that."""
    late = "" if ttl is None else f"it was not renewed within its {ttl.total_seconds():g} s: "
    return Cancelled(thread_id, CancelReason.LEASE_LOST, node, late + why)
