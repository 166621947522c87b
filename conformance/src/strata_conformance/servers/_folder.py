"""The temporary folder of a server, and the watch that ends both when the test process is gone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from strata_conformance.servers._account import MYSELF, Account
from strata_conformance.servers._errors import ServerFailedError

__all__ = ["ServerFolder"]

# Reads until the pipe to the test process breaks, however that process ended.  Then the server goes, and its folder.
# $1: the folder; $2: the signal that ends the server at once.  A server that was stopped must go on to see a signal.
_WATCH: Final = """
read -r _
pids=$(cat "$1/pids" 2>/dev/null)
for pid in $pids; do kill -CONT "$pid"; done 2>/dev/null
for pid in $pids; do
    kill -"$2" "$pid" 2>/dev/null || continue
    tries=0
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 80 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -KILL "$pid" 2>/dev/null
    break
done
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
"""
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # mkdtemp makes one in it
_ROOM: Final = 4 << 30
"""Bytes: a container often has little, and a PostgreSQL alone takes one for its log."""
_watched: Final[weakref.WeakSet[ServerFolder]] = weakref.WeakSet()


class ServerFolder:
    """A temporary folder that goes with the process that made it, also when that is killed.

    A shell waits for the end of this process and then ends the server that is noted here and removes the folder: what
    ``PR_SET_PDEATHSIG`` cannot do, which knows Linux only, goes by threads and leaves folders behind.

    Args:
        name: Part of the folder's name.
        account: Who works in it.
        end: The signal that ends the server at once.
        in_memory: Prefer a file system in memory, if it has room and TMPDIR does not say otherwise: beside a disk that
            others keep busy that makes a database ten times faster.

    Raises:
        ServerFailedError: No temporary folder can be reached by that user.
    """

    def __init__(
        self,
        name: str,
        account: Account = MYSELF,
        end: signal.Signals = signal.SIGKILL,
        *,
        in_memory: bool = False,
    ) -> None:
        roots = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108  # mkdtemp makes one in it
        if in_memory and "TMPDIR" not in os.environ and _has_room(_MEMORY):
            roots.insert(0, _MEMORY)
        root = next((root for root in roots if root.is_dir() and account.may_enter(root)), None)
        if root is None:
            message = f"{tempfile.gettempdir()} cannot be reached by the user that runs {name}: set TMPDIR"
            raise ServerFailedError(message)
        self.path: Final = Path(tempfile.mkdtemp(prefix=f"strata-{name}-", dir=root))
        account.own(self.path)
        self._watch = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watch", self.path, end.name.removeprefix("SIG")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that a Ctrl-C in a terminal does not end it
            cwd="/",
        )
        _watched.add(self)

    def note(self, pids: Iterable[int]) -> None:
        """Write down which processes end with the folder, the one that ends the others first; none: all have ended."""
        fresh = self.path / "pids.new"
        fresh.write_text("".join(f"{pid}\n" for pid in pids))
        fresh.replace(self.path / "pids")

    def remove(self) -> None:
        """Remove the folder; what runs in it must have ended."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._let_go()
        self._watch.wait()
        _watched.discard(self)

    def _let_go(self) -> None:
        assert self._watch.stdin is not None
        self._watch.stdin.close()


def _has_room(folder: Path) -> bool:
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize >= _ROOM


def _forked() -> None:
    for folder in tuple(_watched):
        folder._let_go()  # noqa: SLF001  # a fork that outlives this process must not keep its servers alive


os.register_at_fork(after_in_child=_forked)
