"""The records that travel through the ports: frozen, whole, and free of storage details.

Field names and meanings follow `schema/README.md`; `strata_core.codec` turns records into JSON and back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from strata_core._statuses import FINISHED, CheckpointStatus, ThreadState, WaitKind

__all__ = [
    "FINISHED",
    "Checkpoint",
    "CheckpointStatus",
    "GraphIdentity",
    "HumanDecision",
    "Lease",
    "LogEntry",
    "LogPage",
    "Revision",
    "ThreadPage",
    "ThreadQuery",
    "ThreadState",
    "ThreadSummary",
    "Wait",
    "WaitKind",
]


@attrs.frozen
class GraphIdentity:
    """The ID and version of a graph, stamped on every checkpoint it writes.

    Attributes:
        id: A name that stays the same for the life of the graph.
        version: The version of its definition, as free text.
    """

    id: str
    version: str


@attrs.frozen
class HumanDecision:
    """The answer a person gave at a boundary.

    Attributes:
        boundary: The node whose boundary was answered.
        is_approved: Approved, or rejected.
        reviewer: Who answered; an identity, never a credential.
        overrides: The top-level state fields that the answer replaced, as JSON values.
        decided_at: When, in UTC.
    """

    boundary: str
    is_approved: bool
    reviewer: str
    decided_at: datetime
    overrides: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Wait:
    """What an interrupted thread waits for when that is more than a person without a timeout.

    Attributes:
        kind: An event, a timer, or a person with a timeout.
        event_type: The event that ends the wait; only for an event wait.
        due_at: When a timer fires or a timeout strikes, in UTC; None for never.
        on_timeout: The node to go on at after a timeout; None ends the thread.
    """

    kind: WaitKind
    event_type: str | None = None
    due_at: datetime | None = None
    on_timeout: str | None = None


@attrs.frozen(slots=False)  # of a frozen class with slots, an instance of as many fields takes several times as long
class Checkpoint:
    """A snapshot of a thread.

    Attributes:
        thread_id: The thread: 1 to 512 UTF-8 bytes, no NUL.
        status: Why it was written.
        frozen_state: The whole state as a JSON object.
        created_at: When it was written, aware.
        suspended_node: Where the thread stopped; for `running`, the node that last committed.
        next_node: The node that a resume or a recovery runs next; None for completed and ended.
        metadata: String pairs of the run; keys that begin with ``strata.`` are the engine's.
        nested: The child graph's own checkpoint when the thread stopped inside a subgraph.
        decision: The human decision in effect.
        wait: What an interrupted thread waits for, when more than a person without a timeout.
        graph: The graph that wrote it, when that has an identity.
        resumed_at: When a resume began from it, aware.
    """

    thread_id: str
    status: CheckpointStatus
    frozen_state: Mapping[str, Any]
    created_at: datetime
    suspended_node: str | None = None
    next_node: str | None = None
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    nested: Checkpoint | None = None
    decision: HumanDecision | None = None
    wait: Wait | None = None
    graph: GraphIdentity | None = None
    resumed_at: datetime | None = None

    @property
    def state(self) -> ThreadState:
        """Where a thread with this as its latest checkpoint stands."""
        return ThreadState.RESUMED if self.resumed_at is not None else ThreadState(self.status.value)

    @property
    def updated_at(self) -> datetime:
        """The later of `created_at` and `resumed_at`."""
        if self.resumed_at is None:
            return self.created_at
        return max(self.created_at, self.resumed_at)

    @property
    def due_at(self) -> datetime | None:
        """When a thread with this as its latest checkpoint must be woken; None for never."""
        if self.wait is None or self.state is not ThreadState.INTERRUPTED:
            return None
        return self.wait.due_at


@attrs.frozen
class Revision:
    """One stored checkpoint, named so that it cannot be mistaken for another.

    A sequence alone is not enough: a purged thread starts over at 0, and the same number is then another life.

    `str` gives its text form, such as ``4-9f86d081884c7d65``, for an ETag or a form; `parse` reads it back.

    Attributes:
        sequence: Its position in the thread's log, from 0.
        write_id: The 8 random bytes of the write that stored it.
    """

    sequence: int
    write_id: bytes

    def __str__(self) -> str:
        return f"{self.sequence}-{self.write_id.hex()}"

    @classmethod
    def parse(cls, text: str) -> Revision:
        """Return the revision that `str` gave as this text.

        Raises:
            InvalidInputError: It is no such text.
        """
        from strata_core._validation import check_revision_text

        return cls(*check_revision_text(text))


@attrs.frozen
class LogEntry:
    """A stored checkpoint and its place in the thread's log."""

    sequence: int
    checkpoint: Checkpoint
    revision: Revision


@attrs.frozen
class Lease:
    """The right to write to one thread, until it expires.

    Attributes:
        thread_id: The thread.
        token: Grows with every lease of the store; decides, never `owner`.
        owner: Who holds it, for people to read.
        expires_at: When it expires on the store's clock, in UTC.
        saved: The sequence of the checkpoint that was saved in the step that took the lease, if one was.
    """

    thread_id: str
    token: int
    owner: str
    expires_at: datetime
    saved: int | None = None


@attrs.frozen
class ThreadQuery:
    """Which threads to list.  Filters are ANDed; None means any; an empty set of states matches nothing.

    Attributes:
        states: The states to list.
        metadata: Pairs that must all be there, compared exactly.
        updated_after: Only threads updated later than this; exclusive.
        updated_before: Only threads updated earlier than this; exclusive.
        graph_id: Only threads of this graph.
        graph_version: Only threads of this version of a graph.
        due_before: Only threads due by this time; inclusive.
        leased: Only threads that a live lease holds (True), or that none does (False).
        limit: How many threads a page holds, 1 to 1,000.
        cursor: `ThreadPage.next_cursor` of the page before; only for a query in the same order.
        oldest_first: Those that were updated longest ago come first, instead of last.  While somebody pages so, a
            thread that is updated moves to the end, and is seen there once more.
    """

    states: Collection[ThreadState] | None = None
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    graph_id: str | None = None
    graph_version: str | None = None
    due_before: datetime | None = None
    leased: bool | None = None
    limit: int = 100
    cursor: str | None = None
    oldest_first: bool = False


@attrs.frozen
class ThreadSummary:
    """One thread in a listing: everything of its latest checkpoint except the state.

    Attributes:
        revision: Of its latest checkpoint: what `CompiledGraph.resume` takes as `expected`.
        lease: The live lease on the thread, if there is one.
    """

    thread_id: str
    sequence: int
    state: ThreadState
    status: CheckpointStatus
    updated_at: datetime
    revision: Revision
    suspended_node: str | None = None
    next_node: str | None = None
    wait: Wait | None = None
    graph: GraphIdentity | None = None
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    lease: Lease | None = None


@attrs.frozen
class ThreadPage:
    """A page of a listing, in the order of its query.

    Attributes:
        threads: The threads of this page.
        next_cursor: Give it to the next `ThreadQuery`; None on the last page.  Opaque.
    """

    threads: Sequence[ThreadSummary]
    next_cursor: str | None = None


@attrs.frozen
class LogPage:
    """A slice of a thread's log, oldest first.

    Attributes:
        entries: The checkpoints of this slice.
        next_start: Where the next slice starts; None when this one reaches the end of the log.
    """

    entries: Sequence[LogEntry]
    next_start: int | None = None
