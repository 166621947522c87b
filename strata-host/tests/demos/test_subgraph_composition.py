"""Demo 13: a boundary inside a subgraph pauses the whole thread."""

from __future__ import annotations

import re

import pytest

from strata_core import HumanSignal, LevelSignals


@pytest.fixture
def subgraphs(demo):
    return demo("13-subgraph-composition")


def test_its_readme_says_what_it_prints(subgraphs):
    assert subgraphs.readme("text") == subgraphs.call()


def test_it_runs_on_a_store_of_the_user_under_ids_of_its_own(subgraphs, shelf):
    shown = subgraphs.call("--storage", shelf.url)

    assert subgraphs.readme("text") != shown
    assert subgraphs.readme("text") == re.sub(r"(order-\d)-\w+", r"\1", shown)


def test_it_fails_when_the_outer_levels_are_not_corrected(subgraphs, monkeypatch):
    monkeypatch.setattr(LevelSignals, "with_outer", lambda signal, path, key, value: signal)

    shown = subgraphs.call(fails="The demo failed; expected: order-1 completed: Acme Corp, urgent")

    assert "order-1 completed: Acme Corp, shipped" in shown


def test_it_fails_when_a_rejection_counts_as_an_approval(subgraphs, monkeypatch):
    monkeypatch.setattr(HumanSignal, "reject", HumanSignal.approve)

    shown = subgraphs.call(fails="The demo failed; expected: order-2 completed: Globex, shipped; struck by bob@acme.io")

    assert "order-2 completed: Globex, shipped; 'Globex pays 90, in 30 days' accepted by bob@acme.io" in shown
