"""A whole store in one module: a file of JSON lines, to which each batch of commits appends one.

It is found by its entry points like any other plugin, and shows that nothing above the row boundary knows a database.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import attrs

from strata_core.capabilities import Capability
from strata_core.clock import SYSTEM_CLOCK, Clock, micros
from strata_core.errors import SchemaVersionError, StoreUnavailableError
from strata_core.hookspecs import StoreProvider, hookimpl
from strata_core.options import Setup, StoreOptions
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend, decide, matches
from strata_core.urls import database_path


@attrs.define
class Thread:
    """What one thread has."""

    head: Head
    rows: list[Row] = attrs.field(factory=list)
    blobs: dict[str, bytes] = attrs.field(factory=dict)


class JsonLinesBackend(RowBackend):
    """Keeps threads in one file, and in memory what of it has been read.

    Who commits locks the file, reads what others have appended, decides, and appends one line: that is the step.  A
    line without its end is what a killed writer left; nobody reads it, and the next writer cuts it off.
    """

    capabilities = frozenset(Capability) - {Capability.SERVER_CLOCK, Capability.EXPIRY}

    def __init__(self, path: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = path
        self._clock = clock
        self._file: BinaryIO | None = None
        self._threads: dict[str, Thread] = {}
        self._token = 0
        self._end = 0

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if read_only or setup is Setup.NEVER:
            self._open(writing=not read_only, must_exist=read_only)
        else:
            await self.setup()

    async def setup(self) -> None:
        self._path.touch()
        self._open(writing=True)

    def _open(self, *, writing: bool, must_exist: bool = True) -> None:
        if self._file is not None or not (must_exist or self._path.exists()):
            return
        try:
            self._file = self._path.open("r+b" if writing else "rb", buffering=0)
        except OSError as error:
            message = f'cannot open {str(self._path)!r}: {error.strerror}; setup="auto" creates a file for writing'
            raise StoreUnavailableError(message) from error

    async def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        with self._locked(fcntl.LOCK_EX) as file:
            now = micros(self._clock.now())
            changes: list[dict[str, Any]] = []
            outcomes = [self._commit(commit, now, changes) for commit in batch]
            line = json.dumps({"token": self._token, "changes": changes}).encode() + b"\n"
            try:
                file.truncate(self._end)
                file.seek(self._end)
                file.write(line)
                os.fsync(file.fileno())
            except OSError as error:
                self._threads, self._token, self._end = {}, 0, 0  # only what can be read from the file is true
                raise StoreUnavailableError(f"cannot write: {error.strerror}", maybe_written=True) from error
            self._end += len(line)
        return outcomes

    async def read_head(self, thread_id: str) -> Head | None:
        with self._locked():
            thread = self._threads.get(thread_id)
            return None if thread is None else self._head(thread)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        with self._locked():
            rows = [] if (thread := self._threads.get(thread_id)) is None else thread.rows
            start = len(rows) - 1 if first is None else first
            if not 0 <= start < len(rows):
                return []
            return rows[rows[start].whole_at : None if last is None else last + 1]

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        with self._locked():
            blobs = {} if (thread := self._threads.get(thread_id)) is None else thread.blobs
            return {digest: blobs[digest] for digest in digests if digest in blobs}

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        with self._locked():
            heads = [self._head(thread) for thread in self._threads.values()]
        found = [head for head in heads if matches(head, query, head.now)]
        found.sort(key=lambda head: (head.updated, head.thread_id), reverse=not query.oldest_first)
        return found[: query.limit]

    @contextmanager
    def _locked(self, how: int = fcntl.LOCK_SH) -> Iterator[BinaryIO]:
        """Lock the file against writers of other processes, and read what they have appended."""
        self._open(writing=True, must_exist=False)  # opened with setup="never", it may have come later
        file = self._file
        if file is None:
            raise SchemaVersionError(
                f"{str(self._path)!r} is not there: call store.setup() once", found="none", supported="1"
            )
        fcntl.flock(file, how)
        try:
            file.seek(self._end)
            *lines, _torn = file.read().split(b"\n")
            for line in lines:
                self._replay(line)
                self._end += len(line) + 1
            yield file
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _replay(self, line: bytes) -> None:
        try:
            batch = json.loads(line)
        except ValueError as error:
            raise StoreUnavailableError(f"{str(self._path)!r} has a line that is not JSON: {error}") from error
        self._token = batch["token"]
        for change in batch["changes"]:
            self._apply(change)

    def _commit(self, commit: Commit, now: int, changes: list[dict[str, Any]]) -> Committed | Refused:
        thread = self._threads.get(commit.thread_id)
        outcome = decide(commit, None if thread is None else attrs.evolve(thread.head, now=now), now, self._new_token)
        if isinstance(outcome, Committed) and not outcome.repeated:
            changes.append(_change(commit, outcome.head))
            self._apply(changes[-1])
        return outcome

    def _new_token(self) -> int:
        self._token += 1
        return self._token

    def _apply(self, change: dict[str, Any]) -> None:
        thread_id = change["thread_id"]
        if change["erased"]:
            self._threads.pop(thread_id, None)
        if change["head"] is None:
            return
        head = Head(**change["head"])
        head.write_ids, head.lease_id = _bytes(change["head"]["write_ids"]), _bytes(change["head"]["lease_id"])
        thread = self._threads.setdefault(thread_id, Thread(head))
        thread.head = head
        if (row := change["row"]) is not None:
            write_id, envelope, body = (_bytes(row[key]) for key in ("write_id", "envelope", "body"))
            thread.rows.append(Row(head.sequence, head.whole_at, write_id, row["version"], envelope, body))
        thread.blobs.update((digest, _bytes(blob)) for digest, blob in change["blobs"].items())

    def _head(self, thread: Thread) -> Head:
        envelope = thread.rows[-1].envelope if thread.rows else b""
        return attrs.evolve(thread.head, now=micros(self._clock.now()), envelope=envelope)


def _change(commit: Commit, head: Head | None) -> dict[str, Any]:
    """Return what a commit does, as JSON."""
    row = commit.row
    return {
        "thread_id": commit.thread_id,
        "erased": commit.erase or head is None,
        "head": None if head is None else attrs.asdict(head, filter=_is_kept, value_serializer=_serialized),
        "row": None
        if row is None
        else {
            "write_id": _text(commit.write_id),
            "version": row.version,
            "envelope": _text(row.envelope),
            "body": _text(row.body),
        },
        "blobs": {digest: _text(blob) for digest, blob in commit.blobs},
    }


def _is_kept(attribute: attrs.Attribute[Any], _value: Any) -> bool:
    return attribute.name not in {"now", "envelope"}


def _serialized(_owner: object, _attribute: object, value: Any) -> Any:
    if isinstance(value, bytes):
        return _text(value)
    return dict(value) if isinstance(value, Mapping) else value


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


class StuckBackend(JsonLinesBackend):
    """Never answers a listing; the file it is named by appears when it is asked."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        pass

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        self._path.touch()
        await asyncio.Event().wait()
        return []


class BrokenBackend(JsonLinesBackend):
    """Fails with an error that is none of ours, and repeats its URL."""

    def __init__(self, url: str) -> None:
        super().__init__(Path())
        self._url = url

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        logging.getLogger("driver").warning("cannot connect to %s", self._url)
        raise RuntimeError(f"no luck with {self._url} and {unquote(self._url)}")


class WritableBackend(JsonLinesBackend):
    """Knows no read-only open."""

    capabilities = JsonLinesBackend.capabilities - {Capability.READ_ONLY}


def _open(url: str, options: StoreOptions) -> RowBackend:
    if url.startswith("broken:"):
        return BrokenBackend(url)
    kinds = {"stuck": StuckBackend, "writable": WritableBackend}
    return kinds.get(url.partition(":")[0], JsonLinesBackend)(database_path(url), options.clock)


@hookimpl
def strata_checkpoint_store() -> StoreProvider:
    """Serve ``jsonl:///relative.jsonl`` and ``jsonl:////absolute.jsonl``, and three schemes for special cases."""
    return StoreProvider(name="jsonl", schemes=("jsonl", "writable", "stuck", "broken"), port_version=1, open=_open)
