"""The calls of a graph that are made on a schedule: what is due goes on, and what a dead process left is finished."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Generic, TypeVar

from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._plan import Plan
from strata_core.graph._recover import recover_thread, recover_threads
from strata_core.graph._results import RunResult
from strata_core.graph._sweep import ListingStore, SweepReport
from strata_core.graph._wake import wake_threads
from strata_core.ports import CheckpointStore

__all__ = ["UpkeepCalls"]

S = TypeVar("S")


class UpkeepCalls(Generic[S]):
    """What a compiled graph does for threads that nobody else goes on with."""

    __slots__ = ()
    _plan: Plan[S]

    async def wake_due(self, store: ListingStore, *, limit: int = 100, concurrency: int = 10) -> SweepReport[S]:
        """Go on with the threads whose timer or timeout is due, several at once.  Nothing wakes by itself: call this on
        a schedule, from as many processes as you like.

        A timer goes on at its next node; an event or a person that did not come in time, at the timeout route, and
        nothing is decided by that, or the thread is ended: `Cancelled` with `TIMED_OUT`.  No thread is woken twice, or
        before its time by the graph's clock.

        Only threads that carry the graph's own ID are its threads here, and for a graph without an identity only those
        that carry none.  What happens to one thread, whose node fails or which cannot be read, never stops the others.
        A thread that was not woken stays due.  Each runs to its next stop, as `resume` would run it, without deadline
        and token; the call returns when all have come to theirs.

        Args:
            store: Where the threads are; it must be able to list them.
            limit: How many threads to wake at most, 1 to 1,000; those that are refused do not count.  Those that
                were updated longest ago come first, so that none starves, however many come due.
            concurrency: How many at once, 1 to 1,000.

        Returns:
            What became of each thread, by its ID.  A thread that somebody else was faster with stands under `refused`.

        Raises:
            InvalidInputError: An argument breaks a rule.
            UnsupportedError: The store cannot list threads.
            SchemaVersionError: The store was never set up, or is of another version; nothing was done.
            StoreUnavailableError: The store is down, and nothing was done.
            asyncio.CancelledError: The calling task was cancelled.  So were the runs of the threads that were being
                woken, whose `cancelled` checkpoints are written; the others wait on.
        """
        return await wake_threads(self._plan, store, limit=limit, concurrency=concurrency)

    async def recover(
        self,
        thread_id: str,
        store: CheckpointStore,
        *,
        deadline: datetime | timedelta | None = None,
        cancellation: CancellationToken | None = None,
    ) -> RunResult[S]:
        """Finish a thread whose process died while it was running under `CheckpointPolicy.EVERY_NODE`.

        Goes on at the node that was running when the process died, with the state that was committed before it, and
        the thread's decision and metadata.  That node runs again, from its first attempt, with the same
        `NodeContext.idempotency_key`; no node that has committed ever does.  A state of another version of the graph
        goes through `upcast`.

        The thread is taken over in one step, under a lease, and only as it was read: of racing calls exactly one gets
        it, and a run that lives, which its lease tells, is never taken.  A process that was only frozen can write
        nothing any more when it wakes up.  Who took it is kept in the metadata as ``strata.recovered_by``.

        Whatever the policy of this graph, the thread stays under a lease and gets a row after every node.

        Args:
            thread_id: The thread.
            store: Where it is.
            deadline: When to stop: an aware time, or a time from now.
            cancellation: Stops the run from elsewhere.

        Returns:
            What the run comes to; or `Failed` with the code of a refusal, and nothing is written: `LEASE_HELD` while it
            runs, and for up to `lease_ttl` after its process died; `NOT_RUNNING` when it waits, failed or was
            cancelled; `NOT_RECOVERABLE` when it was resumed under `BOUNDARIES`; `NOT_FOUND`, `COMPLETED`, `ENDED`,
            `WRONG_GRAPH`, `UNKNOWN_NODE`, `REHYDRATION_FAILED`; `ALREADY_RESUMED` when another writer was faster.

        Raises:
            InvalidInputError: An argument breaks a rule.
            StoreUnavailableError: The store is down.
            asyncio.CancelledError: The calling task was cancelled.  Under either policy the `cancelled` checkpoint is
                written before that, if the thread was taken by then and the store answers within 5 seconds.
        """
        return await recover_thread(self._plan, thread_id, store, deadline=deadline, cancellation=cancellation)

    async def recover_all(self, store: ListingStore, *, limit: int = 100, concurrency: int = 10) -> SweepReport[S]:
        """Finish the threads of this graph whose processes died, several at once; see `recover`.

        Call it when a process starts, and every now and then: any number of processes may do so at the same time.
        Threads of other graphs are left alone; a graph without an identity takes only threads without one.

        Args:
            store: Where they are.
            limit: How many threads to take at most, 1 to 1,000; those that are refused or cannot be read do not count.
                The threads that were updated longest ago come first: call again while the report is not complete.
            concurrency: How many at once, 1 to 1,000.

        Returns:
            What became of each; one thread's trouble never stops the others.

        Raises:
            InvalidInputError: An argument breaks a rule.
            UnsupportedError: The store cannot list threads.
            SchemaVersionError: The store was never set up, or is of another version; nothing was done.
            StoreUnavailableError: The store is down, and nothing was done.
            asyncio.CancelledError: The calling task was cancelled.  Every thread that was being finished has its
                `cancelled` checkpoint.
        """
        return await recover_threads(self._plan, store, limit=limit, concurrency=concurrency)
