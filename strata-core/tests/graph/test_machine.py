"""One thread of a random graph, disturbed in every way at every place: it comes to what it comes to undisturbed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from datetime import timedelta
from itertools import groupby
from typing import Any, cast

import pytest
from harm_support import CALL_HARM, GENTLE, NODE_HARM, Process
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from machine_support import TTL, State, Step, answer_to, build, innermost, shapes
from storages import SERVERS, STORES, Storage

from strata_core import open_store
from strata_core.graph import (
    CheckpointPolicy,
    Completed,
    EventSignal,
    Failed,
    FailureCode,
    Interrupted,
    LevelSignals,
    SweepReport,
)
from strata_core.records import Checkpoint, ThreadState
from strata_core.testing import FakeClock

SOAK = os.environ.get("STRATA_SOAK") == "1"
EXAMPLES = 1000 if SOAK else 10 if set(STORES) <= SERVERS else 40
"""Fewer on a server, where each step takes longer and harm is done between the same steps."""
pytestmark = pytest.mark.soak

PROCESS: ContextVar[Process] = ContextVar("PROCESS")
Row = tuple[str, str | None, str | None, tuple[str, ...], int]
Act = Callable[[Any], Coroutine[Any, Any, Any]]


def row_of(checkpoint: Checkpoint) -> Row:
    state = innermost(checkpoint).frozen_state
    where = checkpoint.suspended_node, checkpoint.next_node
    if checkpoint.nested is not None:
        _, inner, target, *_ = row_of(checkpoint.nested)
        where = f"{where[0]}.{inner}", f"{where[1]}.{target}"
    return checkpoint.state.value, *where, tuple(state["trace"]), state["answers"]


def steps(rows: list[Row]) -> list[Row]:
    """Return the rows of the steps alone: without stops in between, and without those who went on from there.

    Who goes on after a stop in a fallback goes on there, and not at the node that had given up; and who goes on at the
    first node of a subgraph is inside of it then.
    """
    alone = [row for row in rows if row[0] not in ("failed", "cancelled", "resumed")]
    return [row for row, _ in groupby((row[0], None, None, *row[3:]) if row[0] == "running" else row for row in alone)]


def tell_who_committed(rows: list[Row]) -> bool:
    """Return whether every running row names the node that committed last, outside of subgraphs."""
    return all(
        suspended == (trace[-1].partition(".")[0] if trace else None)
        for state, suspended, _, trace, _ in rows
        if state == "running" and "." not in (suspended or "")
    )


def next_act(graph: Any, latest: Checkpoint | None, clock: FakeClock, by_sweep: bool = False) -> Act:
    """Return what somebody who looks after the thread does with it."""
    if latest is None:
        return lambda store: graph.run("t", State(), store, if_exists="error")
    if latest.state is ThreadState.RUNNING:
        return lambda store: graph.recover_all(store) if by_sweep else graph.recover("t", store)
    if latest.state is not ThreadState.INTERRUPTED:
        return lambda store: graph.resume("t", None, store)
    answer = answer_to(latest)
    if isinstance(answer, EventSignal):
        return lambda store: graph.signal("t", answer, store)
    if answer is not None:
        return lambda store: graph.resume("t", answer, store)
    clock.advance(timedelta(hours=2))
    return lambda store: graph.wake_due(store) if by_sweep else graph.resume("t", LevelSignals.due(), store)


async def undisturbed(shape: tuple[Step, ...], policy: CheckpointPolicy) -> list[Row]:
    """Return the rows of a thread that nothing happens to."""
    clock = FakeClock()

    async def visit(*_: Any) -> None:
        pass

    graph = build(shape, policy, clock, visit)
    async with open_store("memory://", clock=clock) as store:
        result: Any = None
        while not isinstance(result, Completed):
            entry = await store.load("t")
            result = await next_act(graph, None if entry is None else entry.checkpoint, clock)(store)
        log = await store.get_log("t", limit=1000)
    return [row_of(entry.checkpoint) for entry in log.entries]


class Machine(RuleBasedStateMachine):
    """The thread, those who look after it one after the other, and those who froze while they did."""

    policy = CheckpointPolicy.EVERY_NODE
    call_harm: tuple[str, ...] = CALL_HARM
    node_harm: tuple[str, ...] = NODE_HARM

    def __init__(self, fresh_storage: Callable[[], AbstractContextManager[Storage]]) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = ExitStack()
        storage = self.stack.enter_context(fresh_storage())
        self.clock = storage.clock
        self.opened = storage.open()
        self.store: Any = self.loop.run_until_complete(self.opened.__aenter__())
        self.zombies: list[Process] = []
        self.committed = 0
        self.keys: dict[tuple[int, str], str] = {}
        self.violations: list[str] = []

    def teardown(self) -> None:
        try:
            if hasattr(self, "shape"):
                self.finish()
        finally:
            for zombie in self.zombies:
                zombie.is_dead = True
                zombie.thaw()
                self.loop.run_until_complete(asyncio.wait({zombie.task}))  # type: ignore[type-var]
            self.loop.run_until_complete(self.opened.__aexit__(None, None, None))
            self.loop.close()
            self.stack.close()

    @initialize(shape=shapes())
    def begin(self, shape: tuple[Step, ...]) -> None:
        self.shape = shape
        self.graph = build(shape, self.policy, self.clock, self.visit)
        self.reference = self.loop.run_until_complete(undisturbed(shape, self.policy))

    # ------------------------------------------------------------------------------------------------ what happens

    @rule(data=st.data(), by_sweep=st.booleans(), patient=st.booleans())
    def look_after(self, data: st.DataObject, by_sweep: bool, patient: bool) -> None:
        """Do what is to be done with the thread, and come to harm meanwhile."""
        if self.is_over:
            return
        if patient and self.is_leased:
            self.clock.advance(TTL)
        numbers = st.integers(0, 7)
        at_calls = data.draw(st.dictionaries(numbers, st.sampled_from(self.call_harm), max_size=2), "at calls")
        in_nodes = data.draw(st.dictionaries(numbers, st.sampled_from(self.node_harm), max_size=2), "in nodes")
        self.act(next_act(self.graph, self.latest, self.clock, by_sweep), at_calls, in_nodes)

    @rule(what=st.sampled_from(["run", "recover", "resume", "wake"]))
    def try_what_cannot_be(self, what: str) -> None:
        """A call that does not fit where the thread stands is refused, and changes nothing."""
        latest, before = self.latest, self.rows
        if latest is None:
            return
        state = latest.state
        if what == "run":
            result = self.act(lambda store: self.graph.run("t", State(), store, if_exists="error"))
            codes = {FailureCode.THREAD_EXISTS}
        elif what == "recover" and (state is not ThreadState.RUNNING or self.is_leased):
            result = self.act(lambda store: self.graph.recover("t", store))
            codes = {
                FailureCode.LEASE_HELD,
                FailureCode.NOT_RUNNING,
                FailureCode.COMPLETED,
                FailureCode.NOT_RECOVERABLE,
            }
        elif what == "resume" and state not in (ThreadState.FAILED, ThreadState.CANCELLED):
            result = self.act(lambda store: self.graph.resume("t", None, store))
            codes = {
                FailureCode.RUNNING,
                FailureCode.COMPLETED,
                FailureCode.SIGNAL_REQUIRED,
                FailureCode.WRONG_WAIT,
                FailureCode.ALREADY_RESUMED,
            }
        elif what == "wake":
            report = self.act(self.graph.wake_due)
            if report.results:
                return
            result, codes = None, set()
        else:
            return

        assert result is None or result.code in codes
        assert before == self.rows

    @rule(seconds=st.sampled_from([1, 11, 31]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.loop.run_until_complete(asyncio.sleep(0))

    @precondition(lambda self: self.zombies)
    @rule(data=st.data())
    def thaw(self, data: st.DataObject) -> None:
        """Let a frozen process go on where it was."""
        zombie = self.zombies.pop(data.draw(st.integers(0, len(self.zombies) - 1), "which one"))
        zombie.thaw()
        self.settle(zombie, thawed=True)

    # ------------------------------------------------------------------------------------------------ how it is done

    async def visit(self, node: str, step: Step, state: Any, ctx: Any) -> None:
        """What every attempt of a node begins with."""
        at = len(state.trace)
        if at < self.committed:
            self.violations.append(f"{node} runs again at step {at}, after {self.committed} steps have committed")
        if self.keys.setdefault((at, node), ctx.idempotency_key) != ctx.idempotency_key:
            self.violations.append(f"{node} was told another key at step {at}")
        await PROCESS.get().in_node(may_fail=not step.gives_up)

    def saved(self, checkpoint: Checkpoint) -> None:
        self.committed = max(self.committed, len(innermost(checkpoint).frozen_state["trace"]))

    def act(self, act: Act, at_calls: dict[int, str] | None = None, in_nodes: dict[int, str] | None = None) -> Any:
        process = Process(self.store, self.clock, at_calls or {}, in_nodes or {}, self.saved)

        async def begin() -> None:
            PROCESS.set(process)
            process.task = asyncio.create_task(act(process))

        self.loop.run_until_complete(begin())
        return self.settle(process)

    def settle(self, process: Process, *, thawed: bool = False) -> Any:
        """Wait until a process is through, or frozen, or dead, and look whether everything is in order."""
        task = process.task
        assert task is not None

        async def wait() -> None:
            frozen = asyncio.create_task(process.frozen.wait())
            await asyncio.wait({task, frozen}, return_when=asyncio.FIRST_COMPLETED)
            frozen.cancel()

        self.loop.run_until_complete(wait())
        result = None
        if not task.done():
            self.zombies.append(process)
        elif not task.cancelled() and task.exception() is None:
            result = task.result()
            if not thawed or isinstance(result, Completed):  # the thread may have gone on since a stop that it tells
                self.check_result(result)
        self.check()
        return result

    def check_result(self, result: Any) -> None:
        if isinstance(result, SweepReport):
            for each in result.results.values():
                self.check_result(each)
            return
        latest = self.latest
        if isinstance(result, Completed):
            assert latest is not None
            assert ("completed", result.state) == (latest.status.value, self.state_of(latest))
        elif isinstance(result, Interrupted):
            assert latest is not None
            assert ("interrupted", result.next_node) == (latest.status.value, latest.next_node)
        elif isinstance(result, Failed) and result.code is FailureCode.NODE_FAILED:
            assert "HarmError" == result.detail
            assert latest is not None
            assert ("failed", result.node) == (latest.status.value, latest.next_node)

    def check(self) -> None:
        """Whole steps, in the order of the undisturbed thread, and nothing done again that was committed."""
        rows = self.rows
        found = steps(rows)

        assert steps(self.reference)[: len(found)] == found
        assert tell_who_committed(rows)
        assert [] == self.violations

    def finish(self) -> None:
        """Look after the thread until it is through, whatever happened to it, and then let the frozen ones go on."""
        for _ in range(200):
            if self.is_over:
                break
            if self.is_leased:
                self.clock.advance(TTL)
            self.act(next_act(self.graph, self.latest, self.clock))

        assert self.is_over
        assert steps(self.reference) == steps(self.rows)
        rows = self.rows
        while self.zombies:
            zombie = self.zombies.pop()
            zombie.thaw()
            self.settle(zombie, thawed=True)
        assert rows == self.rows

    @property
    def latest(self) -> Checkpoint | None:
        entry = self.loop.run_until_complete(self.store.load("t"))
        return None if entry is None else entry.checkpoint

    @property
    def is_over(self) -> bool:
        latest = self.latest
        return latest is not None and latest.state is ThreadState.COMPLETED

    @property
    def is_leased(self) -> bool:
        return self.loop.run_until_complete(self.store.live_lease("t")) is not None

    @property
    def rows(self) -> list[Row]:
        log = self.loop.run_until_complete(self.store.get_log("t", limit=1000))
        return [row_of(entry.checkpoint) for entry in log.entries]

    @staticmethod
    def state_of(checkpoint: Checkpoint) -> State:
        return State(tuple(checkpoint.frozen_state["trace"]), checkpoint.frozen_state["answers"])


class GentleMachine(Machine):
    """The same where rows are only written at stops: nothing brings back what dies between two of them."""

    policy = CheckpointPolicy.BOUNDARIES
    call_harm = tuple(harm for harm in CALL_HARM if harm in GENTLE)
    node_harm = tuple(harm for harm in NODE_HARM if harm in GENTLE)


@pytest.mark.parametrize("machine", [Machine, GentleMachine], ids=["every node", "boundaries"])
def test_a_disturbed_thread_comes_to_what_an_undisturbed_one_comes_to(
    machine: type[Machine],
    fresh_storage: Callable[[], AbstractContextManager[Storage]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "strata_core.graph")
    run_state_machine_as_test(
        cast("type[Machine]", lambda: machine(fresh_storage)),  # whatever makes one will do
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=30 if SOAK else 12,
            deadline=None,
            report_multiple_bugs=False,
            phases=[phase for phase in Phase if SOAK or phase not in (Phase.shrink, Phase.explain)],
            suppress_health_check=list(HealthCheck),
        ),
    )
