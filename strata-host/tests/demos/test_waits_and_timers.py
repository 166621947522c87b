"""Demo 19: orders wait for an event, for a person, and for a time."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def waits(demo):
    return demo("19-waits-and-timers")


def test_the_command_of_its_readme_prints_what_the_readme_says(waits):
    assert waits.readme("text") == waits.run().stdout


def test_it_runs_on_a_store_of_the_user_under_ids_of_its_own(waits, shelf):
    shown = waits.run("--storage", shelf.url).stdout

    assert waits.readme("text") != shown
    assert waits.readme("text") == re.sub(r"(order-\d)-\w+", r"\1", shown)


def test_it_fails_when_time_stands_still(waits):
    done = waits.run(code=1, before="import strata_core.testing as t; t.FakeClock.advance = lambda clock, by: None")

    assert done.stdout.endswith("01 January: nothing is due\n")
    assert "The demo failed; expected: 02 January: nothing is due" in done.stderr
