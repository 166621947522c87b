"""`strata checkpoint diff`."""

from __future__ import annotations

import pytest

BEFORE = {"amount": 4200.5, "items": [1, {"a": 1, "b": 2}], "gone": None, "same": "x", "flag": 1, "whole": 1}
AFTER = {
    "same": "x",
    "amount": 4150.25,
    "items": [1, {"b": 2, "a": 1}],
    "new field": {"deep": ["é"]},
    "flag": True,
    "whole": 1.0,
}


@pytest.fixture(autouse=True)
def _two(shelf, checkpoint):
    shelf.save(checkpoint(frozen_state=BEFORE), checkpoint(frozen_state=AFTER))


def test_fields_are_added_removed_and_changed(look):
    assert [
        '+ "new field": {"deep": ["é"]}',
        "- gone: null",
        "~ amount: 4200.5 -> 4150.25",
        "~ flag: 1 -> true",
        "~ whole: 1 -> 1.0",
    ] == look("checkpoint", "diff", "report-1", "--seq-a", "0", "--seq-b", "1").stdout.splitlines()


def test_the_order_of_the_two_is_that_of_the_options(look):
    shown = look("checkpoint", "diff", "report-1", "--seq-b", "0", "--seq-a", "1").stdout

    assert "+ gone: null" in shown
    assert "~ amount: 4150.25 -> 4200.5" in shown


def test_nothing_changed_is_said(look):
    shown = look("checkpoint", "diff", "report-1", "--seq-a", "1", "--seq-b", "1").stdout

    assert shown == "no field of the state differs\n"


def test_json_keeps_the_values(look_json):
    assert {
        "thread_id": "report-1",
        "seq_a": 0,
        "seq_b": 1,
        "added": {"new field": {"deep": ["é"]}},
        "removed": {"gone": None},
        "changed": {
            "amount": {"a": 4200.5, "b": 4150.25},
            "flag": {"a": 1, "b": True},
            "whole": {"a": 1, "b": 1.0},
        },
    } == look_json("checkpoint", "diff", "report-1", "--seq-a", "0", "--seq-b", "1")


def test_a_checkpoint_that_is_not_there_is_named_with_the_latest(look):
    error = look("checkpoint", "diff", "report-1", "--seq-a", "0", "--seq-b", "7", code=1).stderr

    assert error == "strata: thread report-1 has no checkpoint #7; its latest is #1\n"


def test_an_unknown_thread_is_not_found(look):
    error = look("checkpoint", "diff", "nobody", "--seq-a", "0", "--seq-b", "1", code=1).stderr

    assert error == "strata: there is no thread nobody\n"


@pytest.mark.parametrize("option", [[], ["--seq-b", "-1"], ["--seq-b", "last"]])
def test_a_sequence_that_is_missing_or_no_count_is_wrong_usage(look, option):
    assert "'--seq-b'" in look("checkpoint", "diff", "report-1", "--seq-a", "0", *option, code=2).stderr
