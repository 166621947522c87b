"""Durable steps on folders and files, none of which follows a symbolic link below the root."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["FOLDER", "INNER_FOLDER", "empty", "holds", "make_durably", "opened", "read", "sync", "write"]

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Open a folder that the user named: it may be a link."""
INNER_FOLDER: Final = FOLDER | os.O_NOFOLLOW
"""Open a folder that must really be one."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: a planted pipe must not hang us
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_PASSES: Final = 10


@contextlib.contextmanager
def opened(path: str | Path, flags: int, inside: int | None = None) -> Iterator[int]:
    """Open `path`, relative to the folder `inside` when given, and close it again."""
    fd = os.open(path, flags, dir_fd=inside)
    try:
        yield fd
    finally:
        os.close(fd)


def sync(folder: int) -> None:
    """Make a folder's entries durable, where its file system can."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems sync no folders
            raise


def make_durably(path: Path) -> None:
    """Make a folder and what is missing above it; each is durable before anything is made inside it.

    Also syncs what holds a folder that is there already: whoever made it may not have come so far.
    """
    made = True
    try:
        path.mkdir()
    except FileExistsError:
        made = False
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_durably(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir()
    try:
        with opened(path.parent, FOLDER) as above:
            sync(above)
    except PermissionError:
        if made:
            raise


def read(name: str, inside: int) -> bytes:
    """Return the content of a file.

    Raises:
        FileNotFoundError: There is none.
        OSError: It is something else than a file, or cannot be read.
    """
    with opened(name, _READ, inside) as fd:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        with open(fd, "rb", closefd=False) as file:
            return file.read()


def holds(name: str, inside: int, content: bytes) -> bool:
    """Tell whether a file with just this content is there, and make it durable if so."""
    try:
        with opened(name, _READ, inside) as fd:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size != len(content):
                return False
            whole = memoryview(content)
            with open(fd, "rb", closefd=False) as file:
                if any(file.read(_CHUNK) != whole[at : at + _CHUNK] for at in range(0, len(content), _CHUNK)):
                    return False
            os.fsync(fd)
            return True
    except OSError:  # missing, a link, unreadable: writing a new one decides
        return False


def write(name: str, inside: int, content: bytes) -> None:
    """Give `name` this content in one step: no reader and no crash ever sees a part.

    Raises:
        FileNotFoundError: Somebody deleted the folder, or the unfinished file in it.
    """
    unfinished = f".{name}.{secrets.token_hex(8)}.tmp"
    fd = os.open(unfinished, _CREATE, 0o666, dir_fd=inside)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123  # a descriptor has no path
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.replace(unfinished, name, src_dir_fd=inside, dst_dir_fd=inside)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=inside)
        raise


def empty(folder: str, inside: int) -> None:
    """Delete a folder and everything that was in it at the call.

    A file that somebody puts meanwhile may stay, whole, and its folder with it.  A link is deleted, never followed.
    """
    for _ in range(_PASSES):
        try:
            fd = os.open(folder, INNER_FOLDER, dir_fd=inside)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP, errno.EMLINK}:
                raise
            with contextlib.suppress(FileNotFoundError):
                os.unlink(folder, dir_fd=inside)
            return
        try:
            for name in os.listdir(fd):  # noqa: PTH208  # a descriptor has no path
                _remove(name, fd)
            try:
                os.rmdir(folder, dir_fd=inside)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
                sync(fd)
            else:
                return
        finally:
            os.close(fd)


def _remove(name: str, inside: int) -> None:
    try:
        os.unlink(name, dir_fd=inside)
    except FileNotFoundError:  # finished and renamed, or deleted by another delete
        pass
    except (IsADirectoryError, PermissionError):  # which of the two a folder gives depends on the system
        if not stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode):
            raise
        shutil.rmtree(name, dir_fd=inside)
