"""Why a checkpoint was written, where a thread stands, what it waits for: the enums of `strata_core.records`.

Apart, because building a graph needs these and none of the records, which take long to make.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["FINISHED", "CheckpointStatus", "ThreadState", "WaitKind"]


class CheckpointStatus(StrEnum):
    """Why a checkpoint was written.

    Attributes:
        INTERRUPTED: The thread stopped and waits: for a person, an event or a time.
        FAILED: A node failed for good.
        CANCELLED: A token, a deadline or the cancellation of its task stopped the run.
        RUNNING: A node committed, or a run or resume began.
        COMPLETED: The run reached an end of the graph.
        ENDED: Somebody ended the thread, or its wait timed out; it can never be resumed.
    """

    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"
    COMPLETED = "completed"
    ENDED = "ended"


class ThreadState(StrEnum):
    """Where a thread stands: the status of its latest checkpoint, or `RESUMED` once a resume began from that.

    Attributes:
        INTERRUPTED: It waits for a person, an event or a time.
        FAILED: A node failed for good; a resume tries it again.
        CANCELLED: Its run was stopped; a resume goes on with the node that had not committed.
        RUNNING: A run is under way, or its process died; a live lease tells the former.
        COMPLETED: It reached an end of its graph.
        ENDED: Somebody ended it, or its wait timed out without a route.
        RESUMED: A resume began from its latest checkpoint, and nothing was written since: it runs, it completed under
            `CheckpointPolicy.BOUNDARIES`, or its process died.
    """

    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"
    COMPLETED = "completed"
    ENDED = "ended"
    RESUMED = "resumed"


FINISHED: Final = frozenset({ThreadState.COMPLETED, ThreadState.ENDED})
"""The states of threads that will not run again: what a purge takes by default."""


class WaitKind(StrEnum):
    """What an interrupted thread waits for."""

    EVENT = "event"
    TIMER = "timer"
    PERSON = "person"
