"""Drives a store and its model through a random program, whatever its calls are."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import attrs
from hypothesis.stateful import RuleBasedStateMachine

from strata_conformance._runner import PATIENCE
from strata_conformance._samples import BASE, forged, spelled
from strata_conformance.suite._base import OpenStore, Store
from strata_conformance.suite._model import Expected, PortModel
from strata_conformance.suite._programs import DAY, NAMES, Content
from strata_conformance.suite._script import Script
from strata_core.blobs import InMemoryBlobStore
from strata_core.capabilities import Capability
from strata_core.errors import ConflictError, StrataError
from strata_core.options import Deltas, Offload
from strata_core.ports import ANY
from strata_core.records import (
    Checkpoint,
    GraphIdentity,
    Lease,
    LogEntry,
    Revision,
    ThreadPage,
    ThreadState,
    Wait,
    WaitKind,
)
from strata_core.testing import FakeClock

__all__ = ["Driver", "RememberedBlobs"]


class RememberedBlobs(InMemoryBlobStore):
    """A blob store that remembers what it was ever given.

    Attributes:
        given: Every thread and digest.
    """

    def __init__(self) -> None:
        super().__init__()
        self.given: set[tuple[str, str]] = set()

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        self.given.add((thread_id, digest))
        await super().put(thread_id, digest, content)

    async def left(self) -> list[str]:
        """Return the threads that have a blob."""
        return sorted({thread for thread, digest in self.given if await self.get(thread, digest) is not None})


class Driver(RuleBasedStateMachine):
    """Makes calls on two handles of a store and on a `PortModel`, and compares every outcome.

    Threads bear the number of the program in their IDs and metadata, since all programs of a test share one storage; a
    program purges its threads when it ends.
    """

    programs = 0

    def __init__(self, open_store: OpenStore, clock: FakeClock) -> None:
        super().__init__()
        Driver.programs += 1
        self._run = str(Driver.programs)
        self._open_store = open_store
        self._clock = clock
        self._model = PortModel(clock.now())
        self._runner = asyncio.Runner()
        self._stores: dict[str, Store] = {}
        self._stacks: dict[str, AsyncExitStack] = {}
        self._leases: list[Lease] = [forged(self._id(name), 2**62) for name in NAMES[:1]]
        self._writes: list[bytes] = []
        self._moment = 0
        self._blobs: RememberedBlobs | None = None
        self._script = Script(self._run)

    def teardown(self) -> None:
        """Compare everything that is stored, and leave nothing to the next program."""
        try:
            if self._stores and not self._script.has_failed:
                for name in NAMES:
                    for entry in self._model.log(self._id(name)):
                        self._load("one", name, entry.sequence)
                    self._load("two", name, None)
            if self._stores:
                self._clean_up()
        finally:
            for handle in list(self._stores):
                self._close(handle)
            self._runner.close()

    def _has(self, capability: Capability) -> bool:
        return bool(self._stores) and capability in self._stores["one"].capabilities

    def _await(self, call: Awaitable[Any]) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(PATIENCE):
                return await call

        return self._runner.run(bounded())

    def _open(self, handle: str, with_options: dict[str, bool]) -> None:
        async def enter() -> None:
            stack = AsyncExitStack()
            plain = await stack.enter_async_context(self._open_store())
            given: dict[str, Any] = {}
            if with_options["deltas"] and Capability.DELTAS in plain.capabilities:
                given["deltas"] = Deltas(full_every=3)
            if self._blobs is not None and Capability.EXTERNAL_BLOBS in plain.capabilities:
                # Each handle has the blob store, since one without could not read what another has put there.
                threshold = 100 if with_options["offload"] else sys.maxsize
                given["offload"] = Offload(threshold, self._blobs)
            elif with_options["offload"] and Capability.OWN_BLOBS in plain.capabilities:
                given["offload"] = Offload(threshold=100)
            if given:
                await stack.aclose()
                plain = await stack.enter_async_context(self._open_store(**given))
            self._script.opened(handle, given)
            self._stores[handle], self._stacks[handle] = plain, stack

        self._await(enter())

    def _close(self, handle: str) -> None:
        self._await(self._stacks.pop(handle).aclose())
        del self._stores[handle]

    def _load(self, handle: str, name: str, at: int | None) -> None:
        thread_id = self._id(name)
        self._check(handle, "load", lambda: self._model.load(thread_id, at), thread_id, at=at)

    def _clean_up(self) -> None:
        async def clean() -> None:
            store = self._stores["one"]
            for name in NAMES:
                lease = await store.live_lease(self._id(name))
                if lease is not None:
                    await store.release_lease(lease)
            if Capability.RETENTION in store.capabilities:
                await store.purge(BASE + 365 * DAY, states=set(ThreadState))
                left = [] if self._blobs is None or self._script.has_failed else await self._blobs.left()
                if left:
                    self._script.note("await one.purge(BASE + timedelta(days=365), states=set(ThreadState))")
                    self._script.fail("no blob in the blob store", left)

        self._await(clean())

    def _id(self, name: str) -> str:
        return f"{self._run}:{name}"

    def _checkpoint(self, name: str, content: Content) -> Checkpoint:
        self._moment += 1  # no two have the same time, as nobody promises which of those is purged first
        at = BASE + content.day * DAY + timedelta(microseconds=self._moment)
        due = None if content.due is None else BASE + content.due * DAY
        return Checkpoint(
            self._id(name),
            content.status,
            content.state,
            at,
            next_node="Next",
            metadata={"run": self._run} | ({} if content.color is None else {"color": content.color}),
            wait=None if due is None else Wait(WaitKind.TIMER, due_at=due),
            graph=None if content.version is None else GraphIdentity("graph", content.version),
            resumed_at=at + DAY if content.is_resumed else None,
        )

    def _write(self, again: int) -> bytes:
        if again and again <= len(self._writes):
            return self._writes[-again]
        self._writes.append(int(self._run).to_bytes(4, "big") + len(self._writes).to_bytes(4, "big"))
        return self._writes[-1]

    def _lease(self, which: int) -> Lease:
        return self._leases[-1 - which % len(self._leases)]

    def _expected(self, name: str, kind: str) -> Expected:
        log = self._model.log(self._id(name))
        latest = log[-1].revision if log else Revision(0, bytes(8))
        return {
            "any": ANY,
            "latest": latest.sequence if log else None,
            "revision": latest if log else None,
            "nothing": None,
            "earlier": max(latest.sequence - 1, 0),
            "later": latest.sequence + 1,
            "other life": attrs.evolve(latest, write_id=b"another!"),
        }[kind]

    def _check(self, handle: str, op: str, predict: Callable[[], Any], *arguments: Any, **named: Any) -> Any:
        """Make a call on the store and on the model; the outcomes must be the same."""
        self._script.call(handle, op, arguments, named)
        try:
            outcome: Any = self._await(getattr(self._stores[handle], op)(*arguments, **named))
        except StrataError as error:
            outcome = error
        except BaseException as error:
            self._script.explain(error)
            raise
        self._model.now = self._clock.now()  # a server's clock has moved meanwhile, and only its leases tell
        try:
            expected = predict()
        except StrataError as error:
            expected = error
        if self._comparable(expected) != self._comparable(outcome):
            self._script.fail(expected, outcome)
        return outcome

    def _comparable(self, outcome: Any) -> Any:
        if isinstance(outcome, ConflictError):
            return type(outcome), outcome.latest if type(outcome) is ConflictError else None
        if isinstance(outcome, StrataError):
            return type(outcome)
        if isinstance(outcome, LogEntry):
            return outcome, spelled(outcome.checkpoint.frozen_state)
        if isinstance(outcome, Lease):
            known = outcome.token if any(outcome.token == lease.token for lease in self._leases) else 0
            expires = None if self._has(Capability.SERVER_CLOCK) else outcome.expires_at
            return outcome.thread_id, known, outcome.owner, expires, outcome.saved
        if isinstance(outcome, ThreadPage):
            threads = [(t.thread_id, t.sequence, t.state, t.lease) for t in outcome.threads]
            return self._comparable((threads, outcome.next_cursor is not None))
        if hasattr(outcome, "entries"):
            return self._comparable((outcome.entries, outcome.next_start))
        if isinstance(outcome, list | tuple):
            return [self._comparable(item) for item in outcome]
        return outcome
