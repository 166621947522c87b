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
from process_support import DOINGS, STEPS, finish, start, with_store

from strata_core import ThreadQuery, ThreadState

SOAK = os.environ.get("STRATA_SOAK") == "1"
AT_ONCE = 10
"""How many runs go on in a process that is killed."""


def kill_at(effect: int, url: str, name: str, kind: str = "shop") -> list[list[str]]:
    """Kill a process that runs threads right after so many effects, and return all that it has said."""
    process = start("run_until_killed.py", url, name, AT_ONCE, 1, kind)
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
    results = [(thread_id, " ".join(kind)) for what, thread_id, *kind in said if what == "result"]

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


AROUND = {"In": {"In"}, "Inner/Deep": {"Deep"}, "Inner/Deeper": {"Deeper"}, "Group": {"Left", "Right"},
          "Map": {"Each0", "Each1"}, "Out": {"Out"}, "Last": {"Last"}}  # fmt: skip
"""What is done at each place where a thread of the nested graph can stand."""


AT = {place: place.partition("/")[0] for place in AROUND}
WANTED = {"Inner", "Group", "Map"}
"""Where threads must have been killed: two levels deep, in the group, and in the map."""
MOMENTS = (25, 42, 62)
"""After so many effects of ten threads that go on side by side, most are there."""


async def places(store: Any) -> dict[str, str]:
    """Return the innermost place that each running thread of the nested graph is at."""
    found = {}
    for thread_id in await standing(store):
        level = (await store.load(thread_id)).checkpoint
        path = [level.next_node]
        while level.nested is not None:
            level = level.nested
            path.append(level.next_node)
        # A subgraph that has just been begun, or has come to its end, has no checkpoint of its own.
        place = "/".join(path).removeprefix("Work/")
        found[thread_id] = {"Work": "Inner/Deep", "Inner": "Inner/Deep"}.get(place, place)
    return found


def test_a_run_that_is_killed_inside_a_graph_goes_on_inside_and_only_what_ran_there_is_done_twice(url: str) -> None:
    if not url.startswith("sqlite:"):
        pytest.skip("where a thread goes on is told by its rows, which every store keeps alike")
    said: list[list[str]] = []
    for attempt, moment in enumerate(MOMENTS * 5):
        said += kill_at(moment, url, f"at-{attempt}", "nested")
        killed = with_store(url, places)
        if attempt + 1 >= len(MOMENTS) and WANTED <= {AT[place] for place in killed.values()}:
            break  # a machine with much to do may have killed one later than at its moment
    said += [line.split() for line in finish(start("recover_until_done.py", url, "nested"))]
    effects = Counter((thread_id, name) for what, thread_id, name, *_ in said if what == "effect")
    results = [(thread_id, " ".join(kind)) for what, thread_id, *kind in said if what == "result"]

    assert 10 <= len(killed)
    assert set(killed.values()) <= AROUND.keys()
    assert WANTED <= {AT[place] for place in killed.values()}
    assert {(thread_id, "Completed") for thread_id in killed} == set(results)
    assert len(results) == len(killed), "each was finished once"
    twice = {(thread_id, name) for (thread_id, name), times in effects.items() if times > 1}
    assert twice
    assert twice <= {(thread_id, name) for thread_id, place in killed.items() for name in AROUND[place]}
    assert {1, 2} == set(effects.values())

    async def check(store: Any) -> None:
        for thread_id in killed:
            done = (await store.load(thread_id)).checkpoint.frozen_state["done"]

            assert list(DOINGS) == done

    with_store(url, check)
