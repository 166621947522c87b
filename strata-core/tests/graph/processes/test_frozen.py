"""Processes that are stopped for longer than their leases live, and go on: they write nothing any more."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from process_support import Order, finish, lease_runs_out, start, with_store

from strata_core import CheckpointPolicy, Completed, StateGraph

GRAPH = (
    StateGraph(Order)
    .add_node("Freeze", lambda order: order)
    .add_node("Last", lambda order: order)
    .add_edge("Freeze", "Last")
    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, owner="the other one")
)


@contextmanager
def frozen(url: str, kind: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped in its first node."""
    process = start("freeze.py", url, kind)
    assert process.stdout is not None
    assert "frozen\n" == process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def thaw(process: subprocess.Popen[str]) -> list[str]:
    process.send_signal(signal.SIGCONT)
    assert process.stdin is not None
    process.stdin.write("go on\n")
    return finish(process)


@pytest.mark.parametrize("kind", ["await", "thread", "loop"])
def test_a_frozen_run_ends_at_once_when_it_thaws_and_writes_nothing(url: str, kind: str) -> None:
    async def recover(store: Any) -> Any:
        await lease_runs_out(store, "t")
        return await GRAPH.recover("t", store), await store.get_log("t")

    async def read(store: Any) -> Any:
        return await store.get_log("t")

    with frozen(url, kind) as process:
        result, before = with_store(url, recover)

        assert Completed("t", Order()) == result
        assert ["Cancelled lease_lost"] == thaw(process)
    assert before == with_store(url, read)
    assert ["running", "running", "running", "completed"] == [e.checkpoint.status.value for e in before.entries]


@pytest.mark.parametrize("taken", [True, False])
def test_a_frozen_process_can_neither_save_nor_renew_nor_release(url: str, taken: bool) -> None:
    async def check(store: Any) -> None:
        await lease_runs_out(store, "t")
        lease = None
        if taken:
            lease = await store.acquire_lease("t", owner="the other one", ttl=timedelta(minutes=1))
            assert lease is not None
        before = await store.get_log("t")
        said = await asyncio.to_thread(thaw, process)

        assert ["save lost", "renew lost", "release done"] == said
        assert before == await store.get_log("t")
        assert lease == await store.live_lease("t")

    with frozen(url, "lease") as process:
        with_store(url, check)
