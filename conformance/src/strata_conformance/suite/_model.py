"""A plain model of what a store's ports promise: lists and conditions, nothing encoded, nothing concurrent."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Literal

import attrs

from strata_core.errors import ConflictError, LeaseHeldError, LeaseLostError
from strata_core.ports import ANY, AnyRevision
from strata_core.records import Checkpoint, Lease, LogEntry, Revision, ThreadQuery, ThreadState

__all__ = ["Expected", "PortModel"]

Expected = int | Revision | Literal[AnyRevision.ANY] | None
REMEMBERED = 8
"""How many of a thread's latest writes are recognised."""


@attrs.define
class _Thread:
    entries: list[LogEntry] = attrs.field(factory=list)
    lease: Lease | None = None
    lease_id: bytes = b""
    largest_token: int = 0


class PortModel:
    """A store as `CONTRACT.md` describes it.  Its calls raise the errors of the ports.

    Attributes:
        now: The time; whoever drives the model moves it.
    """

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._threads: dict[str, _Thread] = {}

    def _thread(self, thread_id: str) -> _Thread:
        return self._threads.setdefault(thread_id, _Thread())

    def live(self, thread_id: str) -> Lease | None:
        """Return the live lease of a thread."""
        lease = self._thread(thread_id).lease
        return lease if lease is not None and lease.expires_at > self.now else None

    def log(self, thread_id: str) -> list[LogEntry]:
        """Return the checkpoints of a thread, oldest first."""
        return self._thread(thread_id).entries

    def largest_token(self, thread_id: str) -> int:
        """Return the largest token that was ever given out on a thread; a purge does not lower it."""
        return self._thread(thread_id).largest_token

    def save(
        self,
        checkpoint: Checkpoint,
        write_id: bytes,
        *,
        expected: Expected = ANY,
        lease: Lease | None = None,
        unleased: bool = False,
        release: bool = False,
    ) -> int:
        """Append, as `save`, `save_if_latest` and `save_under_lease` do."""
        thread_id = checkpoint.thread_id
        if (done := self._done(thread_id, write_id)) is not None:
            return done
        self._check_lease(thread_id, lease, unleased=unleased)
        self._check_latest(thread_id, expected)
        if release:
            self._thread(thread_id).lease = None
        return self._append(checkpoint, write_id)

    def acquire(
        self,
        thread_id: str,
        write_id: bytes,
        *,
        owner: str,
        ttl: timedelta,
        save: Checkpoint | None,
        expected: Expected,
    ) -> Lease | None:
        """Take the lease, with token 0: `was_given` says which token the store gave.  None when it is held."""
        thread = self._thread(thread_id)
        live = self.live(thread_id)
        done = None if save is None else self._done(thread_id, write_id)
        if live is not None and thread.lease_id == write_id and (save is None or done is not None):
            return attrs.evolve(live, owner=owner, saved=done)
        if done is not None:
            raise LeaseLostError(thread_id, done, "is not held any more")
        if live is not None:
            return None
        self._check_latest(thread_id, expected)
        saved = None if save is None else self._append(save, write_id)
        thread.lease, thread.lease_id = Lease(thread_id, 0, owner, self.now + ttl), write_id
        return attrs.evolve(thread.lease, saved=saved)

    def was_given(self, thread_id: str, token: int) -> None:
        """Note the token of the lease that was taken last."""
        thread = self._thread(thread_id)
        assert thread.lease is not None
        thread.lease = attrs.evolve(thread.lease, token=token)
        thread.largest_token = token

    def renew(self, lease: Lease, ttl: timedelta) -> Lease:
        """Let a lease live for `ttl` from now on."""
        self._check_lease(lease.thread_id, lease, unleased=False)
        thread = self._thread(lease.thread_id)
        assert thread.lease is not None
        thread.lease = attrs.evolve(thread.lease, expires_at=self.now + ttl)
        return attrs.evolve(lease, expires_at=self.now + ttl)

    def release(self, lease: Lease) -> None:
        """Give a lease back, if it is still held."""
        live = self.live(lease.thread_id)
        if live is not None and live.token == lease.token:
            self._thread(lease.thread_id).lease = None

    def load(self, thread_id: str, at: int | None) -> LogEntry | None:
        """Return a checkpoint."""
        entries = self.log(thread_id)
        if at is None:
            return entries[-1] if entries else None
        return entries[at] if at < len(entries) else None

    def purge(self, older_than: datetime, states: Collection[ThreadState], limit: int) -> int:
        """Delete what is old, oldest first."""
        cutoff = older_than.replace(microsecond=0)
        old = [
            (thread.entries[-1].checkpoint.updated_at, thread_id)
            for thread_id, thread in self._threads.items()
            if thread.entries
            and thread.entries[-1].checkpoint.state in states
            and thread.entries[-1].checkpoint.updated_at < cutoff
            and self.live(thread_id) is None
        ]
        gone = sorted(old)[:limit]
        for _, thread_id in gone:
            self._threads[thread_id] = _Thread(largest_token=self.largest_token(thread_id))
        return len(gone)

    def listed(self, query: ThreadQuery) -> list[LogEntry]:
        """Return the latest checkpoints of all threads that pass every filter, in the order asked for."""
        latest = [thread.entries[-1] for thread in self._threads.values() if thread.entries]
        found = [entry for entry in latest if self._passes(entry.checkpoint, query)]
        newest_first = not query.oldest_first
        found.sort(key=lambda e: (e.checkpoint.updated_at, e.checkpoint.thread_id.encode()), reverse=newest_first)
        return found

    def _passes(self, checkpoint: Checkpoint, query: ThreadQuery) -> bool:
        graph = checkpoint.graph
        due = checkpoint.due_at
        return (
            (query.states is None or checkpoint.state in query.states)
            and all(checkpoint.metadata.get(key) == value for key, value in query.metadata.items())
            and (query.updated_after is None or checkpoint.updated_at > query.updated_after)
            and (query.updated_before is None or checkpoint.updated_at < query.updated_before)
            and (query.graph_id is None or (graph is not None and graph.id == query.graph_id))
            and (query.graph_version is None or (graph is not None and graph.version == query.graph_version))
            and (query.due_before is None or (due is not None and due <= query.due_before))
            and (query.leased is None or query.leased == (self.live(checkpoint.thread_id) is not None))
        )

    def _done(self, thread_id: str, write_id: bytes) -> int | None:
        for entry in self.log(thread_id)[-REMEMBERED:]:
            if entry.revision.write_id == write_id:
                return entry.sequence
        return None

    def _append(self, checkpoint: Checkpoint, write_id: bytes) -> int:
        entries = self.log(checkpoint.thread_id)
        sequence = len(entries)
        entries.append(LogEntry(sequence, checkpoint, Revision(sequence, write_id)))
        return sequence

    def _check_lease(self, thread_id: str, lease: Lease | None, *, unleased: bool) -> None:
        live = self.live(thread_id)
        if lease is not None and (live is None or live.token != lease.token):
            raise LeaseLostError(thread_id, None, "is not held any more")
        if unleased and live is not None:
            raise LeaseHeldError(thread_id, None, live.owner)

    def _check_latest(self, thread_id: str, expected: Expected) -> None:
        if expected is ANY:
            return
        entries = self.log(thread_id)
        latest = entries[-1] if entries else None
        sequence = None if latest is None else latest.sequence
        wanted = expected.sequence if isinstance(expected, Revision) else expected
        if sequence != wanted or (
            isinstance(expected, Revision) and latest is not None and latest.revision != expected
        ):
            raise ConflictError(thread_id, sequence, "has moved on")
