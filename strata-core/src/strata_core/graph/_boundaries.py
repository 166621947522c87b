"""The journal that writes only where a run stops."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeVar

from strata_core.errors import ConflictError
from strata_core.graph._journal import Position, RefusedError, StoreJournal, SupersededError, Writing
from strata_core.graph._plan import Plan
from strata_core.ports import CheckpointStore
from strata_core.records import Checkpoint, CheckpointStatus, Revision

__all__ = ["BoundariesJournal"]

S = TypeVar("S")


class BoundariesJournal(StoreJournal[S]):
    """Writes where a run stops.

    The stop of a resumed thread is saved only if the row of the resume is still the latest, so that nothing ever
    follows what another writer has written meanwhile, such as its end.  The stop of a run that must be the first of its
    thread is saved only if the thread still has no row.
    """

    def __init__(self, plan: Plan[S], thread_id: str, metadata: Mapping[str, str], store: CheckpointStore) -> None:
        super().__init__(plan, thread_id, metadata, store)
        self._revision: Revision | None = None

    async def start(self, at: Position[S]) -> None:
        if self.fresh and await self.latest() is not None:
            raise RefusedError

    async def stamp(self, checkpoint: Checkpoint, expected: Revision) -> None:
        """Append the copy of a checkpoint that says that a resume began from it.

        Raises:
            RefusedError: Another writer was first.
        """
        write_id = os.urandom(8)

        async def write() -> None:
            sequence = await self._store.save_if_latest(checkpoint, expected, unleased=True, write_id=write_id)
            self._revision = Revision(sequence, write_id)
            self.anchor, self.step = self.carried or (write_id, 0)

        try:
            await self._write(write, Writing.FIRST)
        except ConflictError:
            raise RefusedError from None

    async def halt(self, status: CheckpointStatus, at: Position[S], extra: Mapping[str, str] | None = None) -> None:
        checkpoint = self._checkpoint(status, at, extra)
        write_id = os.urandom(8)
        revision = self._revision

        async def write() -> None:
            if revision is None and not self.fresh:
                await self._store.save(checkpoint, write_id=write_id)
            else:
                await self._store.save_if_latest(checkpoint, revision, write_id=write_id)

        try:
            await self._write(write, Writing.LAST)
        except ConflictError:
            raise SupersededError from None
