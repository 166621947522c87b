"""Demo 05: transfers wait for a person while the process restarts."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def hitl(demo):
    return demo("05-hitl-interruption")


def test_the_command_of_its_readme_prints_what_the_readme_says(hitl):
    assert hitl.readme("text") == hitl.run().stdout


def test_it_runs_on_a_store_of_the_user_under_ids_of_its_own(hitl, shelf):
    shown = hitl.run("--storage", shelf.url).stdout

    assert hitl.readme("text") != shown
    assert hitl.readme("text") == re.sub(r"(wire-\w+)-\w+", r"\1", shown)


def test_it_fails_when_a_text_passes_for_a_number(hitl):
    lenient = """
from strata_core import HumanSignal
HumanSignal.with_field_override = lambda signal, key, text: signal.with_override(key, float(text))
"""
    done = hitl.run(code=1, before=lenient)

    assert done.stdout.endswith("wire-acme completed: 4150.25 to Acme Corp, sent, approved by jdoe@acme.io\n")
    assert "The demo failed; expected: wire-acme refused, invalid_signal" in done.stderr
