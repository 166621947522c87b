"""Loading checkpoints: rows to records, with every blob verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from strata_core._validation import check_int, check_limit, check_thread_id
from strata_core.capabilities import Capability
from strata_core.codec._fold import Folded, fold_rows, row_references
from strata_core.codec._json import copy_json, load_json
from strata_core.codec._record_decoder import decode_envelope
from strata_core.codec._state import digest_of
from strata_core.codec._versions import MalformedRecordError
from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.ports import BlobStore
from strata_core.records import LogEntry, LogPage, Revision
from strata_core.rows import Row
from strata_core.store._link import Link
from strata_core.store._positions import MAX_SEQUENCE

__all__ = ["Reader"]

SLICE: Final = 1000
"""How many rows are read at once."""
ROUNDS: Final = 20
"""How often a load starts over because the thread was purged or written under it."""
_FALSE: Final = b""
"""In place of a content that its store found to be false; no JSON is empty, so that no digest fits it."""


class _MissingBlobError(Exception):
    """A blob is not there: corruption, or the thread was purged between the two reads."""

    def __init__(self, error: CorruptCheckpointError) -> None:
        self.error = error


class Reader:
    """Reads rows and blobs of threads.

    Args:
        link: The opened backend.
        external: Where offloaded values are; None for the backend itself.
    """

    def __init__(self, link: Link, external: BlobStore | None) -> None:
        self._link = link
        self._external = external

    async def load(self, thread_id: str, at: int | None) -> LogEntry | None:
        """Return the latest checkpoint, or the one at sequence `at`."""
        check_thread_id(thread_id)
        if at is not None:
            check_int(at, "at", 0, MAX_SEQUENCE)
        entries, _ = await self._entries(thread_id, at, at, peek=False)
        return entries[-1] if entries else None

    async def log(self, thread_id: str, start: int, limit: int) -> LogPage:
        """Return up to `limit` checkpoints from sequence `start` on."""
        check_thread_id(thread_id)
        check_int(start, "start", 0, MAX_SEQUENCE)
        check_limit(limit)
        entries, more = await self._entries(thread_id, start, start + limit - 1, peek=True)
        return LogPage(entries, start + limit if more else None)

    async def blob_references(self, thread_id: str) -> frozenset[str] | None:
        """Return the digests in the thread's rows, which are read in slices; None when it has no row."""
        check_thread_id(thread_id)
        digests: set[str] = set()
        first = 0
        while rows := await self._link.backend.read(thread_id, first, first + SLICE - 1):
            digests |= row_references(thread_id, rows)
            first = rows[-1].sequence + 1
        return frozenset(digests) if first else None

    async def _entries(
        self, thread_id: str, first: int | None, last: int | None, *, peek: bool
    ) -> tuple[list[LogEntry], bool]:
        """Return the checkpoints from `first` to `last`, and whether a row follows, if asked to look for one."""
        seen: tuple[object, ...] | None = None
        backend = self._link.backend
        for _ in range(ROUNDS):
            rows = await backend.read(thread_id, first, last + 1 if peek and last is not None else last)
            if not rows:
                return [], False
            more = peek and last is not None and rows[-1].sequence == last + 1
            if more:  # only its being there counts: it may be of a format that cannot be read here
                rows = rows[:-1]
            try:
                entries = await self._decode(thread_id, rows, rows[-1].sequence if first is None else first)
            except _MissingBlobError as missing:
                # Gone, changed or closing: start over.  Only a head that stayed as it was means corruption.
                head = await backend.read_head(thread_id)
                now = None if head is None or head.closing else (head.sequence, head.write_ids)
                if now is not None and now == seen:
                    raise missing.error from None
                seen, error = now, missing.error
            else:
                _check_asked(thread_id, entries, first, last)
                return entries, more
        raise error

    async def _decode(self, thread_id: str, rows: Sequence[Row], first: int) -> list[LogEntry]:
        folded = list(fold_rows(thread_id, rows, first))
        await self._fill_in(thread_id, folded)
        return [_entry(thread_id, item) for item in folded]

    async def _fill_in(self, thread_id: str, folded: Sequence[Folded]) -> None:
        wanted = {digest for item in folded for digest in item.references.values()}
        if not wanted:
            return
        contents = await self._fetch(thread_id, wanted)
        values: dict[str, Any] = {}
        for item in folded:
            sequence = item.row.sequence
            for key, digest in item.references.items():
                content = contents.get(digest)
                if content is None:
                    problem = f"refers to blob {digest} at {key!r}, which the blob store doesn't have"
                    raise _MissingBlobError(self._with_way_out(CorruptCheckpointError(thread_id, sequence, problem)))
                if digest not in values:
                    if digest_of(content) != digest:
                        problem = f"refers to blob {digest} at {key!r}, whose content does not match that hash"
                        raise CorruptCheckpointError(thread_id, sequence, problem)
                    try:
                        values[digest] = load_json(content)
                    except ValueError as error:
                        problem = f"refers to blob {digest} at {key!r}, which is not JSON: {error}"
                        raise CorruptCheckpointError(thread_id, sequence, problem) from None
                item.state[key] = copy_json(values[digest])

    def _with_way_out(self, error: CorruptCheckpointError) -> CorruptCheckpointError:
        """Note what to try; the message itself is the same in every engine."""
        if self._external is None:
            error.add_note("If offloaded values lie outside the database, open it with offload=Offload(blobs=...).")
        return error

    async def _fetch(self, thread_id: str, digests: set[str]) -> dict[str, bytes]:
        if self._external is None:
            if Capability.OWN_BLOBS not in self._link.backend.capabilities:
                return {}
            return dict(await self._link.backend.read_blobs(thread_id, digests))
        contents = {}
        for digest in sorted(digests):
            try:
                content = await self._external.get(thread_id, digest)
            except CorruptCheckpointError:  # found out early: told below, where the key and the checkpoint are known
                content = _FALSE
            if content is not None:
                contents[digest] = content
        return contents


def _check_asked(thread_id: str, entries: Sequence[LogEntry], first: int | None, last: int | None) -> None:
    """Refuse rows that are not those that were asked for: never another checkpoint in silence."""
    if first is None:
        return
    if not entries or entries[0].sequence != first or (last is not None and entries[-1].sequence > last):
        got = ", ".join(f"#{entry.sequence}" for entry in entries) or "only earlier ones"
        raise CorruptCheckpointError(thread_id, first, f"was asked for, but the storage gave {got}")


def _entry(thread_id: str, folded: Folded) -> LogEntry:
    row = folded.row
    try:
        checkpoint = decode_envelope(row.envelope, folded.state, version=row.version)
        if checkpoint.thread_id != thread_id:
            raise MalformedRecordError("is a record of another thread")
    except MalformedRecordError as error:
        raise CorruptCheckpointError(thread_id, row.sequence, str(error)) from None
    except SchemaVersionError as error:
        raise SchemaVersionError(
            f"checkpoint {thread_id!r} #{row.sequence}: {error}", found=error.found, supported=error.supported
        ) from None
    return LogEntry(row.sequence, checkpoint, Revision(row.sequence, row.write_id))
