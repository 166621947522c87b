"""Signals to a server and to the processes that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["children", "has_ended", "send"]


def children(pid: int) -> list[int]:
    """Return the processes that a process started and that have not ended."""
    return [child for child, (parent, state) in _processes() if parent == pid and not state.startswith("Z")]


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits only for whoever started it to notice."""
    return all(other != pid or state.startswith("Z") for other, (_, state) in _processes())


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to processes; those that have ended do not mind."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _processes() -> Iterable[tuple[int, tuple[int, str]]]:
    """Return every process with its parent and state."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(
            ["/bin/ps", "-A", "-o", "pid=,ppid=,state="], check=True, capture_output=True, text=True
        ).stdout
        for line in listed.splitlines():
            pid, parent, state = line.split()[:3]
            yield int(pid), (int(parent), state)
        return
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                # The name stands in brackets and may hold anything, brackets too.
                state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                yield int(folder.name), (int(parent), state)
