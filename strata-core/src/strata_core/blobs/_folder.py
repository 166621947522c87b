"""Blobs as files."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from strata_core.blobs._files import FOLDER, INNER_FOLDER, empty, holds, make_durably, opened, read, sync, write
from strata_core.blobs._names import blob_file, check_content, digest_of_file, is_thread_folder, thread_folder
from strata_core.blobs._threads import run_to_the_end
from strata_core.errors import InvalidInputError, StoreUnavailableError
from strata_core.ports import StoredBlob

__all__ = ["FileSystemBlobStore"]

_ATTEMPTS: Final = 100


class FileSystemBlobStore:
    """Keeps each blob in a file: ``<root>/<hex of the thread ID>/<64 hex digits>``.

    Durable before `put` returns, whole or not there at all, and safe for many processes at once: a blob is written to
    a file of its own, synced, renamed into place, and the folders above it are synced.  An ID over 127 UTF-8 bytes is
    spelled ``sha256-<hex digest of the ID>``.  Nothing but a thread's folder and its files is touched, and no symbolic
    link below the root is followed.

    Making the object changes nothing on disk; folders are created by the first `put` that needs them, never by `get`.
    The work is done in a thread.  A cancelled `put` or `delete_thread` returns once its thread has come to an end, so
    that nothing happens behind the caller's back.

    Args:
        root: The folder, taken relative to the working directory of this moment.

    Raises:
        InvalidInputError: `root` is no path, or the path of a file.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = _absolute(root)
        self._root_is_durable = False

    @property
    def root(self) -> Path:
        """The folder, absolute."""
        return self._root

    def __repr__(self) -> str:
        return f"FileSystemBlobStore({str(self._root)!r})"

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        folder, name = thread_folder(thread_id), blob_file(digest)
        whole = check_content(content)
        await run_to_the_end(lambda: self._put(folder, name, whole))

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        return await asyncio.to_thread(self._get, thread_folder(thread_id), blob_file(digest))

    async def delete_thread(self, thread_id: str) -> None:
        folder = thread_folder(thread_id)
        await run_to_the_end(lambda: self._delete(folder))

    async def list_blobs(self) -> AsyncIterator[StoredBlob]:
        for folder in await asyncio.to_thread(self._folders):
            for blob in await asyncio.to_thread(self._blobs, folder):
                yield blob

    def _put(self, folder: str, name: str, content: bytes) -> None:
        path = self._root / folder
        maybe_written = False
        try:
            if not self._root_is_durable:
                make_durably(self._root)
                self._root_is_durable = True
            for _ in range(_ATTEMPTS):
                try:
                    make_durably(path)
                    with opened(path, INNER_FOLDER) as inside:
                        if not holds(name, inside, content):
                            write(name, inside, content)
                        maybe_written = True
                        sync(inside)
                    return
                except FileNotFoundError:  # a delete of this very thread took the folder, or the unfinished file
                    continue
        except OSError as error:
            raise _unavailable("put a blob into", path, error, maybe_written=maybe_written) from error
        raise StoreUnavailableError(f"cannot put a blob into {path}: it is deleted again and again")

    def _get(self, folder: str, name: str) -> bytes | None:
        path = self._root / folder
        try:
            with opened(path, INNER_FOLDER) as inside:
                return read(name, inside)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unavailable("read a blob from", path, error) from error

    def _delete(self, folder: str) -> None:
        path = self._root / folder
        try:
            with opened(self._root, FOLDER) as root:
                empty(folder, root)
                sync(root)  # also when there was nothing: an earlier attempt may have died before this line
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unavailable("delete the blobs in", path, error, maybe_written=True) from error

    def _folders(self) -> list[str]:
        try:
            return sorted(path.name for path in self._root.iterdir() if is_thread_folder(path.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unavailable("list the blobs in", self._root, error) from error

    def _blobs(self, folder: str) -> list[StoredBlob]:
        path = self._root / folder
        found = []
        try:
            with opened(path, INNER_FOLDER) as inside, os.scandir(inside) as entries:
                for entry in entries:
                    digest = digest_of_file(entry.name)
                    if digest is None:
                        continue
                    try:
                        about = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted since
                        continue
                    if stat.S_ISREG(about.st_mode):
                        found.append(
                            StoredBlob(folder, digest, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC))
                        )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unavailable("list the blobs in", path, error) from error
        return sorted(found, key=lambda blob: blob.digest)


def _absolute(root: object) -> Path:
    try:
        path = os.fspath(root)  # type: ignore[call-overload]  # anything else is refused below
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise InvalidInputError("root", f"must be a str or a path, not {type(root).__name__}")
    if not path or "\0" in path:
        raise InvalidInputError("root", "must name a folder: it is empty or has a NUL")
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  # Path.resolve() would follow links
    if absolute.is_file():
        raise InvalidInputError("root", f"{absolute} is a file; name a folder, which need not exist yet")
    return absolute


def _unavailable(verb: str, path: Path, error: OSError, *, maybe_written: bool = False) -> StoreUnavailableError:
    return StoreUnavailableError(f"cannot {verb} {path}: {error.strerror or error}", maybe_written=maybe_written)
