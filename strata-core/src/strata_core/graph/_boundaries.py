"""The journal that writes only where a run stops."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from strata_core.errors import ConflictError
from strata_core.graph._journal import Position, RefusedError, StoreJournal, SupersededError, Writing
from strata_core.graph._plan import Plan
from strata_core.ports import CheckpointStore
from strata_core.records import Checkpoint, CheckpointStatus, Revision
from strata_core.rows import new_write_id

__all__ = ["BoundariesJournal"]

S = TypeVar("S")


class BoundariesJournal(StoreJournal[S]):
    """Writes where a run stops.

    The stop of a resumed thread is saved only if the row of the resume is still the latest, so that nothing ever
    follows what another writer has written meanwhile, such as its end; of a resume that was refused, nothing is.  The
    stop of a run that must be the first of its thread is saved only if the thread still has no row.
    """

    def __init__(self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], store: CheckpointStore) -> None:
        super().__init__(plan, thread_id, metadata, store)
        self._resumes = False
        self.records_completion = plan.completion_record

    async def start(self, at: Position[S]) -> None:
        if self.fresh and await self.latest() is not None:
            raise RefusedError

    async def stamp(self, checkpoint: Checkpoint, expected: Revision) -> None:
        """Append the copy of a checkpoint that says that a resume began from it.

        Raises:
            RefusedError: Another writer was first.
        """
        self._resumes = True
        await self._save_free(Writing.FIRST, checkpoint, expected)

    async def halt(self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None) -> None:
        if self._resumes and self._revision is None:
            raise SupersededError  # the thread was never taken, and is somebody else's
        checkpoint = self.record(status, at, extra)
        write_id = new_write_id()
        if self._revision is None and not self.fresh:
            write = partial(self._store.save, checkpoint, write_id=write_id)
        else:
            write = partial(self._store.save_if_latest, checkpoint, self._revision, write_id=write_id)
        try:
            await self._write(Writing.LAST, write_id, write)
        except ConflictError:
            raise SupersededError from None

    def _written(self, what: Writing, write_id: bytes, answer: int) -> None:
        self._revision = Revision(answer, write_id)
        if what is Writing.FIRST:
            self.trail.follow(*(self.carried or (write_id, 0)))
