"""What mutants are made of: the table of them, and stores, backends and blob stores to override a method of."""

from __future__ import annotations

import asyncio
import copy
import selectors
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

import attrs

from strata_core.blobs import InMemoryBlobStore
from strata_core.capabilities import Capability
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, LogEntry, LogPage
from strata_core.rows import Batching, Commit, Committed, Head, Refused
from strata_core.store import RowStore

__all__ = [
    "MUTANTS",
    "Blobs",
    "Entries",
    "ForeignBlobs",
    "Mutant",
    "Refusing",
    "Restless",
    "Suspending",
    "Wrapper",
    "breaks",
]

T = TypeVar("T", bound=type)


@attrs.frozen
class Mutant:
    """A broken store.

    Attributes:
        promise: The promise that it is there to break.
        broken: A `Wrapper`, a `MemoryBackend` or a `Blobs`.
        reasons: The promises that the same broken rule necessarily breaks too, each with the reason.
    """

    promise: str
    broken: type
    reasons: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def also(self) -> frozenset[str]:
        """The promises in `reasons`."""
        return frozenset(self.reasons)


MUTANTS: Final[dict[str, Mutant]] = {}
"""The table, by the name of the class."""


def breaks(promise: str, *, also: Mapping[str, str] | None = None) -> Callable[[T], T]:
    """Enter a class into the table.

    Args:
        promise: The promise that it is there to break.
        also: The promises that the same broken rule breaks too, as one text, and why they do: what their tests do that
            cannot go well with it.
    """
    reasons = {identity: reason for identities, reason in (also or {}).items() for identity in identities.split()}

    def enter(broken: T) -> T:
        assert broken.__name__ not in MUTANTS, broken.__name__
        MUTANTS[broken.__name__] = Mutant(promise, broken, reasons)
        return broken

    return enter


class Wrapper:
    """Passes everything on to a good store on `backend`."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        self._backend = backend
        self._options = options
        self._store = RowStore(backend, **options)
        self._was_opened = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def __aenter__(self) -> Self:
        await self._store.__aenter__()
        self._was_opened = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self._store.close()
        return None

    def live(self, thread_id: str) -> Head | None:
        """Return the head of a thread that a live lease holds."""
        head = self._backend._heads.get(thread_id) if isinstance(thread_id, str) else None
        return head if head is not None and head.is_leased(self.now()) else None

    def now(self) -> int:
        """Return the time in microseconds."""
        from strata_core.clock import micros

        return micros(self._backend._clock.now())

    @staticmethod
    def taken(checkpoint: Any) -> Any:
        """Return a checkpoint whose state is a copy of now; anything else as it is."""
        if not isinstance(checkpoint, Checkpoint) or type(checkpoint.frozen_state) is not dict:
            return checkpoint
        try:
            return attrs.evolve(checkpoint, frozen_state=copy.deepcopy(checkpoint.frozen_state))
        except RecursionError:
            return checkpoint


class Entries(Wrapper):
    """Changes each entry that a load or a log returns."""

    def entry(self, entry: LogEntry) -> LogEntry:
        return attrs.evolve(entry, checkpoint=self.checkpoint(entry.checkpoint))

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        return checkpoint

    async def load(self, thread_id: str, **options: Any) -> LogEntry | None:
        entry = await self._store.load(thread_id, **options)
        return None if entry is None else self.entry(entry)

    async def get_log(self, thread_id: str, **options: Any) -> LogPage:
        page = await self._store.get_log(thread_id, **options)
        return attrs.evolve(page, entries=[self.entry(entry) for entry in page.entries])


class Refusing(Wrapper):
    """Does not declare `lacking`, and serves it all the same."""

    lacking: ClassVar[Capability]

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._store.capabilities - {self.lacking}


class ForeignBlobs(Wrapper):
    """Puts `around` around a blob store that it is given; `put`, `get` and `delete_thread` are the blob store's."""

    def __init__(self, backend: MemoryBackend, **options: Any) -> None:
        offload = options.get("offload")
        if offload is not None and offload.blobs is not None:
            self._blobs = offload.blobs
            options["offload"] = attrs.evolve(offload, blobs=_Around(self))
        super().__init__(backend, **options)

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        await self._blobs.put(thread_id, digest, content)

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        return await self._blobs.get(thread_id, digest)  # type: ignore[no-any-return]  # whatever it was given

    async def delete_thread(self, thread_id: str) -> None:
        await self._blobs.delete_thread(thread_id)


class _Around:
    def __init__(self, wrapper: ForeignBlobs) -> None:
        self.put, self.get, self.delete_thread = wrapper.put, wrapper.get, wrapper.delete_thread


class Suspending(MemoryBackend):
    """Waits a moment before it commits, as a database does; `meanwhile` says what goes wrong in that moment."""

    batching = Batching()  # type: ignore[assignment]  # unlike its base, it suspends

    async def commit(self, batch: Any) -> Any:
        before = {commit.thread_id: self._heads.get(commit.thread_id) for commit in batch}
        await asyncio.sleep(0)
        self.meanwhile(batch, before)
        return await super().commit(batch)

    def meanwhile(self, batch: list[Commit], before: Mapping[str, Head | None]) -> None:
        """What goes wrong."""

    def restore(self, thread_id: str, head: Head | None) -> None:
        """Put back a head that was read before."""
        if head is None:
            self._heads.pop(thread_id, None)
        else:
            self._heads[thread_id] = head


class Blobs(InMemoryBlobStore):
    """A good blob store; every handle on a storage is one of its own."""

    def __init__(self, storage: dict[str, dict[str, tuple[bytes, datetime]]]) -> None:
        super().__init__()
        self._threads = storage


class Restless(asyncio.SelectorEventLoop):
    """Does not sit out a wait: when nothing has happened for `IDLE` seconds, its time jumps to the next timer.

    A store in memory has no thread and no socket that could still answer: what waits there waits for a timer, such as
    the pause before another try, or the patience of the suite with a store that hangs.
    """

    IDLE: ClassVar = 0.01

    def __init__(self) -> None:
        selector = selectors.DefaultSelector()
        self._jumped = 0.0
        self._wait = selector.select
        selector.select = self._select_briefly  # type: ignore[method-assign]
        super().__init__(selector)

    def time(self) -> float:
        return super().time() + self._jumped

    def _select_briefly(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= self.IDLE:
            return self._wait(timeout)
        events = self._wait(self.IDLE)
        if not events:
            self._jumped += timeout - self.IDLE
        return events


def members(value: Any) -> Iterator[Any]:
    """Yield a JSON value and everything in it."""
    yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in inner:
        yield from members(item)


def replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value in which every scalar has been changed."""
    if isinstance(value, Mapping):
        return {key: replaced(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, change) for item in value]
    return change(value)


Outcome = Committed | Refused
