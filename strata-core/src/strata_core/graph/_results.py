"""What a call on a graph comes to."""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

import attrs

from strata_core.records import Revision, Wait

__all__ = ["CancelReason", "Cancelled", "Completed", "Failed", "FailureCode", "Interrupted", "RunResult"]

S = TypeVar("S")


class FailureCode(StrEnum):
    """Why a call failed or was refused.  The texts of `Failed` are for people; match on this.

    Attributes:
        NODE_FAILED: A node failed after its retries, and no fallback took over.
        ROUTING_FAILED: A router failed, or named a node that is none of its targets.
        TIMER_FAILED: The function that tells a timer's delay failed, or told none.
        INVALID_STATE: A node returned a state that cannot be saved.
        THREAD_EXISTS: Refused: `run` was to begin a new thread, and the thread has a checkpoint.
        NOT_FOUND: Refused: the thread has no checkpoint.
        ALREADY_RESUMED: Refused: somebody else has answered or resumed the thread.
        CHANGED: Refused: the thread's latest checkpoint is not the one that was `expected`; look at it again.
        RUNNING: Refused: the thread is running; or its process died, and it must be recovered.
        COMPLETED: Refused: the thread completed.
        ENDED: Refused: the thread was ended.
        LEASE_HELD: Refused: somebody holds a live lease on the thread.
        WRONG_GRAPH: Refused: the thread belongs to another graph.
        WRONG_WAIT: Refused: the thread waits for something else: a person, an event or a time.
        WRONG_EVENT: Refused: the thread waits for an event of another type.
        NOT_DUE: Refused: the time that the thread waits for, or its timeout, has not come.
        NEVER_DUE: Refused: the thread waits for a person or an event, for as long as it takes.
        NOT_WAITING: Refused: the thread failed or was cancelled, and waits for no event and no time.
        SIGNAL_REQUIRED: Refused: the thread waits for a person, and the resume carries no answer.
        UNKNOWN_LEVEL: Refused: `LevelSignals.outer` names a level that is not around the thread's wait.
        INVALID_SIGNAL: Refused: an override does not fit the state; the thread still waits.
        REHYDRATION_FAILED: Refused: the saved state no longer fits the state type.
        UNKNOWN_NODE: Refused: the graph has no node where the thread goes on.
        NOT_RUNNING: Refused: nothing is to be recovered; the thread waits, failed or was cancelled.
        NOT_RECOVERABLE: Refused: a resume began, and nothing tells how far it came; the thread must be ended.
        RESUME_CHECK_FAILED: `on_resume` failed, and no node has run; the thread can be resumed once more.
        SUPERSEDED: Another writer went on with the thread; this run stopped and wrote nothing.
    """

    NODE_FAILED = "node_failed"
    ROUTING_FAILED = "routing_failed"
    TIMER_FAILED = "timer_failed"
    INVALID_STATE = "invalid_state"
    THREAD_EXISTS = "thread_exists"
    NOT_FOUND = "not_found"
    ALREADY_RESUMED = "already_resumed"
    CHANGED = "changed"
    RUNNING = "running"
    COMPLETED = "completed"
    ENDED = "ended"
    LEASE_HELD = "lease_held"
    WRONG_GRAPH = "wrong_graph"
    WRONG_WAIT = "wrong_wait"
    WRONG_EVENT = "wrong_event"
    NOT_DUE = "not_due"
    NEVER_DUE = "never_due"
    NOT_WAITING = "not_waiting"
    SIGNAL_REQUIRED = "signal_required"
    UNKNOWN_LEVEL = "unknown_level"
    INVALID_SIGNAL = "invalid_signal"
    REHYDRATION_FAILED = "rehydration_failed"
    UNKNOWN_NODE = "unknown_node"
    NOT_RUNNING = "not_running"
    NOT_RECOVERABLE = "not_recoverable"
    RESUME_CHECK_FAILED = "resume_check_failed"
    SUPERSEDED = "superseded"


class CancelReason(StrEnum):
    """Why a run or a thread was cancelled.

    Attributes:
        CANCELLED: Its cancellation token, or its task, was cancelled.
        DEADLINE: Its deadline passed.
        ENDED: Somebody ended the thread.
        TIMED_OUT: Its wait timed out, and no route was given for that.
        LEASE_LOST: Its lease on the thread was lost: another process may go on with it.  The run wrote nothing more;
            unless another process has it already, the thread stays `running`, and `recover_all` finishes it.
    """

    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    ENDED = "ended"
    TIMED_OUT = "timed_out"
    LEASE_LOST = "lease_lost"


@attrs.frozen
class Completed(Generic[S]):
    """The run reached an end of the graph.

    Attributes:
        thread_id: The thread.
        state: The final state.
    """

    thread_id: str
    state: S


@attrs.frozen
class Interrupted(Generic[S]):
    """The run stopped at a boundary, an event wait or a timer, and its thread waits.

    Attributes:
        thread_id: The thread.
        suspended_node: The node it stopped at, whose state is committed; when it waits inside a subgraph, the
            subgraph's node, which has not.
        next_node: The node it goes on at when approved, signalled or woken; None when that node is an end of the graph.
            Inside a subgraph, the subgraph's node: it goes on in there.
        frozen_state: The state it stopped with, of the outermost graph; what a person reviews inside a subgraph is in
            the checkpoint's `nested`.
        waiting_at: The path to the wait: names of subgraph nodes, then the node it stopped at.
        wait: What it waits for and until when; None for a person without a timeout.
        revision: Of the checkpoint that it stopped with; None without a store.  Who answers this stop, and no other,
            gives it to `resume` as `expected`.
    """

    thread_id: str
    suspended_node: str
    next_node: str | None
    frozen_state: S
    waiting_at: tuple[str, ...]
    wait: Wait | None = None
    revision: Revision | None = attrs.field(default=None, eq=False)


@attrs.frozen
class Failed:
    """A node failed, or the call was refused.

    Attributes:
        thread_id: The thread.
        code: Why; one member for each failure and refusal.
        message: One sentence, for people to read; it tells as well what failed inside of the node.
        node: The node that failed, of the outermost graph; None for a refusal.
        detail: The cause: a path, or the type and text of an error.
        error: The error itself, in this process only.
    """

    thread_id: str
    code: FailureCode
    message: str
    node: str | None = None
    detail: str | None = None
    error: BaseException | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class Cancelled:
    """The run was stopped, or the thread was ended.

    Attributes:
        thread_id: The thread.
        reason: Why.
        node: Where it stopped, in the outermost graph; a resume goes on there, except after `ENDED` and `TIMED_OUT`.
        detail: What the token gave as its reason, if it did; after `LEASE_LOST`, how the lease was lost.
    """

    thread_id: str
    reason: CancelReason
    node: str | None = None
    detail: str | None = None


RunResult: TypeAlias = Completed[S] | Interrupted[S] | Failed | Cancelled
"""What `run`, `resume` and `signal` return."""
