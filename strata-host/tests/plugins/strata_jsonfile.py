"""A whole store in one module: every thread in one JSON file that is replaced at each commit.

It is found by its entry points like any other plugin, and shows that nothing above the row boundary knows a database.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

from strata_core.capabilities import Capability
from strata_core.clock import SYSTEM_CLOCK, Clock, micros
from strata_core.errors import StoreUnavailableError
from strata_core.hookspecs import StoreProvider, hookimpl
from strata_core.options import Setup, StoreOptions
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend, decide, matches


class JsonFileBackend(RowBackend):
    """Keeps threads in one file.  Writers of all processes take turns by a lock file; readers need none."""

    capabilities = frozenset(Capability) - {Capability.SERVER_CLOCK, Capability.EXPIRY}

    def __init__(self, path: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = path
        self._clock = clock

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if not read_only and setup is Setup.AUTO:
            self._path.touch()
        try:
            self._read()
        except OSError as error:
            raise StoreUnavailableError(f"cannot read {str(self._path)!r}: {error.strerror}") from error

    async def close(self) -> None:
        pass

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        with Path(f"{self._path}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = self._read()
            now = micros(self._clock.now())
            outcomes = [_commit(content, commit, now) for commit in batch]
            new = Path(f"{self._path}.new")
            with new.open("w") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        return outcomes

    async def read_head(self, thread_id: str) -> Head | None:
        thread = self._read()["threads"].get(thread_id)
        return None if thread is None else _head(thread, micros(self._clock.now()))

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        thread = self._read()["threads"].get(thread_id)
        rows = [] if thread is None else [_row(*item) for item in enumerate(thread["rows"])]
        start = len(rows) - 1 if first is None else first
        if not 0 <= start < len(rows):
            return []
        return rows[rows[start].whole_at : None if last is None else last + 1]

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        thread = self._read()["threads"].get(thread_id)
        blobs = {} if thread is None else thread["blobs"]
        return {digest: base64.b64decode(blobs[digest]) for digest in digests if digest in blobs}

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        now = micros(self._clock.now())
        heads = [_head(thread, now) for thread in self._read()["threads"].values()]
        found = sorted(
            (head for head in heads if matches(head, query, now)),
            key=lambda head: (head.updated, head.thread_id),
            reverse=not query.oldest_first,
        )
        return found[: query.limit]

    def _read(self) -> Any:
        return json.loads(self._path.read_bytes() or b'{"token": 0, "threads": {}}')


class StuckBackend(JsonFileBackend):
    """Never answers a listing; the file it is named by appears when it is asked."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        pass

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        self._path.touch()
        await asyncio.Event().wait()
        return []


class BrokenBackend(JsonFileBackend):
    """Fails with an error that is none of ours, and repeats its URL."""

    def __init__(self, url: str) -> None:
        super().__init__(Path())
        self._url = url

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        logging.getLogger("driver").warning("cannot connect to %s", self._url)
        raise RuntimeError(f"no luck with {self._url} and {unquote(self._url)}")


def _commit(content: Any, commit: Commit, now: int) -> Committed | Refused:
    def new_token() -> int:
        content["token"] += 1
        return int(content["token"])

    threads = content["threads"]
    thread = threads.get(commit.thread_id)
    outcome = decide(commit, None if thread is None else _head(thread, now), now, new_token)
    if isinstance(outcome, Refused) or outcome.repeated:
        return outcome
    if commit.erase or outcome.head is None:
        thread = None
        threads.pop(commit.thread_id, None)
    if outcome.head is None:
        return outcome
    thread = threads.setdefault(commit.thread_id, {"rows": [], "blobs": {}})
    head = attrs.evolve(outcome.head, now=0, envelope=b"")
    thread["head"] = attrs.asdict(head, value_serializer=_text)
    if commit.row is not None:
        row = commit.row
        thread["rows"].append(
            {
                "whole_at": head.whole_at,
                "write_id": commit.write_id.hex(),
                "version": row.version,
                "envelope": row.envelope.decode(),
                "body": row.body.decode(),
            }
        )
    thread["blobs"].update((digest, base64.b64encode(blob).decode()) for digest, blob in commit.blobs)
    return outcome


def _text(_owner: object, _attribute: object, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return dict(value) if isinstance(value, Mapping) else value


def _head(thread: Any, now: int) -> Head:
    stored = dict(thread["head"])
    stored["write_ids"] = bytes.fromhex(stored["write_ids"])
    stored["lease_id"] = bytes.fromhex(stored["lease_id"])
    rows = thread["rows"]
    return Head(**stored | {"now": now, "envelope": rows[-1]["envelope"].encode() if rows else b""})


def _row(sequence: int, row: Any) -> Row:
    return Row(
        sequence,
        row["whole_at"],
        bytes.fromhex(row["write_id"]),
        row["version"],
        row["envelope"].encode(),
        row["body"].encode(),
    )


def _open(url: str, options: StoreOptions) -> RowBackend:
    scheme, _, path = url.partition("://")
    if scheme == "broken":
        return BrokenBackend(url)
    return (StuckBackend if scheme == "stuck" else JsonFileBackend)(Path(path.removeprefix("/")), options.clock)


@hookimpl
def strata_checkpoint_store() -> StoreProvider:
    """Serve ``jsonfile:///relative`` and ``jsonfile:////absolute``, and two that do not work."""
    return StoreProvider(name="jsonfile", schemes=("jsonfile", "stuck", "broken"), port_version=1, open=_open)
