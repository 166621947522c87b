"""Appending a checkpoint: read it once, send it, and if the store's memory was wrong, send it whole.

Whatever a save takes from memory (the base of a delta, a blob not sent again) holds only if the head is still the
remembered row, by sequence *and* write ID: a purged and restarted thread can have the same number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strata_core._validation import check_write_id
from strata_core.codec._state import Body, Snapshot, Value, compose_delta, compose_whole, plain_text, take_snapshot
from strata_core.codec._versions import DELTA, PLAIN, WITH_BLOBS
from strata_core.errors import ConflictError, LeaseHeldError, LeaseLostError
from strata_core.options import Deltas
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.rows import ANY, Commit, Committed, Drop, NewRow, Take, new_write_id
from strata_core.store._cache import Cache, Memory
from strata_core.store._committing import Committer
from strata_core.store._facts import read_facts
from strata_core.store._positions import ANYWHERE, Position
from strata_core.store._turns import Turns

__all__ = ["Saver"]

_OPENINGS: Final = {version: b'{"schema_version":"%b"' % version.encode() for version in (PLAIN, DELTA, WITH_BLOBS)}


class Saver:
    """Turns checkpoints into commits, for every kind of save.

    Args:
        committer: Gets commits done.
        deltas: Whether and how running checkpoints become deltas.
        threshold: The size from which values are offloaded; None for never.
    """

    def __init__(self, committer: Committer, deltas: Deltas | None, threshold: int | None) -> None:
        self._committer = committer
        self._deltas = deltas
        self._threshold = threshold
        self._cache = Cache(deltas if deltas is not None else Deltas())
        self.remembers = deltas is not None or threshold is not None
        self._turns = Turns()

    def forget(self, thread_id: str) -> None:
        """Drop what is remembered of a thread."""
        self._cache.forget(thread_id)

    async def save(
        self,
        checkpoint: Checkpoint,
        position: Position = ANYWHERE,
        *,
        write_id: bytes | None = None,
        token: int = 0,
        free: bool = False,
        lease: Take | Drop | None = None,
    ) -> Committed:
        """Append a checkpoint.

        Args:
            checkpoint: What to append.
            position: What the latest row must be.
            write_id: The name of this write; None makes one.
            token: The live lease that must be held.
            free: No live lease may be held.
            lease: What to do with the lease in the same step.

        Raises:
            ConflictError: Or one of its kinds: the commit was refused.
            InvalidInputError: The checkpoint breaks a rule.
        """
        # Everything is read here, before the first await: what the caller changes later is not what gets stored.
        thread_id, envelope, row = read_facts(checkpoint)
        write_id = new_write_id() if write_id is None else check_write_id(write_id)
        commit = Commit(thread_id, write_id, *position, token, free, row, lease=lease)
        if not self.remembers:
            _fill(row, envelope, PLAIN, plain_text(checkpoint.frozen_state))
            return await self._committer.commit(commit)
        remembered = self._cache.get(thread_id)
        snapshot = take_snapshot(checkpoint.frozen_state, self._threshold, remembered.snapshot if remembered else None)
        # What builds on the row before has to know it, so the saves of one thread take turns.
        if not self._turns.take(thread_id):
            await self._turns.wait(thread_id)
        try:
            return await self._save_encoded(commit, envelope, snapshot, checkpoint.status is CheckpointStatus.RUNNING)
        finally:
            self._turns.give(thread_id)

    async def _save_encoded(self, asked: Commit, envelope: bytes, snapshot: Snapshot, is_running: bool) -> Committed:
        """Append by memory; if that was wrong, append whole, under the conditions that were asked for."""
        thread_id = asked.thread_id
        memory = self._usable_memory(asked)
        while True:
            body = self._compose(snapshot, memory, is_running)
            if asked.row is not None:
                _fill(asked.row, envelope, body.version, body.text, whole=body.is_whole)
            commit, blobs = self._rely(asked, body, memory)
            try:
                outcome = await self._committer.commit(commit, blobs)
            except ConflictError as error:
                self._cache.forget(thread_id)
                if commit is asked or isinstance(error, LeaseHeldError | LeaseLostError):
                    raise
                memory = None
                continue
            except BaseException:
                self._cache.forget(thread_id)
                raise
            if outcome.repeated or not is_running:
                self._cache.forget(thread_id)
            else:
                since_whole = 0 if body.is_whole or memory is None else memory.since_whole + 1
                self._cache.keep(thread_id, outcome.sequence, asked.write_id, since_whole, snapshot)
            return outcome

    def _usable_memory(self, commit: Commit) -> Memory | None:
        memory = self._cache.get(commit.thread_id)
        if memory is None or commit.after == ANY:
            return memory
        if commit.after != memory.sequence or commit.after_id not in (b"", memory.write_id):
            return None
        return memory

    def _compose(self, snapshot: Snapshot, memory: Memory | None, is_running: bool) -> Body:
        if (
            memory is not None
            and is_running
            and self._deltas is not None
            and memory.since_whole + 1 < self._deltas.full_every
        ):
            body = compose_delta(snapshot, memory.snapshot, memory.sequence)
            if body is not None:
                return body
        return compose_whole(snapshot)

    def _rely(self, asked: Commit, body: Body, memory: Memory | None) -> tuple[Commit, Mapping[str, Value]]:
        """Return the commit to send, and the blobs that must go with it.

        Where the body needs what memory says, the commit also demands that the head is still the remembered row.
        """
        blobs = body.digests
        relies = not body.is_whole
        if blobs and memory is not None:
            known = {value.digest for value in memory.snapshot.values.values()}
            blobs = {digest: value for digest, value in blobs.items() if digest not in known}
            relies = relies or len(blobs) < len(body.digests)
        commit = asked
        if relies and memory is not None and (asked.after, asked.after_id) != (memory.sequence, memory.write_id):
            commit = Commit(
                asked.thread_id,
                asked.write_id,
                memory.sequence,
                memory.write_id,
                asked.token,
                asked.free,
                asked.row,
                lease=asked.lease,
            )
        if blobs and self._committer.keeps_blobs:
            commit.blobs = [(digest, value.blob()) for digest, value in blobs.items()]
        return commit, blobs


def _fill(row: NewRow, envelope: bytes, version: str, text: bytes, *, whole: bool = True) -> None:
    """Complete a row with what depends on how the state is stored."""
    row.version, row.whole, row.body = version, whole, text
    row.envelope = _OPENINGS[version] + envelope
