"""Demo 20: a process is killed in the middle of a step, and another one finishes what it had begun."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def durable(demo):
    return demo("20-durable-execution")


def test_the_command_of_its_readme_prints_what_the_readme_says(durable):
    assert durable.readme("text") == durable.run().stdout


def test_it_runs_on_a_store_of_the_user_under_an_id_of_its_own(durable, shelf):
    shown = durable.run("--storage", shelf.url).stdout

    assert durable.readme("text") == re.sub(r"order-1-\w+", "order-1", shown)


def test_it_fails_when_the_process_is_asked_to_stop_instead_of_killed(durable):
    done = durable.run(code=1, before="import subprocess; subprocess.Popen.kill = subprocess.Popen.terminate")

    assert "exit code -15" in done.stdout
    assert "The demo failed; expected: exit code -9" in done.stderr


def test_it_needs_a_store_that_two_processes_can_open(durable):
    assert "lives in one process" in durable.run("--storage", "memory://x", code=2).stderr
