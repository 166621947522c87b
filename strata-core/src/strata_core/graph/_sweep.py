"""Doing something for many threads at once."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import attrs

from strata_core._validation import check_int, check_limit
from strata_core.errors import CorruptCheckpointError, InvalidInputError, SchemaVersionError
from strata_core.graph._inputs import check_store
from strata_core.graph._plan import Plan
from strata_core.graph._results import Failed, RunResult
from strata_core.listing import ThreadWalk, UnreadableThread
from strata_core.ports import CheckpointQuery, CheckpointStore
from strata_core.records import ThreadQuery

__all__ = ["ListingStore", "SweepReport", "sweep"]

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")

_PAGE: Final = 100
"""How many threads are listed at once."""


class ListingStore(CheckpointStore, CheckpointQuery, Protocol):
    """A store that can also find threads, as what `open_store` gives."""


@attrs.frozen
class SweepReport(Generic[S]):
    """What a call on many threads came to.

    Attributes:
        results: By thread ID, what each thread that was taken came to.  `Cancelled` with `LEASE_LOST` means that this
            process has let go of it: it stays `running`, and a later call takes it again, unless somebody else has.
        refused: By thread ID, why a thread was left as it is: somebody else was faster, its node is gone, its state
            does not fit.
        errors: By thread ID, what was raised: its checkpoint cannot be read, or the store was down.  A thread that was
            running by then stays `running`, and is found again.  Or a node has cancelled its own task, and with that
            the thread.
        is_complete: Whether all threads were looked at.  False when `limit` was reached, or the listing broke off
            (which is logged): call again.
    """

    results: Mapping[str, RunResult[S]]
    refused: Mapping[str, Failed]
    errors: Mapping[str, Exception]
    is_complete: bool


async def sweep(
    plan: Plan[S],
    store: ListingStore,
    query: ThreadQuery,
    act: Callable[[str], Coroutine[Any, Any, RunResult[S]]],
    *,
    limit: int,
    concurrency: int,
) -> SweepReport[S]:
    """Call `act` for every thread of this graph that a query finds, several at once.

    Only threads that carry the graph's own ID are its threads here, and for a graph without an identity only those
    that carry none.  What happens to one thread never stops the others.  Threads that turn out to be nobody's business
    here (refused, unreadable) do not use up `limit`.

    In the order of the query, but in random order within a page: processes that sweep at the same moment then seldom
    reach for the same one.  The first page holds no more than `limit`, so that those that stand first are also taken
    first.  A thread that comes up again, because it was updated meanwhile, is left for the next sweep.

    Args:
        plan: The graph.
        store: Where the threads are.
        query: Which of them; its graph, limit and cursor are set here.
        act: What to do with one; called in a task of its own.
        limit: How many threads are taken at most.
        concurrency: How many at once.

    Raises:
        InvalidInputError: An argument breaks a rule.
        UnsupportedError: The store cannot list threads.
        SchemaVersionError: The store was never set up, or is of another version; nothing was done.
        StoreUnavailableError: The store is down, and nothing was done.
        asyncio.CancelledError: The calling task was cancelled.  So was every `act`, and all have come to their end.
    """
    check_store(store)
    if not callable(getattr(store, "list_threads", None)):
        raise InvalidInputError("store", f"must be able to list threads, which {type(store).__name__} cannot")
    check_limit(limit)
    check_int(concurrency, "concurrency", 1, 1000)
    work = _Sweep(plan, store, query, act, limit)
    await work.begin()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, limit)):
            group.create_task(work.take_in_turn())
    return SweepReport(work.results, work.refused, work.errors, work.is_complete)


class _Sweep(Generic[S]):
    """One sweep: its candidates, and what became of them."""

    def __init__(
        self,
        plan: Plan[S],
        store: ListingStore,
        query: ThreadQuery,
        act: Callable[[str], Coroutine[Any, Any, RunResult[S]]],
        limit: int,
    ) -> None:
        identity = plan.identity
        self._without_graph = identity is None
        self._walk = ThreadWalk(
            store,
            query if identity is None else attrs.evolve(query, graph_id=identity.id),
            first=min(_PAGE, limit),
            most=_PAGE,
        )
        self._act = act
        self._left = limit
        self._found: deque[str] = deque()
        self._seen: set[str] = set()
        self._broken = False
        self._listing = asyncio.Lock()
        self.results: dict[str, RunResult[S]] = {}
        self.refused: dict[str, Failed] = {}
        self.errors: dict[str, Exception] = {}

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to look at."""
        return self._walk.is_over and not self._found and not self._broken

    async def begin(self) -> None:
        """List the first page; a store that cannot even do that raises."""
        await self._list()

    async def take_in_turn(self) -> None:
        """Take one thread after the other, until none is left or the limit is reached."""
        while self._left > 0 and (thread_id := await self._next()) is not None:
            if self._left == 0:  # another worker was faster, while this one listed
                self._found.appendleft(thread_id)
                return
            self._left -= 1
            try:
                result = await self._act_alone(thread_id)
            except Exception as error:  # noqa: BLE001  # one thread's trouble is not the others'
                _logger.warning("thread %r was left: %s", thread_id, type(error).__name__)
                self.errors[thread_id] = error
                if isinstance(error, CorruptCheckpointError | SchemaVersionError):
                    self._left += 1
            else:
                if isinstance(result, Failed) and result.node is None:
                    self.refused[thread_id] = result
                    self._left += 1
                else:
                    self.results[thread_id] = result

    async def _act_alone(self, thread_id: str) -> RunResult[S]:
        """Act in a task of its own: what a node does to context variables, or to its task, must not reach the next one.

        Raises:
            RuntimeError: Somebody has cancelled that task, and not the sweep.
        """
        worker = asyncio.current_task()
        try:
            return await asyncio.get_running_loop().create_task(self._act(thread_id))
        except asyncio.CancelledError:
            if worker is None or worker.cancelling():
                raise
            raise RuntimeError("the task that ran it was cancelled, perhaps by a node") from None

    async def _next(self) -> str | None:
        async with self._listing:
            while not (self._found or self._walk.is_over or self._broken):
                try:
                    await self._list()
                except Exception as error:  # noqa: BLE001  # what was done so far must be told
                    _logger.warning("a listing of threads broke off: %s", type(error).__name__)
                    self._broken = True
            return self._found.popleft() if self._found else None

    async def _list(self) -> None:
        """List one more page, passing over what cannot be read."""
        page = await self._walk.next_page()
        if isinstance(page, UnreadableThread):
            self.errors[page.thread_id] = page.error
            self._seen.add(page.thread_id)
            return
        from random import shuffle

        found = [thread.thread_id for thread in page if thread.graph is None or not self._without_graph]
        found = [thread_id for thread_id in found if thread_id not in self._seen]
        self._seen.update(found)
        shuffle(found)
        self._found += found
