"""A thread's life over a wire, and the faults that may strike each message of it.

For the tests of a store that a server keeps: put a `FaultProxy` in front of it, let one of `WIRE_FAULTS` strike
`FirstAttempt` of each message, and live a `Life` through; every step must come to what `LIVED` says.  `Writes` are for
faults that do not pass: each says whether it may have been done, and can be made again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from strata_conformance.servers.proxy import FaultProxy, Request, WireFault
from strata_core.errors import StoreUnavailableError
from strata_core.records import Checkpoint, CheckpointStatus, Lease, LogEntry, LogPage, ThreadPage, ThreadQuery
from strata_core.store import RowStore

__all__ = [
    "COMPLETED",
    "LATER",
    "LIVED",
    "LONG",
    "WIRE_FAULTS",
    "FirstAttempt",
    "Life",
    "Writes",
    "checkpoint",
    "outcome_of",
]

START: Final = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
LATER: Final = START + timedelta(days=1)
"""After everything that these threads have seen."""
LONG: Final = timedelta(minutes=5)
"""How long leases last."""
COMPLETED: Final = CheckpointStatus.COMPLETED

_TEXT: Final = "x" * 400
_STATE: Final = {"text": _TEXT}
Step = Callable[[], Awaitable[Any]]


def checkpoint(thread_id: str, number: int, status: CheckpointStatus = CheckpointStatus.RUNNING) -> Checkpoint:
    """Return a checkpoint with a text of 400 characters, which a store may offload."""
    return Checkpoint(thread_id, status, {"step": number, "text": _TEXT}, START, metadata={"thread": thread_id})


async def outcome_of(call: Awaitable[Any]) -> Any:
    """Return what a call comes to, or the error that the server could not be used."""
    try:
        return await call
    except StoreUnavailableError as error:
        return error


class Life:
    """All that can happen to a thread, one message each.

    Args:
        store: With deltas and offload.
        thread_id: The thread.
        purge: Whether the life ends with a purge, which takes every thread of its kind.
    """

    def __init__(self, store: RowStore, thread_id: str, *, purge: bool = True) -> None:
        self._store = store
        self._purges = purge
        self._thread_id = thread_id
        self._lease: Any = None
        self._entry: Any = None

    def steps(self) -> dict[str, Step]:
        """Return the steps in order; each may be called once those before it were."""
        store, thread_id = self._store, self._thread_id
        metadata = {"thread": thread_id}

        async def acquire() -> Lease:
            self._lease = await store.acquire_lease(thread_id, owner="o", ttl=LONG, save=checkpoint(thread_id, 0))
            return self._lease  # type: ignore[no-any-return]

        async def renew() -> Lease:
            self._lease = await store.renew_lease(self._lease, ttl=LONG)
            return self._lease  # type: ignore[no-any-return]

        async def load() -> LogEntry:
            self._entry = await store.load(thread_id)
            return self._entry  # type: ignore[no-any-return]

        steps: dict[str, Step] = {
            "acquire with the first row": acquire,
            "fenced save": lambda: store.save_under_lease(checkpoint(thread_id, 1), self._lease),
            "renew": renew,
            "live lease": lambda: store.live_lease(thread_id),
            "release": lambda: store.release_lease(self._lease),
            "save": lambda: store.save(checkpoint(thread_id, 2)),
            "load": load,
            "load of blobs": lambda: store.load(thread_id, at=1),
            "conditional save": lambda: store.save_if_latest(checkpoint(thread_id, 3), self._entry.revision),
            "last save": lambda: store.save(checkpoint(thread_id, 4, COMPLETED)),
            "list": lambda: store.list_threads(ThreadQuery(metadata=metadata)),
            "log": lambda: store.get_log(thread_id),
        }
        return steps | {"purge": lambda: store.purge(LATER)} if self._purges else steps

    async def run(self) -> dict[str, Any]:
        """Live it through; return what each step came to, in the form of `LIVED`."""
        return {name: _comparable(await step()) for name, step in self.steps().items()}


def _comparable(outcome: Any) -> Any:
    """Return an outcome without what differs from thread to thread."""
    if isinstance(outcome, Lease):
        return "lease", outcome.saved
    if isinstance(outcome, LogEntry):
        return outcome.sequence, dict(outcome.checkpoint.frozen_state)
    if isinstance(outcome, LogPage):
        return [_comparable(entry) for entry in outcome.entries]
    if isinstance(outcome, ThreadPage):
        return [(thread.state, thread.sequence) for thread in outcome.threads]
    return outcome


LIVED: Final[Mapping[str, Any]] = {
    "acquire with the first row": ("lease", 0),
    "fenced save": 1,
    "renew": ("lease", 0),
    "live lease": ("lease", None),
    "release": None,
    "save": 2,
    "load": (2, {"step": 2} | _STATE),
    "load of blobs": (1, {"step": 1} | _STATE),
    "conditional save": 3,
    "last save": 4,
    "list": [("completed", 4)],
    "log": [(number, {"step": number} | _STATE) for number in range(5)],
    "purge": 1,
}
"""What each step of a `Life` comes to, whatever strikes its messages."""
WIRE_FAULTS: Final[Mapping[str, Callable[[FaultProxy, Any], WireFault]]] = {
    "request lost": lambda proxy, match: proxy.reset("request", match=match, times=None),
    "answer lost": lambda proxy, match: proxy.reset("reply", match=match, times=None),
    "request cut short": lambda proxy, match: proxy.cut("request", 11, match=match, times=None),
    "answer cut short": lambda proxy, match: proxy.cut("reply", 5, match=match, times=None),
    "request hangs": lambda proxy, match: proxy.hang("request", match=match, times=None),
    "answer hangs": lambda proxy, match: proxy.hang("reply", match=match, times=None),
}


class FirstAttempt:
    """Chooses each message when it is made first, and not when it is made again.

    A message is all that one caller sends before it waits.

    Args:
        match: Only messages with this in them.

    Attributes:
        struck: How many were chosen.
    """

    def __init__(self, match: bytes = b"") -> None:
        self.struck = 0
        self._match = match
        self._again = False

    def __call__(self, request: Request) -> bool:
        if self._match not in request.content or not request.starts_round_trip:
            return False
        self._again = not self._again
        self.struck += self._again
        return self._again


class Writes:
    """One write of each kind, each on a thread of its own, with a write ID of its own."""

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._ids = {name: os.urandom(8) for name in ("save", "conditional", "fenced", "acquire")}
        self._calls: dict[str, Step] = {}

    async def prepare(self) -> None:
        """Make the threads ready; one more, ``purge``, is left completed."""
        store, ids = self._store, self._ids
        leases: dict[str, Any] = {}
        for name in ("save", "conditional", "purge"):
            await store.save(checkpoint(name, 0, *([COMPLETED] if name == "purge" else [])))
        for name in ("fenced", "renew", "release"):
            leases[name] = await store.acquire_lease(name, owner="o", ttl=LONG, save=checkpoint(name, 0))
        self._calls = {
            "save": lambda: store.save(checkpoint("save", 1), write_id=ids["save"]),
            "conditional": lambda: store.save_if_latest(checkpoint("conditional", 1), 0, write_id=ids["conditional"]),
            "fenced": lambda: store.save_under_lease(checkpoint("fenced", 1), leases["fenced"], write_id=ids["fenced"]),
            "acquire": lambda: store.acquire_lease(
                "acquire", owner="o", ttl=LONG, save=checkpoint("acquire", 0), write_id=ids["acquire"]
            ),
            "renew": lambda: store.renew_lease(leases["renew"], ttl=LONG),
            "release": lambda: store.release_lease(leases["release"]),
        }

    async def make(self) -> dict[str, Any]:
        """Make all at once, for the first time or again; return what each came to, or its error."""
        outcomes = await asyncio.gather(*(call() for call in self._calls.values()), return_exceptions=True)
        return {name: _comparable(outcome) for name, outcome in zip(self._calls, outcomes, strict=True)}
