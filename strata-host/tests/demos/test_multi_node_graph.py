"""Demo 04: several nodes update one state in turn."""

from __future__ import annotations

import re

import pytest

from strata_core import StateGraph


@pytest.fixture
def article(demo):
    return demo("04-multi-node-graph")


def test_its_readme_says_what_it_prints(article):
    assert article.readme("text") == article.call()


def test_it_runs_on_a_store_of_the_user_under_an_id_of_its_own(article, shelf):
    shown = article.call("--storage", shelf.url)

    assert article.readme("text") != shown
    assert article.readme("text") == re.sub(r"article-1-\w+", "article-1", shown)


def test_it_fails_when_the_editor_sends_nothing_back(article, monkeypatch):
    monkeypatch.setattr(
        StateGraph, "add_conditional_edge", lambda graph, source, router, targets: graph.add_edge(source, "Publish")
    )

    shown = article.call(fails="The demo failed; expected: article-1 completed: Tides: the moon pulls, the sun")

    assert shown.endswith("Tides: the moon pulls. (1 drafts)\n")


def test_it_fails_when_a_step_leaves_no_row(article, shelf, monkeypatch):
    """Without a row a step the log cannot tell what each node changed."""
    compile_graph = StateGraph.compile
    monkeypatch.setattr(
        StateGraph,
        "compile",
        lambda graph, **options: compile_graph(graph, identity=options["identity"], completion_record=True),
    )

    article.call(fails="The demo failed; expected: Research: facts")
