"""What a plugin author implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import attrs

from strata_core.capabilities import Capability
from strata_core.options import Setup
from strata_core.rows._commit import Commit, Committed, Refused
from strata_core.rows._head import Head, Row
from strata_core.rows._query import HeadQuery

__all__ = ["Batching", "RowBackend"]


@attrs.frozen
class Batching:
    """How commits that wait together go down together.

    Attributes:
        max_items: At most this many commits in a batch.
        max_bytes: At most about this many bytes of rows and blobs in a batch (a single commit may be larger).
        in_flight: How many batches may be under way at once.
        threaded: Whether `commit` works in a thread of this process: the event loop then gives the interpreter to it
            now and then, since beside a busy loop a thread waits long.  False where it only waits for a server.
    """

    max_items: int = 64
    max_bytes: int = 4 << 20
    in_flight: int = 1
    threaded: bool = True


class RowBackend(ABC):
    """Keeps rows, heads and blobs of threads.

    Each primitive is one step of the storage, so that no lock, connection or transaction outlives a call.  Driver
    errors become `StoreUnavailableError` (with `maybe_written`), `StoreBusyError`, `SchemaVersionError` or
    `CorruptCheckpointError` here, ``from`` their cause, without secrets.  A driver's own retries are off: a write that
    is sent twice by a driver is done twice.  Calls come from one event loop, many at once, and may be cancelled at any
    await; a cancelled call leaves the backend usable.
    """

    capabilities: frozenset[Capability]
    """What the backend can do; a value, so that a wrapper can forward it."""
    absent: Mapping[Capability, str] = MappingProxyType({})
    """Why a capability is missing that it would have with other options, in words that name them."""
    batching: Batching | None = Batching()
    """None only where `commit` never suspends, as in memory."""

    @abstractmethod
    async def open(self, *, read_only: bool, setup: Setup) -> None:
        """Connect.  Creates or upgrades the storage only with `Setup.AUTO` and not `read_only`.

        With `Setup.NEVER` a storage that was never set up can be opened, so that `setup` can be called; until then
        every other call raises `SchemaVersionError` with ``none`` as what was found.

        Raises:
            SchemaVersionError: The storage is of a newer format.
            StoreUnavailableError: The storage cannot be reached, or a read-only one does not exist.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything.  Idempotent, also after a failed or cancelled `open`."""

    async def setup(self) -> None:  # noqa: B027  # a backend that needs nothing inherits this
        """Create or upgrade what the storage needs.  Idempotent; many processes may run it at once."""

    @abstractmethod
    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        """Take each commit all or nothing, with an outcome of its own, in order, under the backend's clock.

        A thread occurs at most once in a batch.  Every outcome follows `decide`.  When the call returns, everything
        committed is durable.  It never repeats a write by itself.

        One step everywhere: ONE transaction in SQLite (``BEGIN IMMEDIATE``, `decide` on each head, ``COMMIT``); ONE
        call of one function in Postgres, which locks each head row and answers for the whole batch; ONE script a
        commit in Redis, whose keys (rows, head, blobs, the index and the token counter of the thread's bucket) share a
        slot; ONE atomic rename of the head file in a folder, since a row beyond the head's sequence does not exist.

        Raises:
            StoreUnavailableError: With `maybe_written` when the outcome is unknown.
        """

    @abstractmethod
    async def read_head(self, thread_id: str) -> Head | None:
        """Return the thread's head with the backend's clock at this read in `now`; None for none.

        A head without rows is a head like any other.

        One step everywhere: ONE read of one row in SQLite; ONE query in Postgres, which selects the server's clock
        beside the row; ONE single-slot script in Redis that reads the hash and ``TIME``; ONE read of the head file in
        a folder, which is only ever replaced whole.
        """

    @abstractmethod
    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        """Return rows `first` to `last`, preceded by the rows back to the whole row that `first` builds on.

        `first` None is the latest row only; `last` None, or one past the end, is the latest.  Empty when the thread
        has no row `first`.  In order of sequence, without gaps.

        One step everywhere: ONE read transaction in SQLite; ONE statement in Postgres; ONE single-slot script in
        Redis; in a folder ONE read under the shared lock that a commit takes exclusively, so that what is read belongs
        to one moment.
        """

    @abstractmethod
    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        """Return the thread's own blobs of these digests; one that is not there is left out.

        One step everywhere: ONE query in SQLite and Postgres; ONE ``HMGET`` of one key in Redis; in a folder ONE read
        a file, which is content-addressed and never changes once it has its name.
        """

    @abstractmethod
    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        """Return heads that match, in keyset order, each with `now` and its latest row's `envelope`, empty without one.

        The order is (updated, thread ID as UTF-8 bytes); see `HeadQuery`.  Keyset paging makes each page a step of its
        own, so nothing is held between two pages.

        One step everywhere: ONE query in SQLite and Postgres; in Redis ONE pipeline of one range read a bucket, merged;
        in a folder ONE read of the head files under the shared lock.
        """
