"""Demo 10: a group and its reducer, and a map."""

from __future__ import annotations

import re

import pytest

from strata_core import StateGraph


@pytest.fixture
def fan_out(demo):
    return demo("10-parallel-fan-out")


def test_its_readme_says_what_it_prints(fan_out):
    assert fan_out.readme("text") == fan_out.call()


def test_it_runs_on_a_store_of_the_user_under_an_id_of_its_own(fan_out, shelf):
    shown = fan_out.call("--storage", shelf.url)

    assert fan_out.readme("text") != shown
    assert fan_out.readme("text") == re.sub(r"order-1-\w+", "order-1", shown)


def test_it_fails_when_results_come_in_another_order(fan_out, monkeypatch):
    add_group = StateGraph.add_parallel_group

    def backwards(graph, name, branches, reducer, **options):
        return add_group(graph, name, branches, lambda before, results: reducer(before, results[::-1]), **options)

    monkeypatch.setattr(StateGraph, "add_parallel_group", backwards)

    shown = fan_out.call(fails="The demo failed; expected: order-1 completed: credit is good, all in stock, no fraud")

    assert "order-1 completed: no fraud, all in stock, credit is good" in shown


def test_it_fails_when_more_run_at_once_than_may(fan_out, monkeypatch):
    add_map = StateGraph.add_map
    monkeypatch.setattr(
        StateGraph, "add_map", lambda graph, *args, **options: add_map(graph, *args, **options | {"max_concurrency": 4})
    )

    shown = fan_out.call(fails="The demo failed; expected: at most 2 at once")

    assert shown.endswith("at most 4 at once\n")
