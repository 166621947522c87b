"""Durable steps on files, and the lock that makes them one step."""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strata_core.errors import StoreBusyError

__all__ = ["clear", "locked", "put", "sync"]

PATIENCE: Final = 30.0
"""Seconds to wait for a lock: far longer than anybody holds it."""


def put(path: Path, content: bytes) -> None:
    """Give a file this content, whole or not at all; durable once its folder is synced."""
    unfinished = path.with_name(f"{path.name}.new")  # one name will do: only the holder of the lock writes
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def sync(folder: Path) -> None:
    """Make the names in a folder durable: files that are new, renamed or gone."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def clear(folder: Path, *, keep: str) -> None:
    """Delete the files of a folder, all but one."""
    for path in folder.iterdir():
        if path.name != keep:
            path.unlink()


@contextmanager
def locked(path: Path, *, exclusive: bool) -> Generator[None]:
    """Hold the lock of a file; the system lets go of it when a process dies.

    Raises:
        StoreBusyError: Somebody else held it for too long.
    """
    operation = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
    deadline = time.monotonic() + PATIENCE
    with path.open("r+b" if exclusive else "rb") as file:  # closing it lets go of the lock
        while True:
            try:
                fcntl.flock(file, operation)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreBusyError(f"{path}: another process held the lock for {PATIENCE:g} seconds") from None
                time.sleep(random.uniform(0.0005, 0.005))
        yield
