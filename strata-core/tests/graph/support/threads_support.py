"""The threads that CALLS.md speaks of, brought to where they stand by calls of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial
from typing import Any, Final

import attrs

from strata_core.graph import CheckpointPolicy, EventSignal, HumanSignal, LevelSignals, StateGraph
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, GraphIdentity, WaitKind
from strata_core.store import RowStore
from strata_core.testing import FakeClock

PAID: Final = EventSignal("paid")
METADATA: Final = {"tenant": "acme"}
BEGUN: Final[dict[str, list[str]]] = {"trace": []}
IDENTITY: Final = GraphIdentity("payments", "2")
DAY: Final = timedelta(days=1)

Call = Callable[[Any, Any, str], Awaitable[Any]]


class DiedError(BaseException):
    """The process is gone: no code of it runs any more."""


def commit(node: str, state: Any) -> Any:
    """Leave the node's name in the state."""
    return {"trace": [*state["trace"], node]}


def decline(state: Any) -> Any:
    raise ValueError("declined")


def die(state: Any) -> Any:
    raise DiedError


@attrs.frozen
class Way:
    """How a thread comes to where it stands.

    Attributes:
        wait: What it waits for behind `Prepare`.
        days: How long a timer takes, or until another wait times out.
        route: Where it goes on then.
        deadline: That of the run.
        calls: What is called after the run.
        prepare: What `Prepare` does instead of committing.
        execute: What `Execute` does instead.
        policy: Under which policy; None for that of the graph that will meet it.
        completes: Whether `BOUNDARIES` writes `completed`.
        is_held: Whether another process holds it in the end.
    """

    wait: WaitKind = WaitKind.PERSON
    days: int | None = None
    route: str | None = None
    deadline: timedelta | None = None
    calls: tuple[Call, ...] = ()
    prepare: Callable[[Any], Any] | None = None
    execute: Callable[[Any], Any] | None = None
    policy: CheckpointPolicy | None = None
    completes: bool = False
    is_held: bool = False


def approve(graph: Any, store: Any, thread_id: str) -> Awaitable[Any]:
    return graph.resume(thread_id, HumanSignal.approve("ann"), store)  # type: ignore[no-any-return]


def pay(graph: Any, store: Any, thread_id: str) -> Awaitable[Any]:
    return graph.signal(thread_id, PAID, store)  # type: ignore[no-any-return]


def wake(graph: Any, store: Any, thread_id: str) -> Awaitable[Any]:
    return graph.resume(thread_id, LevelSignals.due(), store)  # type: ignore[no-any-return]


def end(graph: Any, store: Any, thread_id: str) -> Awaitable[Any]:
    return graph.end(thread_id, store, by="ops")  # type: ignore[no-any-return]


PERSON, EVENT, TIMER = "waits for a person", "waits for an event", "waits for a time"
_DEAD = Way(prepare=die, policy=CheckpointPolicy.EVERY_NODE)
_DEAD_LATER = Way(calls=(approve,), execute=die, policy=CheckpointPolicy.EVERY_NODE)
WAYS: Final[Mapping[str, Way | None]] = {
    "no thread": None,
    PERSON: Way(),
    f"{PERSON}, not yet due": Way(days=2, route="Late"),
    f"{PERSON}, due": Way(days=1, route="Late"),
    f"{PERSON}, due, no route": Way(days=1),
    EVENT: Way(WaitKind.EVENT),
    f"{EVENT}, not yet due": Way(WaitKind.EVENT, days=2, route="Late"),
    f"{EVENT}, due": Way(WaitKind.EVENT, days=1, route="Late"),
    f"{EVENT}, due, no route": Way(WaitKind.EVENT, days=1),
    f"{TIMER}, not yet due": Way(WaitKind.TIMER, days=2),
    f"{TIMER}, due": Way(WaitKind.TIMER, days=1),
    "failed": Way(calls=(approve,), execute=decline),
    "cancelled": Way(deadline=timedelta(0)),
    "resumed by an answer": Way(calls=(approve,), policy=CheckpointPolicy.BOUNDARIES),
    "resumed by a timer": Way(WaitKind.TIMER, days=1, calls=(wake,), policy=CheckpointPolicy.BOUNDARIES),
    "running, no live lease": _DEAD,
    "running, live lease": attrs.evolve(_DEAD, is_held=True),
    "running, answered, no live lease": _DEAD_LATER,
    "running, answered, live lease": attrs.evolve(_DEAD_LATER, is_held=True),
    "completed": Way(WaitKind.EVENT, calls=(pay,), completes=True),
    "completed, answered": Way(calls=(approve,), completes=True),
    "ended": Way(calls=(end,)),
}
"""How the thread of each row comes to stand there."""


@attrs.frozen
class Thread:
    """A thread: its checkpoints, oldest first, and whether another process holds it."""

    log: tuple[Checkpoint, ...]
    is_held: bool = False

    def with_latest(self, **changes: Any) -> Thread:
        """Return it with another latest checkpoint."""
        return attrs.evolve(self, log=(*self.log[:-1], attrs.evolve(self.log[-1], **changes)))


def _proceed(state: Any) -> str:
    return "Execute"


def build(policy: CheckpointPolicy, clock: Any, way: Way | None = None) -> Any:
    """Compile the graph that meets the threads; with a way the one, an earlier version, that brings a thread there."""
    identity = IDENTITY if way is None else attrs.evolve(IDENTITY, version="1")
    way = way or Way()
    graph: Any = StateGraph(dict)
    graph.add_node("Prepare", way.prepare or partial(commit, "Prepare"))
    graph.add_node("Execute", way.execute or partial(commit, "Execute"))
    graph.add_node("Reject", partial(commit, "Reject")).add_node("Late", partial(commit, "Late"))
    graph.add_conditional_edge("Prepare", _proceed, ["Execute", "Reject", "Late"])
    days = None if way.days is None else timedelta(way.days)
    if way.wait is WaitKind.PERSON:
        graph.add_interrupt_boundary("Prepare", on_reject="Reject", timeout=days, on_timeout=way.route)
    elif way.wait is WaitKind.EVENT:
        graph.add_wait_for_event("Prepare", "paid", timeout=days, on_timeout=way.route)
    else:
        graph.add_timer("Prepare", days)
    return graph.compile(
        identity=identity, checkpointing=policy, clock=clock, completion_record=way.completes, owner="worker-2"
    )


@cache
def threads(policy: CheckpointPolicy) -> dict[str, Thread]:
    """Return the threads that a graph of this policy meets, by what the page calls them."""
    return asyncio.run(_reach(policy))


async def _reach(policy: CheckpointPolicy) -> dict[str, Thread]:
    found = {}
    for name, way in WAYS.items():
        log: tuple[Checkpoint, ...] = ()
        if way is not None:
            clock = FakeClock()
            graph = build(way.policy or policy, clock, way)
            async with RowStore(MemoryBackend(clock)) as store:
                with suppress(DiedError):
                    await graph.run(name, BEGUN, store, metadata=METADATA, deadline=way.deadline)
                    if way.calls == (wake,):
                        clock.advance(DAY)
                    for call in way.calls:
                        await call(graph, store, name)
                log = tuple(entry.checkpoint for entry in (await store.get_log(name)).entries)
        found[name] = Thread(log, way is not None and way.is_held)
    return found
