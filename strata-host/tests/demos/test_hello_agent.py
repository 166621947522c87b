"""Demo 01: the smallest typed state."""

from __future__ import annotations

import re

import pytest

from strata_core import CompiledGraph, Completed


@pytest.fixture
def hello(demo):
    return demo("01-hello-agent")


def test_the_command_of_its_readme_prints_what_the_readme_says(hello):
    assert hello.readme("text") == hello.run().stdout


def test_it_runs_on_a_store_of_the_user_under_ids_of_its_own(hello, shelf):
    shown = hello.call("--storage", shelf.url)

    assert hello.readme("text") != shown
    assert hello.readme("text") == re.sub(r"(hello|mistake)-\w+", r"\1", shown)


def test_it_fails_when_a_state_of_the_wrong_type_passes(hello, monkeypatch):
    run = CompiledGraph.run

    async def lenient(graph, thread_id, state, *args, **options):
        if state.name == "nobody":
            return Completed(thread_id, state)
        return await run(graph, thread_id, state, *args, **options)

    monkeypatch.setattr(CompiledGraph, "run", lenient)

    shown = hello.call(fails="The demo failed; expected: mistake failed at Greet, invalid_state")

    assert shown.endswith("mistake completed: \n")
