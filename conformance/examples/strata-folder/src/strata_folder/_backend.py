"""The row backend: what is stored where, and in which order."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strata_core.blobs import thread_folder
from strata_core.capabilities import Capability
from strata_core.clock import SYSTEM_CLOCK, Clock, micros
from strata_core.errors import CorruptCheckpointError, ReadOnlyError, SchemaVersionError, StoreUnavailableError
from strata_core.options import Setup
from strata_core.rows import (
    NOTHING,
    Batching,
    Commit,
    Committed,
    Head,
    HeadQuery,
    Refused,
    Row,
    RowBackend,
    decide,
    matches,
)
from strata_folder._files import clear, locked, put, sync
from strata_folder._records import head_content, read_head, read_row, row_content

__all__ = ["FolderBackend"]

FORMAT: Final = "strata-folder 1"


class FolderBackend(RowBackend):
    """Keeps threads in a folder, which several processes of one machine may share.

    ``lock``                       held by whoever reads (shared) or writes (alone), for one call
    ``format``                     the version of this layout
    ``token``                      the last lease token that was given out
    ``threads/<thread>/head``      the head; its rename is the moment of commit
    ``threads/<thread>/<n>.row``   row n; one beyond the head's sequence does not exist
    ``threads/<thread>/<digest>``  a blob
    ``trash/``                     what was erased and is about to be deleted

    Args:
        root: The folder, taken relative to the working directory of this moment.
        clock: Judges leases.
    """

    capabilities = frozenset(
        {
            Capability.QUERY,
            Capability.RETENTION,
            Capability.DELTAS,
            Capability.OFFLOAD,
            Capability.OWN_BLOBS,
            Capability.EXTERNAL_BLOBS,
            Capability.MULTI_PROCESS,
            Capability.READ_ONLY,
        }
    )
    batching = Batching(max_items=8)  # a batch holds the lock, so short ones let other processes in

    def __init__(self, root: str | os.PathLike[str], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._root = Path(root).absolute()
        self._threads = self._root / "threads"
        self._trash = self._root / "trash"
        self._clock = clock
        self._read_only = False

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        self._read_only = read_only
        if read_only:
            await asyncio.to_thread(self._look)
        elif setup is Setup.AUTO:
            await self.setup()

    async def close(self) -> None:
        """Nothing is held between two calls."""

    async def setup(self) -> None:
        await asyncio.to_thread(self._set_up)

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        return await asyncio.to_thread(self._commit, batch)

    async def read_head(self, thread_id: str) -> Head | None:
        return await asyncio.to_thread(self._read_head, thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await asyncio.to_thread(self._read, thread_id, first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return await asyncio.to_thread(self._read_blobs, thread_id, digests)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        return await asyncio.to_thread(self._list_heads, query)

    # ------------------------------------------------------------------------------------ everything below blocks

    @contextmanager
    def _locked(self, *, exclusive: bool = False) -> Generator[None]:
        """Make the body one step, and map what the system raises in it."""
        inside = False
        try:
            with locked(self._root / "lock", exclusive=exclusive):
                self._check_format()
                inside = True
                yield
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not inside:
                raise SchemaVersionError(
                    f'{self._root} was never set up: call store.setup() once, or open it with setup="auto"',
                    found="none",
                    supported=FORMAT,
                ) from error
            raise StoreUnavailableError(f"{self._root}: {error}", maybe_written=exclusive and inside) from error

    def _check_format(self) -> None:
        found = (self._root / "format").read_bytes().decode(errors="replace").strip()
        if found != FORMAT:
            raise SchemaVersionError(
                f"{self._root} has the format {found[:40]!r}, and this release of strata-folder knows {FORMAT!r}",
                found=found[:40],
                supported=FORMAT,
            )

    def _look(self) -> None:
        if not self._root.is_dir():
            raise StoreUnavailableError(f'{self._root}: there is no such folder; setup="auto" creates it for writing')
        with self._locked():
            pass

    def _set_up(self) -> None:
        lock = self._root / "lock"
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            if any(self._root.iterdir()) and not lock.exists():  # in this order: another process may be setting it up
                raise SchemaVersionError(
                    f"{self._root} holds something else: give the path of a new folder",
                    found="unknown",
                    supported=FORMAT,
                )
            lock.touch()
            with locked(lock, exclusive=True):
                if (self._root / "format").exists():
                    self._check_format()
                    self._delete_leftovers()
                    return
                self._threads.mkdir(exist_ok=True)
                self._trash.mkdir(exist_ok=True)
                put(self._root / "token", b"0")
                put(self._root / "format", FORMAT.encode() + b"\n")
                sync(self._root)
                sync(self._root.parent)
        except OSError as error:
            raise StoreUnavailableError(f"{self._root} cannot be set up: {error}") from error

    def _delete_leftovers(self) -> None:
        """Delete what processes that were killed had begun: erased threads, and threads without a head."""
        for erased in self._trash.iterdir():
            shutil.rmtree(erased)
        for folder in self._threads.iterdir():
            if folder.is_dir() and not (folder / "head").exists():
                shutil.rmtree(folder)

    def _folder(self, thread_id: str) -> Path:
        return self._threads / thread_folder(thread_id)

    def _now(self) -> int:
        return micros(self._clock.now())

    def _new_token(self) -> int:
        path = self._root / "token"
        try:
            token = int(path.read_bytes()) + 1
        except ValueError:
            raise CorruptCheckpointError("*", None, f"cannot be leased: {path} is damaged") from None
        put(path, b"%d" % token)
        sync(self._root)
        return token

    def _commit(self, batch: Sequence[Commit]) -> list[Committed | Refused]:
        if self._read_only:
            raise ReadOnlyError(f"{self._root} was opened read-only")
        with self._locked(exclusive=True):
            return [self._commit_one(commit) for commit in batch]

    def _commit_one(self, commit: Commit) -> Committed | Refused:
        folder, now = self._folder(commit.thread_id), self._now()
        head = read_head(folder / "head", now)
        outcome = decide(commit, head, now, self._new_token)
        if isinstance(outcome, Refused) or outcome.repeated:
            return outcome
        if outcome.head is None:
            if head is not None:
                self._erase(folder, commit.write_id.hex())
            return outcome
        if head is None:
            folder.mkdir(exist_ok=True)
            sync(self._threads)
        if commit.row is not None:
            if head is None or head.sequence == NOTHING:
                clear(folder, keep="head")  # what a killed process left here belongs to no life of the thread
            for digest, content in commit.blobs:
                put(_blob_file(folder, digest), content)
            row = row_content(commit.row, outcome.sequence, outcome.head.whole_at, commit.write_id)
            put(_row_file(folder, outcome.sequence), row)
            sync(folder)  # before the head that counts them in
        put(folder / "head", head_content(outcome.head))
        sync(folder)
        if commit.erase:
            clear(folder, keep="head")
        return outcome

    def _erase(self, folder: Path, name: str) -> None:
        """Take a thread away in one step, then delete it."""
        erased = self._trash / name
        folder.rename(erased)
        sync(self._threads)
        shutil.rmtree(erased)

    def _read_head(self, thread_id: str) -> Head | None:
        with self._locked():
            return read_head(self._folder(thread_id) / "head", self._now())

    def _read(self, thread_id: str, first: int | None, last: int | None) -> list[Row]:
        with self._locked():
            folder = self._folder(thread_id)
            head = read_head(folder / "head", 0)
            latest = NOTHING if head is None else head.sequence
            start = latest if first is None else first
            if not 0 <= start <= latest:
                return []
            end = latest if last is None else min(last, latest)
            row = read_row(_row_file(folder, start), thread_id, start)
            before = [read_row(_row_file(folder, n), thread_id, n) for n in range(row.whole_at, start)]
            return [*before, row, *(read_row(_row_file(folder, n), thread_id, n) for n in range(start + 1, end + 1))]

    def _read_blobs(self, thread_id: str, digests: Collection[str]) -> dict[str, bytes]:
        with self._locked():
            folder = self._folder(thread_id)
            head = read_head(folder / "head", 0)
            if head is None or head.sequence == NOTHING:
                return {}
            files = {digest: _blob_file(folder, digest) for digest in digests}
            return {digest: file.read_bytes() for digest, file in files.items() if file.exists()}

    def _list_heads(self, query: HeadQuery) -> list[Head]:
        with self._locked():
            now = self._now()
            heads = [read_head(path, now) for path in self._threads.glob("*/head")]
            found = [head for head in heads if head is not None and matches(head, query, now)]
            found.sort(key=lambda head: (head.updated, head.thread_id), reverse=not query.oldest_first)
            for head in found[: query.limit]:
                if head.sequence != NOTHING:
                    path = _row_file(self._folder(head.thread_id), head.sequence)
                    head.envelope = read_row(path, head.thread_id, head.sequence).envelope
            return found[: query.limit]


def _row_file(folder: Path, sequence: int) -> Path:
    return folder / f"{sequence}.row"


def _blob_file(folder: Path, digest: str) -> Path:
    return folder / digest.removeprefix("sha256:")
