"""What became of a thread that was to be copied."""

from __future__ import annotations

from enum import StrEnum

import attrs

from strata_core.errors import StrataError
from strata_core.records import ThreadState

__all__ = ["CopyOutcome", "CopyRefused", "ThreadCopy"]


class CopyOutcome(StrEnum):
    """What became of a thread.

    Attributes:
        COPIED: The target had nothing of it, and has all of it now.
        CONTINUED: The target had the beginning of its log, as an interrupted copy leaves it, and has all of it now.
        UNCHANGED: The target had all of it already.
    """

    COPIED = "copied"
    CONTINUED = "continued"
    UNCHANGED = "unchanged"


@attrs.frozen
class ThreadCopy:
    """A thread whose log in the target is that of the source.

    Attributes:
        thread_id: The thread.
        outcome: What had to be done for that.
        checkpoints: How many checkpoints its log has.
        written: How many of them were written now.
        digest: ``sha256:`` and the hash over all its records in order, each as compact ASCII JSON with sorted keys and
            a line break behind it: read back from the target, and the same in the source.
        state: Where the thread stands, in both stores.
    """

    thread_id: str
    outcome: CopyOutcome
    checkpoints: int
    written: int
    digest: str
    state: ThreadState


@attrs.frozen
class CopyRefused:
    """A thread that was not copied, or not to its end.

    Attributes:
        thread_id: The thread.
        error: Why.
    """

    thread_id: str
    error: StrataError
