"""What a run writes: the base of the journals, of which there is one for each way of checkpointing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar

from strata_core.errors import ConflictError, InvalidInputError, LeaseHeldError, StoreUnavailableError
from strata_core.graph._context import Trail
from strata_core.graph._plan import Plan
from strata_core.ports import CheckpointStore
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision, Revision, Wait
from strata_core.rows import new_write_id

__all__ = [
    "Journal",
    "Position",
    "RefusedError",
    "StoreJournal",
    "SupersededError",
    "UnsavableStateError",
    "Writing",
    "repeat",
]

S = TypeVar("S")
T = TypeVar("T")


class Writing(Enum):
    """Which row a write appends."""

    FIRST = "first"
    STEP = "step"
    LAST = "last"


async def repeat(write: Callable[[], Awaitable[T]], error: StoreUnavailableError) -> T:
    """Repeat a write whose answer was lost, once: with its write ID it is done once, whatever had become of it.

    Raises:
        StoreUnavailableError: It was not written; or the answer was lost again.
    """
    if not error.maybe_written:
        raise error
    return await write()


class UnsavableStateError(Exception):
    """A state has no JSON form; nothing was written."""

    def __init__(self, cause: InvalidInputError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class SupersededError(Exception):
    """Another writer went on with the thread; nothing was written."""


class RefusedError(Exception):
    """The thread could not be taken: a live lease, or another row, was in the way.

    Attributes:
        held: Whether it was a live lease.
    """

    def __init__(self, *, held: bool = False) -> None:
        super().__init__()
        self.held = held


class Position(Generic[S]):
    """Where a thread stands: where it stopped or last committed, where it goes on, its state, and what it waits for.

    Inside a subgraph it stopped and goes on at the subgraph's node, and `nested` tells where in there.
    """

    __slots__ = ("nested", "next", "state", "suspended", "wait")

    def __init__(
        self,
        suspended: str | None,
        next: str | None,  # noqa: A002  # as in the record
        state: S,
        wait: Wait | None = None,
        nested: Checkpoint | None = None,
    ) -> None:
        self.suspended = suspended
        self.next = next
        self.state = state
        self.wait = wait
        self.nested = nested


class Journal(Generic[S]):
    """The journal of a run without a store, which keeps nothing, and the base of the others.

    Attributes:
        every_node: Whether `commit` writes.
        is_stored: Whether the thread is kept in a store.
        records_completion: Whether the end of the graph gets a row.
        decision: The human decision that every row carries.
        trail: How far the thread has come.
        carried: The anchor and step of a thread that failed or was cancelled, set before it is resumed: they go on
            naming its visit until a node commits.
        fresh: Whether the thread must not exist yet; set before the run starts.
    """

    every_node = False
    is_stored = False
    records_completion = False
    _takes_text = False

    def __init__(self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], trail: Trail | None = None) -> None:
        self._plan = plan
        self._clock = plan.clock
        self._thread_id = thread_id
        self._metadata = metadata
        self.decision: HumanDecision | None = None
        self.trail = Trail.begin(plan.uses_context) if trail is None else trail
        self.carried: tuple[bytes, int] | None = None
        self.fresh = False

    def record(self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None) -> Checkpoint:
        """Return the record of a position.

        Raises:
            UnsavableStateError: The state has no JSON form.
        """
        plan = self._plan
        try:
            content = plan.codec.encode(at.state) if self._takes_text else plan.codec.dump(at.state)
        except InvalidInputError as error:
            raise UnsavableStateError(error) from error
        metadata = self._metadata
        return Checkpoint(
            self._thread_id,
            status,
            content,
            self._clock.now(),
            at.suspended,
            at.next,
            {**metadata, **extra} if extra else metadata,
            at.nested,
            self.decision,
            at.wait,
            plan.identity,
        )

    async def start(self, at: Position[S]) -> None:
        """Begin a run of a new execution.

        Raises:
            RefusedError: Another writer has the thread; or it is to be fresh, and exists.
            UnsavableStateError: The state has no JSON form.
        """

    async def commit(self, at: Position[S]) -> None:
        """Note that a node has committed and another one follows."""

    async def halt(self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None) -> None:
        """Note where the run stops, and let go of the thread.

        Raises:
            UnsavableStateError: The state has no JSON form.
            SupersededError: Another writer went on with the thread.
        """

    async def settle(self) -> Writing | None:
        """Finish a write that a cancellation interrupted, and tell which row that was; None when there was none.

        Repeated with its write ID, it is done exactly once, whatever had become of it.

        Raises:
            ConflictError: Another writer was first.
            RefusedError: Another writer has the thread.
        """
        return None

    @property
    def revision(self) -> Revision | None:
        """The row that was written last; None before there is one, and without a store."""
        return None

    async def latest(self) -> Checkpoint | None:
        """Return the thread's latest checkpoint, whoever wrote it."""
        return None

    async def release(self) -> None:
        """Let go of the thread without a row."""

    async def close(self) -> None:
        """Stop whatever works in the background."""


class StoreJournal(Journal[S]):
    """What journals with a store share."""

    is_stored = True

    def __init__(self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], store: CheckpointStore) -> None:
        from strata_core.store import RowStore  # which whoever gives one has imported

        super().__init__(plan, thread_id, metadata)
        self._store = store
        # Whatever else may stand in for a store, such as a wrapper, gets a dict that it can look into and change.
        self._takes_text = type(store) is RowStore and store.takes_text
        self._revision: Revision | None = None
        self._pending: tuple[Writing, bytes, Callable[[], Awaitable[Any]]] | None = None

    @property
    def revision(self) -> Revision | None:
        return self._revision

    async def finish(self, at: Position[S], expected: Revision) -> None:
        """Append the only row that a resume needs whose boundary is on an end of the graph: nothing runs any more.

        Raises:
            RefusedError: Another writer has the thread, or was first.
            UnsavableStateError: The state has no JSON form.
        """
        await self._save_free(Writing.LAST, self.record(CheckpointStatus.COMPLETED, at), expected)

    async def _save_free(self, what: Writing, checkpoint: Checkpoint, expected: Revision) -> None:
        """Append a row to what nobody has gone on with, and nobody holds.

        Raises:
            RefusedError: Somebody has, or does.
        """
        write_id = new_write_id()
        write = partial(self._store.save_if_latest, checkpoint, expected, unleased=True, write_id=write_id)
        try:
            await self._write(what, write_id, write)
        except ConflictError as error:
            raise RefusedError(held=isinstance(error, LeaseHeldError)) from None

    def _written(self, what: Writing, write_id: bytes, answer: Any) -> None:
        """Note what a write came to."""

    async def _write(self, what: Writing, write_id: bytes, write: Callable[[], Awaitable[Any]]) -> None:
        """Do a write, and remember it until its outcome is known."""
        self._pending = what, write_id, write
        try:
            try:
                answer = await write()
            except StoreUnavailableError as error:
                answer = await repeat(write, error)
        except asyncio.CancelledError:
            raise
        except InvalidInputError as error:
            self._pending = None
            raise UnsavableStateError(error) from error
        except BaseException:
            self._pending = None
            raise
        self._pending = None
        self._written(what, write_id, answer)

    async def settle(self) -> Writing | None:
        pending, self._pending = self._pending, None
        if pending is None:
            return None
        what, write_id, write = pending
        self._written(what, write_id, await write())
        return what

    async def latest(self) -> Checkpoint | None:
        entry = await self._store.load(self._thread_id)
        return None if entry is None else entry.checkpoint
