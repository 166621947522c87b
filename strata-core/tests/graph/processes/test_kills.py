"""Runs whose process is killed: finished by others, once, and nothing that was committed is done again."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest
from process_support import STEPS, finish, start, with_store

from strata_core import ThreadQuery, ThreadState

SOAK = os.environ.get("STRATA_SOAK") == "1"
AT_ONCE = 10
"""How many runs go on in a process that is killed."""


def kill_at(effect: int, url: str, name: str) -> list[list[str]]:
    """Kill a process that runs threads right after so many effects, and return all that it has said."""
    process = start("run_until_killed.py", url, name, AT_ONCE, 1)
    assert process.stdout is not None
    assert process.stderr is not None
    said = []
    for line in process.stdout:
        if line != "over\n":
            said.append(line)
        if len(said) == effect or line == "over\n":
            process.send_signal(signal.SIGKILL)
    errors = process.stderr.read()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()  # type: ignore[union-attr]

    assert (-signal.SIGKILL, "") == (process.returncode, errors)
    return [line.split() for line in said if line.endswith("\n")]


async def standing(store: Any) -> dict[str, str]:
    """Return the node that each running thread is at."""
    found: dict[str, str] = {}
    query = ThreadQuery(states={ThreadState.RUNNING}, limit=1000)
    while True:
        page = await store.list_threads(query)
        found |= {thread.thread_id: thread.next_node for thread in page.threads}
        if page.next_cursor is None:
            return found
        query = attrs.evolve(query, cursor=page.next_cursor)


@pytest.mark.soak
def test_every_killed_run_is_finished_once_and_only_what_ran_at_the_kill_is_done_twice(url: str) -> None:
    kills = 500 if SOAK else 100 if url.startswith("sqlite:") else 40
    seeded = random.Random(20261130)
    said: list[list[str]] = []
    killed: dict[str, str] = {}
    with ThreadPoolExecutor(2) as pool:
        while len(killed) < kills:
            moments = [seeded.randint(1, AT_ONCE * len(STEPS) - 1) for _ in range((kills - len(killed)) // AT_ONCE + 1)]
            for lines in pool.map(kill_at, moments, [url] * len(moments), [f"p{seeded.random()}" for _ in moments]):
                said += lines
            killed = with_store(url, standing)
    for recoverer in [start("recover_until_done.py", url) for _ in range(3)]:
        said += [line.split() for line in finish(recoverer)]
    effects = [(thread_id, node, key) for what, thread_id, node, *rest in said if what == "effect" for key in rest]
    results = [(thread_id, kind) for what, thread_id, kind, *_ in said if what == "result"]

    assert {"effect", "result"} == {what for what, *_ in said}
    assert {"Completed"} == {kind for _, kind in results}
    assert {1} == set(Counter(results).values()), "each was finished by one process"
    assert killed.keys() <= {thread_id for thread_id, _ in results}
    done = Counter((thread_id, node) for thread_id, node, _ in effects)
    assert {(thread_id, node) for (thread_id, node), times in done.items() if times > 1} <= killed.items()
    assert {1, 2} == set(done.values()), "some were killed in a node that had begun"
    keys = {(thread_id, node): key for thread_id, node, key in effects}
    assert set(effects) == {(*visit, key) for visit, key in keys.items()}, "what is done twice gives the same key"
    assert len(keys) == len(set(keys.values()))

    async def check(store: Any) -> None:
        steps = [("running", list(STEPS[:n])) for n in range(len(STEPS))]
        for thread_id, node in killed.items():
            entries = (await store.get_log(thread_id)).entries
            rows = [(entry.checkpoint.status.value, entry.checkpoint.frozen_state["done"]) for entry in entries]
            at = STEPS.index(node)

            assert [*steps[: at + 1], *steps[at:], ("completed", list(STEPS))] == rows

    with_store(url, check)
