"""A compiled graph: what runs, resumes and ends threads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._end import end_thread
from strata_core.graph._plan import Plan
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._reenter import resume_thread
from strata_core.graph._results import Cancelled, Failed, RunResult
from strata_core.graph._signal import signal_thread
from strata_core.graph._signals import EventSignal, HumanSignal, LevelSignals
from strata_core.graph._start import start_thread
from strata_core.graph._stream_calls import StreamCalls
from strata_core.graph._sync import SyncCalls
from strata_core.graph._upkeep_calls import UpkeepCalls
from strata_core.ports import CheckpointStore
from strata_core.records import GraphIdentity, Revision

__all__ = ["CompiledGraph"]

S = TypeVar("S")


class CompiledGraph(UpkeepCalls[S], SyncCalls[S], StreamCalls[S]):
    """A graph that is ready to run.  Immutable, and safe to share between tasks, threads and event loops.

    A graph's own trouble is a result; misuse and a store that is down raise.

    A node that has committed never runs again.  A node that had begun and not committed runs again when its thread is
    resumed after a failure or a cancellation: what it did to the outside world may then happen twice, unless that is
    told its `NodeContext.idempotency_key`.

    When a process dies, `recover` and `recover_all` finish what it was running under `EVERY_NODE`; use that for
    anything that must not be lost.  Under `BOUNDARIES` a straight run that dies is lost, and a resumed one stays
    `resumed`: `end` is the way out.

    What each call returns and writes, wherever the thread stands, is told in ``CALLS.md``, beside the user guide.
    """

    __slots__ = ()

    def __init__(self, plan: Plan[S]) -> None:
        object.__setattr__(self, "_plan", plan)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a compiled graph cannot be changed; compile another one")

    def __repr__(self) -> str:
        plan = self._plan
        name = "" if plan.identity is None else f"{plan.identity.id!r} {plan.identity.version!r}, "
        return f"<CompiledGraph {name}{len(plan.nodes)} nodes, {plan.checkpointing.value}>"

    @property
    def identity(self) -> GraphIdentity | None:
        """The ID and version it stamps on checkpoints."""
        return self._plan.identity

    @property
    def checkpointing(self) -> CheckpointPolicy:
        """When its runs write checkpoints."""
        return self._plan.checkpointing

    def definition(self) -> dict[str, Any]:
        """Return what the graph consists of as a JSON document, in an order that depends on the graph alone.

        Holds names, ways and settings, and neither code nor state: what a function would tell is said to be computed.
        The format is that of ``strata_core/_schema/graph.schema.json``; `strata graph validate` and
        `strata_core.graph.definitions` read it.

        Raises:
            UsageError: Graphs are nested more than 100 deep.
        """
        from strata_core.graph._definition import define

        return define(self._plan)

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart, with its children to any depth, its waits and all its routes.

        Raises:
            UsageError: Graphs are nested more than 100 deep.
        """
        from strata_core.graph._mermaid import draw

        return draw(self.definition())

    async def run(
        self,
        thread_id: str,
        state: S,
        store: CheckpointStore | None = None,
        *,
        metadata: Mapping[str, str] | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
        if_exists: Literal["append", "error"] = "append",
    ) -> RunResult[S]:
        """Run the graph from its entry.

        Give each new execution an ID of its own, and `if_exists="error"` where the same ID may come twice, such as a
        script that is started again: by default a run of an ID that exists starts the thread over, at the end of its
        log, even while it waits for a person.

        Args:
            thread_id: The thread: 1 to 512 UTF-8 bytes, no NUL.
            state: The state to begin with; never changed.
            store: Where checkpoints go; None to keep nothing.  A run without a store that stops at a boundary returns
                `Interrupted` with the state, and cannot be resumed.
            metadata: Stamped on every checkpoint: str to str, at most 64 pairs; the prefix ``strata.`` is refused.
            deadline: When to stop: an aware time, or a time from now.
            cancellation: Stops the run from elsewhere.
            if_exists: What to do when the thread has a checkpoint: ``append`` a new execution to its log, or return
                `Failed` with `THREAD_EXISTS` (``error``).  Of racing runs with ``error`` exactly one gets the thread.
                Under `EVERY_NODE` the others run no node.  Under `BOUNDARIES`, which writes nothing before the first
                stop, this is asked before the first node, and again in the step that saves the stop: a run that was
                overtaken meanwhile has run its nodes and writes nothing; one that completes leaves nothing behind
                that a later run could be refused for.

        Returns:
            `Completed`, `Interrupted`, `Failed` or `Cancelled`.  `THREAD_EXISTS` as `if_exists` says.  Under
            `EVERY_NODE`, `LEASE_HELD` when somebody's live lease is on the thread; `BOUNDARIES` takes no lease and asks
            for none.

        Raises:
            InvalidInputError: An argument breaks a rule; nothing has run.
            StoreUnavailableError: The store is down.
            asyncio.CancelledError: The calling task was cancelled.  Under either policy the `cancelled` checkpoint is
                written before that, if the thread was taken by then and the store answers within 5 seconds.
        """
        return await start_thread(
            self._plan,
            thread_id,
            state,
            store,
            metadata=metadata,
            deadline=deadline,
            cancellation=cancellation,
            if_exists=if_exists,
        )

    async def resume(
        self,
        thread_id: str,
        signal: HumanSignal | LevelSignals | None,
        store: CheckpointStore,
        *,
        expected: Revision | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
    ) -> RunResult[S]:
        """Go on with a thread that waits for a person, failed, or was cancelled.

        An answer to a boundary is recorded as the decision that every later node and checkpoint sees; of racing answers
        exactly one wins.  A thread that failed or was cancelled re-enters the node that stopped: the signal's overrides
        correct the state, and nothing is decided.

        A thread that stopped inside a subgraph goes on inside, and the signal is for the innermost state there: the
        answer is a decision of that level only.  `LevelSignals` also corrects the states around it.

        What a thread waits for, until when, and where it goes on after that, is told by its checkpoint: a graph that
        was compiled anew with another timeout, or without the wait, changes nothing for threads that wait already.
        Until a timeout is carried out, the person may still answer.

        Args:
            thread_id: The thread.
            signal: The answer; None for a failed or cancelled thread, as it is.  `LevelSignals.event` answers an event
                wait as `signal` does, and `LevelSignals.due` wakes or times out this one thread as `wake_due` does.
            store: Where the thread is.
            expected: The checkpoint that this answers: the `revision` that a `load`, a listing or `Interrupted` told.
                When another one is the latest by now, nothing is done: `CHANGED`.  None for whichever is the latest,
                which may be another stop than the one that the person has seen.
            deadline: When to stop: an aware time, or a time from now.
            cancellation: Stops the run from elsewhere.

        Returns:
            What the run comes to; or `Failed` with the code of a refusal, and nothing is written: `NOT_FOUND`,
            `CHANGED`, `ALREADY_RESUMED`, `RUNNING`, `COMPLETED`, `ENDED`, `WRONG_GRAPH`, `WRONG_WAIT`,
            `SIGNAL_REQUIRED`, `INVALID_SIGNAL`, `UNKNOWN_LEVEL`, `REHYDRATION_FAILED`,
            `UNKNOWN_NODE`; for an event or a time also
            `WRONG_EVENT`, `NOT_DUE`, `NEVER_DUE`, `NOT_WAITING`; and `LEASE_HELD` when somebody's live lease is on the
            thread, whose latest checkpoint is still the same.  `Cancelled` with `TIMED_OUT` when the thread was due,
            had no timeout route, and was ended.

        Raises:
            InvalidInputError: An argument breaks a rule.
            StoreUnavailableError: The store is down.
            asyncio.CancelledError: The calling task was cancelled.  Under either policy the `cancelled` checkpoint is
                written before that, if the thread was taken by then and the store answers within 5 seconds.
        """
        return await resume_thread(
            self._plan, thread_id, signal, store, expected=expected, deadline=deadline, cancellation=cancellation
        )

    async def signal(
        self,
        thread_id: str,
        event: EventSignal,
        store: CheckpointStore,
        *,
        expected: Revision | None = None,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
    ) -> RunResult[S]:
        """Go on with a thread that waits for this event.

        The event's overrides are put into the saved state before the next node runs; nothing is decided by it.  Of
        racing signals, and a timeout, exactly one wins.

        A signal that is refused is not kept.  One that came too early finds `NOT_FOUND`, `RUNNING` or `WRONG_WAIT`:
        send it again later.  One that was told twice, such as by a webhook, finds `ALREADY_RESUMED`, `COMPLETED` or
        `ENDED`, and nothing is left to do.  Where a thread waits for events of one type more than once, use
        `CheckpointPolicy.EVERY_NODE`: under `BOUNDARIES` a thread on its way from one wait to the next finds
        `ALREADY_RESUMED` as well, and of two events that come at once, the one that was not taken finds it anyway.

        Args:
            thread_id: The thread.
            event: The event; compared by its exact type.
            store: Where the thread is.
            expected: The checkpoint that this answers, as for `resume`.
            deadline: When to stop: an aware time, or a time from now.
            cancellation: Stops the run from elsewhere.

        Returns:
            What the run comes to; or `Failed` with the code of a refusal, and nothing is written: `NOT_FOUND`,
            `CHANGED`, `ALREADY_RESUMED`, `RUNNING`, `COMPLETED`, `ENDED`, `WRONG_GRAPH`, `WRONG_WAIT`,
            `WRONG_EVENT`, `NOT_WAITING`, `INVALID_SIGNAL`, `REHYDRATION_FAILED`, `UNKNOWN_NODE`, `LEASE_HELD`.

        Raises:
            InvalidInputError: An argument breaks a rule.
            StoreUnavailableError: The store is down.
            asyncio.CancelledError: The calling task was cancelled.  Under either policy the `cancelled` checkpoint is
                written before that, if the thread was taken by then and the store answers within 5 seconds.
        """
        return await signal_thread(
            self._plan, thread_id, event, store, expected=expected, deadline=deadline, cancellation=cancellation
        )

    async def end(
        self,
        thread_id: str,
        store: CheckpointStore,
        *,
        by: str | None = None,
        reason: str | None = None,
        expected: Revision | None = None,
    ) -> Cancelled | Failed:
        """End a thread where it stands; it can never be resumed after that.

        Takes an interrupted, failed or cancelled thread, a running one that no live lease holds, and a resumed one,
        because its process may have died: this is the way out of a thread that is stuck.  The row that ends it carries
        the identity of the graph that ended it, as every row names the graph that wrote it.

        Args:
            thread_id: The thread.
            store: Where it is.
            by: Who ends it; kept in the metadata as ``strata.ended_by``.
            reason: Why; kept in the metadata as ``strata.ended_reason``.
            expected: The checkpoint at which to end it, as for `resume`.

        Returns:
            `Cancelled` with the reason `ENDED`; or `Failed` with the code of a refusal: `NOT_FOUND`, `CHANGED`,
            `COMPLETED`, `ENDED` (also when somebody else's end or a timeout was faster), `LEASE_HELD`,
            `WRONG_GRAPH`, or `ALREADY_RESUMED` when somebody else went on with it.

        Raises:
            InvalidInputError: An argument breaks a rule.
            StoreUnavailableError: The store is down.
        """
        return await end_thread(self._plan, thread_id, store, by, reason, expected)
