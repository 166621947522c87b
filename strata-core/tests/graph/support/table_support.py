"""The calls that CALLS.md speaks of, and what its exceptions change before they are made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import attrs
from threads_support import BEGUN, EVENT, METADATA, PAID, PERSON, TIMER, Call, Thread, end, pay, threads, wake

from strata_core.graph import CheckpointPolicy, HumanSignal, LevelSignals
from strata_core.records import CheckpointStatus, GraphIdentity


def _held(name: str, policy: CheckpointPolicy) -> Thread:
    return attrs.evolve(threads(policy)[name], is_held=True)


def _foreign(name: str, policy: CheckpointPolicy) -> Thread:
    return threads(policy)[name].with_latest(graph=GraphIdentity("orders", "2"))


def _anonymous(name: str, policy: CheckpointPolicy) -> Thread:
    return threads(policy)[name].with_latest(graph=None)


def _gone(name: str, policy: CheckpointPolicy) -> Thread:
    thread = threads(policy)[name]
    wait = thread.log[-1].wait
    if wait is not None and wait.on_timeout is not None:
        return thread.with_latest(wait=attrs.evolve(wait, on_timeout="Gone"))
    return thread.with_latest(next_node="Gone")


def _packed(name: str, policy: CheckpointPolicy) -> Thread:
    thread = threads(policy)[name]
    wait = thread.log[-1].wait
    assert wait is not None
    return thread.with_latest(wait=attrs.evolve(wait, event_type="packed"))


def _elsewhere(name: str, policy: CheckpointPolicy) -> Thread:
    (other,) = set(CheckpointPolicy) - {policy}
    return threads(other)[name]


CHANGES: Final[Mapping[str, tuple[Callable[[str, CheckpointPolicy], Thread], tuple[str, ...]]]] = {
    "Somebody holds a live lease on a thread that is not running": (
        _held,
        (PERSON, f"{PERSON}, due", f"{PERSON}, due, no route", EVENT, f"{TIMER}, due", "failed",
         "resumed by an answer", "completed"),
    ),
    "It is the thread of another graph": (
        _foreign,
        (PERSON, f"{TIMER}, due", "running, no live lease", "completed"),
    ),
    "Its rows carry no graph ID": (_anonymous, (f"{TIMER}, due", "running, no live lease")),
    "The node where it goes on is gone": (
        _gone,
        (f"{PERSON}, due", PERSON, EVENT, f"{TIMER}, due", "failed", "running, no live lease"),
    ),
    "It waits for an event of another type": (_packed, (f"{EVENT}, due",)),
    "It failed under the other policy": (_elsewhere, ("failed",)),
}  # fmt: skip
"""How the exceptions change threads, and on which they are tried."""


async def put(store: Any, thread_id: str, thread: Thread) -> None:
    """Store a thread; a running one with the lease of the process that died."""
    for checkpoint in thread.log:
        row = attrs.evolve(checkpoint, thread_id=thread_id)
        if checkpoint is thread.log[-1] and row.status is CheckpointStatus.RUNNING:
            ttl = timedelta(seconds=30)
            assert await store.acquire_lease(thread_id, owner="worker-1", ttl=ttl, save=row) is not None
        else:
            await store.save(row)


async def hold(store: Any, thread_id: str) -> None:
    """Let another process hold a thread."""
    assert await store.acquire_lease(thread_id, owner="worker-3", ttl=timedelta(hours=1)) is not None


async def _sweep(sweep: Awaitable[Any]) -> dict[str, Any]:
    report = await sweep
    assert report.is_complete
    assert not report.errors
    assert report.results.keys().isdisjoint(report.refused)
    return {**report.results, **report.refused}


SINGLE: Final[Mapping[str, Call]] = {
    "run": lambda graph, store, name: graph.run(name, BEGUN, store, metadata=METADATA),
    'if_exists="error"': lambda graph, store, name: graph.run(name, BEGUN, store, metadata=METADATA, if_exists="error"),
    "HumanSignal.approve": lambda graph, store, name: graph.resume(name, HumanSignal.approve("bob"), store),
    "HumanSignal.reject": lambda graph, store, name: graph.resume(name, HumanSignal.reject("bob"), store),
    "None": lambda graph, store, name: graph.resume(name, None, store),
    "signal": pay,
    "LevelSignals.event": lambda graph, store, name: graph.resume(name, LevelSignals.event(PAID), store),
    "LevelSignals.due": wake,
    "end": end,
    "recover": lambda graph, store, name: graph.recover(name, store),
}
"""The calls of one thread, by what the page calls them."""

SWEEPS: Final[Mapping[str, Callable[[Any, Any], Awaitable[dict[str, Any]]]]] = {
    "wake_due": lambda graph, store: _sweep(graph.wake_due(store, limit=1000)),
    "recover_all": lambda graph, store: _sweep(graph.recover_all(store, limit=1000)),
}
"""The calls of all threads of a store."""

CALLS: Final = (*SINGLE, *SWEEPS)


async def make(call: str, graph: Any, store: Any, names: list[str]) -> dict[str, Any]:
    """Make a call of every thread, and return what it comes to; nothing for threads that it passes over."""
    if call in SWEEPS:
        return await SWEEPS[call](graph, store)
    found = await asyncio.gather(*(SINGLE[call](graph, store, name) for name in names))
    return dict(zip(names, found, strict=True))
