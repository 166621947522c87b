"""A compiled graph: what runs, resumes and ends threads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._end import end_thread
from strata_core.graph._plan import Plan
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._reenter import resume_thread
from strata_core.graph._results import Cancelled, Failed, RunResult
from strata_core.graph._signals import HumanSignal
from strata_core.graph._start import start_thread
from strata_core.graph._sync import SyncCalls
from strata_core.ports import CheckpointStore
from strata_core.records import GraphIdentity

__all__ = ["CompiledGraph"]

S = TypeVar("S")


class CompiledGraph(SyncCalls[S]):
    """A graph that is ready to run.  Immutable, and safe to share between tasks, threads and event loops.

    A graph's own trouble is a result; misuse and a store that is down raise.

    A node that has committed never runs again.  A node that had begun and not committed runs again when its thread is
    resumed after a failure or a cancellation: what it did to the outside world may then happen twice, unless that is
    told its `NodeContext.idempotency_key`.  A thread whose process died stays `running` (or `resumed`): nothing goes on
    with it by itself, and `end` is the way out.
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
            metadata: Stamped on every checkpoint: str to str; the prefix ``strata.`` is refused.
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
            asyncio.CancelledError: The calling task was cancelled.  The `cancelled` checkpoint is written.
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
        signal: HumanSignal | None,
        store: CheckpointStore,
        *,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
    ) -> RunResult[S]:
        """Go on with a thread that waits for a person, failed, or was cancelled.

        An answer to a boundary is recorded as the decision that every later node and checkpoint sees; of racing answers
        exactly one wins.  A thread that failed or was cancelled re-enters the node that stopped: the signal's overrides
        correct the state, and nothing is decided.

        Args:
            thread_id: The thread.
            signal: The answer; None for a failed or cancelled thread, as it is.
            store: Where the thread is.
            deadline: When to stop: an aware time, or a time from now.
            cancellation: Stops the run from elsewhere.

        Returns:
            What the run comes to; or `Failed` with the code of a refusal, and nothing is written: `NOT_FOUND`,
            `ALREADY_RESUMED`, `RUNNING`, `COMPLETED`, `ENDED`, `WRONG_GRAPH`, `WRONG_WAIT`, `SIGNAL_REQUIRED`,
            `INVALID_SIGNAL`, `REHYDRATION_FAILED`, `UNKNOWN_NODE`; and `LEASE_HELD` when somebody's live lease is on
            the thread, whose latest checkpoint is still the same.

        Raises:
            InvalidInputError: An argument breaks a rule.
            StoreUnavailableError: The store is down.
            asyncio.CancelledError: The calling task was cancelled.  The `cancelled` checkpoint is written.
        """
        return await resume_thread(self._plan, thread_id, signal, store, deadline=deadline, cancellation=cancellation)

    async def end(
        self, thread_id: str, store: CheckpointStore, *, by: str | None = None, reason: str | None = None
    ) -> Cancelled | Failed:
        """End a thread where it stands; it can never be resumed after that.

        Takes an interrupted, failed or cancelled thread, a running one that no live lease holds, and a resumed one,
        because its process may have died: this is the way out of a thread that is stuck.

        Args:
            thread_id: The thread.
            store: Where it is.
            by: Who ends it; kept in the metadata as ``strata.ended_by``.
            reason: Why; kept in the metadata as ``strata.ended_reason``.

        Returns:
            `Cancelled` with the reason `ENDED`; or `Failed` with the code of a refusal: `NOT_FOUND`, `COMPLETED`,
            `ENDED`, `LEASE_HELD`, `WRONG_GRAPH`, or `ALREADY_RESUMED` when another writer was faster.

        Raises:
            InvalidInputError: An argument breaks a rule.
            StoreUnavailableError: The store is down.
        """
        return await end_thread(self._plan, thread_id, store, by, reason)
