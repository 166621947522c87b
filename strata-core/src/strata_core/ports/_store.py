from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, Protocol

from strata_core.capabilities import Capability

if TYPE_CHECKING:
    from strata_core.records import Checkpoint, Lease, LogEntry, Revision

__all__ = ["ANY", "AnyRevision", "CheckpointStore"]


class AnyRevision(Enum):
    """The type of `ANY`."""

    ANY = "any"


ANY: Final = AnyRevision.ANY
"""As `expected`: whatever is the latest checkpoint."""


class CheckpointStore(Protocol):
    """Appends and reads checkpoints; fences writers with leases.

    Every save is atomic and durable when it returns.  Appends to one thread by one store keep the order of the calls.
    Cancelling an awaited call leaves its write done or not done, never half, and the store usable.  A call may be
    repeated with the same `write_id` (8 bytes of ``os.urandom``): a write that had been done is recognised as long as
    it is among the thread's latest 8, and answers with the sequence it got.

    All methods raise `InvalidInputError` before anything is written, `StoreClosedError`, `ReadOnlyError` for writes,
    and `StoreUnavailableError`, whose `maybe_written` tells whether the outcome is unknown.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this store can do beyond these required methods."""
        ...

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        """Append unconditionally and return the sequence."""
        ...

    async def save_if_latest(
        self,
        checkpoint: Checkpoint,
        expected: int | Revision | None,
        *,
        unleased: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        """Append only if the thread's latest checkpoint is `expected` (None: the thread has none).

        A `Revision` is exact; a bare sequence cannot tell a purged and restarted thread from its earlier life.

        Args:
            checkpoint: What to append.
            expected: What must be the latest.
            unleased: Also require that no live lease holds the thread.
            write_id: See the class.

        Raises:
            ConflictError: Another checkpoint is the latest.
            LeaseHeldError: `unleased`, and somebody holds a live lease.
        """
        ...

    async def save_under_lease(
        self,
        checkpoint: Checkpoint,
        lease: Lease,
        *,
        expected: int | Revision | Literal[AnyRevision.ANY] | None = ANY,
        release: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        """Append only if `lease` is still held, judged in the same step as the append.

        Args:
            checkpoint: What to append; of the lease's thread.
            lease: The lease that must be live.
            expected: What must also be the latest; `ANY` asks for nothing.
            release: Give the lease back in the same step.
            write_id: See the class.

        Raises:
            LeaseLostError: It expired, was released or was taken over.
            ConflictError: Another checkpoint is the latest.
        """
        ...

    async def load(self, thread_id: str, *, at: int | None = None) -> LogEntry | None:
        """Return the latest checkpoint, or the one with sequence `at`; None when there is none.

        Raises:
            CorruptCheckpointError: It cannot be read as written.  Never a silent step back to an earlier one.
            SchemaVersionError: It is of a newer format.
        """
        ...

    async def acquire_lease(
        self,
        thread_id: str,
        *,
        owner: str,
        ttl: timedelta,
        save: Checkpoint | None = None,
        expected: int | Revision | Literal[AnyRevision.ANY] | None = ANY,
        write_id: bytes | None = None,
    ) -> Lease | None:
        """Take the thread's lease, and append `save` in the same step; None when somebody's live lease is in the way.

        Args:
            thread_id: The thread; it need not exist.
            owner: Who takes it, for people to read: 1 to 512 UTF-8 bytes, no NUL.
            ttl: How long it lives on the store's clock; positive.
            save: A checkpoint of the thread to append in the same step.
            expected: What must be the latest; `ANY` asks for nothing.
            write_id: See the class.

        Raises:
            ConflictError: Another checkpoint is the latest.
            LeaseLostError: A repeated call whose first attempt had taken the lease, and has lost it since.
        """
        ...

    async def renew_lease(self, lease: Lease, *, ttl: timedelta) -> Lease:
        """Let the lease live for `ttl` from now on and return it with its new expiry.

        Raises:
            LeaseLostError: It expired, was released or was taken over.
        """
        ...

    async def release_lease(self, lease: Lease) -> None:
        """Give the lease back.  Idempotent; one that is lost already is no error."""
        ...

    async def live_lease(self, thread_id: str) -> Lease | None:
        """Return the lease that holds the thread now, by the store's clock; None when none does."""
        ...
