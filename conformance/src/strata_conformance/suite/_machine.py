"""Random programs against a plain model, shrunk to the shortest that fails."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Any, Final

import attrs
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from strata_conformance._promise import promise
from strata_conformance._runner import PATIENCE
from strata_conformance._samples import BASE, forged, spelled
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._model import Expected, PortModel
from strata_conformance.suite._script import Script
from strata_core.capabilities import Capability
from strata_core.errors import ConflictError, StrataError
from strata_core.options import Deltas, Offload
from strata_core.ports import ANY
from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    GraphIdentity,
    Lease,
    LogEntry,
    Revision,
    ThreadPage,
    ThreadQuery,
    ThreadState,
    Wait,
    WaitKind,
)
from strata_core.testing import FakeClock

__all__ = ["ModelTests"]

DAY: Final = timedelta(days=1)
TTLS: Final = (timedelta(seconds=10), timedelta(seconds=60))
BIG: Final = "x" * 300
NAMES: Final = ("a", "A", "a ")
OWNER: Final = "worker"
DEFAULT_EXAMPLES: Final = 100
PHASES: Final = (Phase.generate, Phase.shrink)

handles = st.sampled_from(["one", "one", "two"])
names = st.sampled_from(["a", "a", "a", "A", "a "])
expectations = st.sampled_from(["latest"] * 3 + ["revision"] * 3 + ["nothing", "earlier", "later", "other life"])
writes = st.sampled_from([0] * 9 + [1, 4, 8])
"""Which write to repeat, counted back; 0 for a new one."""
values = st.sampled_from([0, 1, 1.0, True, None, "", "text", [], [1, {"deep": 2}], {}, {"b": 1, "a": 2}, BIG, [BIG]])
states = st.dictionaries(st.sampled_from(["n", "a", "set", "blobs", "é"]), values, max_size=4)
thread_states = st.sets(st.sampled_from(list(ThreadState)), max_size=3)
options = st.fixed_dictionaries({"deltas": st.booleans(), "offload": st.booleans()})


@attrs.frozen
class Content:
    """What a checkpoint of a random program holds, besides its thread and its time."""

    status: CheckpointStatus
    state: dict[str, Any]
    day: int
    color: str | None
    version: str | None
    due: int | None
    is_resumed: bool


contents = st.builds(
    Content,
    st.sampled_from([CheckpointStatus.RUNNING] * 9 + list(CheckpointStatus)),
    states,
    st.integers(0, 3),
    st.sampled_from([None, "red", "Red"]),
    st.sampled_from([None, "1", "2"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([False, False, False, True]),
)


class Machine(RuleBasedStateMachine):
    """Drives two handles of a store and a `PortModel`, and compares every outcome.

    Threads bear the number of the program in their IDs and metadata, since all programs of a test share one storage; a
    program purges its threads when it ends.
    """

    programs = 0

    def __init__(self, open_store: OpenStore, clock: FakeClock) -> None:
        super().__init__()
        Machine.programs += 1
        self._run = str(Machine.programs)
        self._open_store = open_store
        self._clock = clock
        self._model = PortModel(clock.now())
        self._runner = asyncio.Runner()
        self._stores: dict[str, Store] = {}
        self._stacks: dict[str, AsyncExitStack] = {}
        self._leases: list[Lease] = [forged(self._id(name), 2**62) for name in NAMES[:1]]
        self._writes: list[bytes] = []
        self._moment = 0
        self._script = Script(self._run)

    # ------------------------------------------------------------------------------------------------ the programs

    @initialize(one=options, two=options)
    def open(self, one: dict[str, bool], two: dict[str, bool]) -> None:
        self._open("one", one)
        self._open("two", two)

    @rule(handle=handles, name=names, content=contents, again=writes)
    def save(self, handle: str, name: str, content: Content, again: int) -> None:
        checkpoint, write_id = self._checkpoint(name, content), self._write(again)
        self._check(
            handle,
            "save",
            lambda: self._model.save(checkpoint, write_id),
            checkpoint,
            write_id=write_id,
        )

    @rule(handle=handles, name=names, several=st.lists(contents, min_size=2, max_size=4))
    def save_several(self, handle: str, name: str, several: list[Content]) -> None:
        for content in several:
            self.save(handle, name, content, 0)

    @rule(handle=handles, name=names, content=contents, again=writes, kind=expectations, unleased=st.booleans())
    def save_if_latest(self, handle: str, name: str, content: Content, again: int, kind: str, unleased: bool) -> None:
        checkpoint, write_id, expected = self._checkpoint(name, content), self._write(again), self._expected(name, kind)
        self._check(
            handle,
            "save_if_latest",
            lambda: self._model.save(checkpoint, write_id, expected=expected, unleased=unleased),
            checkpoint,
            expected,
            unleased=unleased,
            write_id=write_id,
        )

    @rule(
        handle=handles,
        which=st.integers(0, 3),
        content=contents,
        again=writes,
        kind=st.one_of(st.just("any"), expectations),
        release=st.booleans(),
    )
    def save_under_lease(self, handle: str, which: int, content: Content, again: int, kind: str, release: bool) -> None:
        lease = self._lease(which)
        name = lease.thread_id.split(":", 1)[1]
        checkpoint, write_id, expected = self._checkpoint(name, content), self._write(again), self._expected(name, kind)
        self._check(
            handle,
            "save_under_lease",
            lambda: self._model.save(checkpoint, write_id, expected=expected, lease=lease, release=release),
            checkpoint,
            lease,
            expected=expected,
            release=release,
            write_id=write_id,
        )

    @rule(
        handle=handles,
        name=names,
        ttl=st.sampled_from(TTLS),
        content=st.none() | contents,
        again=writes,
        kind=st.one_of(st.just("any"), expectations),
    )
    def acquire(self, handle: str, name: str, ttl: timedelta, content: Content | None, again: int, kind: str) -> None:
        thread_id = self._id(name)
        save = None if content is None else self._checkpoint(name, content)
        write_id, expected = self._write(again), self._expected(name, kind)
        asked: dict[str, Any] = {"owner": OWNER, "ttl": ttl, "save": save, "expected": expected}

        def predicted() -> Lease | None:
            return self._model.acquire(thread_id, write_id, **asked)

        lease = self._check(handle, "acquire_lease", predicted, thread_id, **asked, write_id=write_id)
        if isinstance(lease, Lease) and lease.token not in {known.token for known in self._leases}:
            if lease.token <= self._model.largest_token(thread_id):
                self._script.fail("a larger token than all before on the thread", lease.token)
            self._model.was_given(thread_id, lease.token)
            self._leases.append(lease)

    @rule(handle=handles, which=st.integers(0, 3), ttl=st.sampled_from(TTLS))
    def renew(self, handle: str, which: int, ttl: timedelta) -> None:
        lease = self._lease(which)
        self._check(handle, "renew_lease", lambda: self._model.renew(lease, ttl), lease, ttl=ttl)

    @rule(handle=handles, which=st.integers(0, 3))
    def release(self, handle: str, which: int) -> None:
        lease = self._lease(which)
        self._check(handle, "release_lease", lambda: self._model.release(lease), lease)

    @precondition(lambda self: not self._has(Capability.SERVER_CLOCK))
    @rule(seconds=st.sampled_from([1, 10, 60]))
    def wait(self, seconds: int) -> None:
        self._script.note(f"clock.advance({seconds})")
        self._clock.advance(seconds)

    @rule(handle=handles, name=names, at=st.none() | st.integers(0, 9))
    def load(self, handle: str, name: str, at: int | None) -> None:
        thread_id = self._id(name)
        self._check(handle, "load", lambda: self._model.load(thread_id, at), thread_id, at=at)

    @rule(handle=handles, name=names)
    def live_lease(self, handle: str, name: str) -> None:
        thread_id = self._id(name)
        self._check(handle, "live_lease", lambda: self._model.live(thread_id), thread_id)

    @precondition(lambda self: self._has(Capability.QUERY))
    @rule(handle=handles, name=names, start=st.integers(0, 6), limit=st.integers(1, 4))
    def get_log(self, handle: str, name: str, start: int, limit: int) -> None:
        thread_id = self._id(name)

        def predicted() -> tuple[list[LogEntry], int | None]:
            log = self._model.log(thread_id)
            return log[start : start + limit], start + limit if len(log) > start + limit else None

        self._check(handle, "get_log", predicted, thread_id, start=start, limit=limit)

    @precondition(lambda self: self._has(Capability.QUERY))
    @rule(
        handle=handles,
        wanted=st.none() | st.none() | thread_states,
        color=st.sampled_from([None, None, None, "red", "Red"]),
        after=st.sampled_from([None, None, None, 0, 1]),
        before=st.sampled_from([None, None, None, 2, 3]),
        version=st.sampled_from([None, None, "1", "2"]),
        due=st.sampled_from([None, None, None, 1, 2]),
        leased=st.sampled_from([None, None, True, False]),
        limit=st.integers(1, 3),
    )
    def list_threads(
        self,
        handle: str,
        wanted: set[ThreadState] | None,
        color: str | None,
        after: int | None,
        before: int | None,
        version: str | None,
        due: int | None,
        leased: bool | None,
        limit: int,
    ) -> None:
        query = ThreadQuery(
            states=wanted,
            metadata={"run": self._run} | ({} if color is None else {"color": color}),
            updated_after=None if after is None else BASE + after * DAY,
            updated_before=None if before is None else BASE + before * DAY,
            graph_id=None if version is None else "graph",
            graph_version=version,
            due_before=None if due is None else BASE + due * DAY,
            leased=leased,
            limit=limit,
        )
        found = self._model.listed(query)
        for start in range(0, len(found) or 1, limit):
            page = [
                (e.checkpoint.thread_id, e.sequence, e.checkpoint.state, self._model.live(e.checkpoint.thread_id))
                for e in found[start : start + limit]
            ]
            expected = (page, start + limit < len(found))
            got = self._check(handle, "list_threads", partial(tuple, expected), query)
            query = attrs.evolve(query, cursor=getattr(got, "next_cursor", None))

    @precondition(lambda self: self._has(Capability.RETENTION))
    @rule(handle=handles, day=st.integers(0, 4), wanted=thread_states, limit=st.integers(1, 3))
    def purge(self, handle: str, day: int, wanted: set[ThreadState], limit: int) -> None:
        cutoff = BASE + day * DAY + timedelta(seconds=1)
        self._check(
            handle,
            "purge",
            lambda: self._model.purge(cutoff, wanted, limit),
            cutoff,
            states=wanted,
            limit=limit,
        )

    @rule(handle=handles, with_options=options)
    def reopen(self, handle: str, with_options: dict[str, bool]) -> None:
        self._close(handle)
        self._open(handle, with_options)

    def teardown(self) -> None:
        """Compare everything that is stored, and leave nothing to the next program."""
        try:
            if self._stores and not self._script.has_failed:
                for name in NAMES:
                    for entry in self._model.log(self._id(name)):
                        self.load("one", name, entry.sequence)
                    self.load("two", name, None)
            if self._stores:
                self._clean_up()
        finally:
            for handle in list(self._stores):
                self._close(handle)
            self._runner.close()

    # --------------------------------------------------------------------------------------------- what drives them

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
            if with_options["offload"] and Capability.OWN_BLOBS in plain.capabilities:
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

    def _clean_up(self) -> None:
        async def clean() -> None:
            store = self._stores["one"]
            for name in NAMES:
                lease = await store.live_lease(self._id(name))
                if lease is not None:
                    await store.release_lease(lease)
            if Capability.RETENTION in store.capabilities:
                await store.purge(BASE + 365 * DAY, states=set(ThreadState))

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


class ModelTests(PortTests):
    """Random programs, whose outcomes a plain model predicts."""

    @promise("model-1")
    def test_any_program_comes_out_as_the_model_says(
        self, open_store: OpenStore, clock: FakeClock, request: pytest.FixtureRequest
    ) -> None:
        """Whatever is called in whatever order, from several handles with whatever options: every sequence, checkpoint,
        lease, page, slice, number and error is what a plain model of these promises comes to.
        """
        soak = bool(os.environ.get("STRATA_SOAK"))
        seeded = request.config.getoption("--hypothesis-seed", None) is not None
        chosen = settings().max_examples != DEFAULT_EXAMPLES  # by a profile of the author's
        run_state_machine_as_test(
            lambda: Machine(open_store, clock),  # type: ignore[arg-type]  # it takes any factory
            settings=settings(
                max_examples=2000 if soak else settings().max_examples if chosen else 50,
                stateful_step_count=50 if soak else 25,
                derandomize=not (soak or seeded or chosen),
                phases=PHASES,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            ),
        )
