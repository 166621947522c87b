"""`strata checkpoint replay`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from strata_core import FileSystemBlobStore, Offload
from strata_core.records import CheckpointStatus, HumanDecision

AT = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _three(shelf, checkpoint):
    decision = HumanDecision("Draft", False, "jdoe", AT)
    shelf.save(
        checkpoint(frozen_state={"step": 1}),
        checkpoint(status=CheckpointStatus.RUNNING, frozen_state={"step": 2}, next_node="Cancel", decision=decision),
        checkpoint(
            status=CheckpointStatus.COMPLETED,
            frozen_state={"step": 3},
            suspended_node="Cancel",
            next_node=None,
            decision=decision,
        ),
    )


def test_a_checkpoint_shows_state_decision_and_the_node_to_resume_at(look):
    assert [
        "thread:     report-1",
        "checkpoint: #1",
        "status:     running",
        "node:       Draft",
        "resumes at: Cancel",
        "decision:   rejected at Draft by jdoe, 2026-10-30T14:49:52Z",
        "state:",
        "{",
        '  "step": 2',
        "}",
    ] == look("checkpoint", "replay", "report-1", "--sequence", "1").stdout.splitlines()


def test_an_earlier_checkpoint_knows_nothing_of_later_ones(look_json):
    shown = look_json("checkpoint", "replay", "report-1", "--sequence", "0")

    assert ({"step": 1}, "Review", None) == (shown["frozen_state"], shown["next_node"], shown["decision"])


def test_a_finished_thread_resumes_nowhere(look, look_json):
    assert "resumes at: -\n" in look("checkpoint", "replay", "report-1", "--sequence", "2").stdout
    assert {
        "thread_id": "report-1",
        "sequence": 2,
        "status": "completed",
        "suspended_node": "Cancel",
        "next_node": None,
        "decision": {
            "boundary": "Draft",
            "approved": False,
            "reviewer": "jdoe",
            "decided_at": "2026-10-30T14:49:52.000000Z",
        },
        "frozen_state": {"step": 3},
        "nested": None,
    } == look_json("checkpoint", "replay", "report-1", "--sequence", "2")


def test_a_sequence_past_the_end_is_not_found(look):
    error = look("checkpoint", "replay", "report-1", "--sequence", "3", code=1).stderr

    assert error == "strata: thread report-1 has no checkpoint #3; its latest is #2\n"


def test_a_sequence_past_the_end_is_not_found_either_when_the_blobs_are_elsewhere(shelf, look, checkpoint, tmp_path):
    blobs = FileSystemBlobStore(tmp_path / "blobs")
    shelf.save(checkpoint(frozen_state={"step": "x" * 100}), offload=Offload(threshold=50, blobs=blobs))
    error = look("checkpoint", "replay", "report-1", "--sequence", "99", code=1).stderr

    assert error == "strata: thread report-1 has no checkpoint #99; its latest is #3\n"
    assert (
        "which the blob store doesn't have"
        in look("checkpoint", "replay", "report-1", "--sequence", "3", code=1).stderr
    )


def test_the_sequence_must_be_given(look):
    assert "missing option '--sequence'" in look("checkpoint", "replay", "report-1", code=2).stderr


def test_a_thread_that_stopped_inside_a_subgraph_resumes_there(shelf, look, checkpoint):
    inner = checkpoint(suspended_node="Approve", next_node="Send")
    shelf.save(checkpoint(suspended_node="Work", next_node="Work", nested=inner))
    shown = look("checkpoint", "replay", "report-1", "--sequence", "3").stdout.splitlines()

    assert "node:       Work / Approve" in shown
    assert "resumes at: Work / Send" in shown
