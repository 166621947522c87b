"""`strata checkpoint log`."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from strata_core.blobs import FileSystemBlobStore
from strata_core.codec import decode_record
from strata_core.options import Deltas, Offload
from strata_core.records import CheckpointStatus, HumanDecision

AT = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
EVIDENCE = "a" * 100_000
HASH = f"sha256:{hashlib.sha256(json.dumps(EVIDENCE).encode()).hexdigest()}"
NODES = [None, "Gather", "Analyse", "Draft", "Review", None]


@pytest.fixture
def report(checkpoint):
    """The five checkpoints of a run whose second node adds a large value."""
    return [
        checkpoint(
            status=CheckpointStatus.RUNNING if NODES[step + 1] else CheckpointStatus.COMPLETED,
            frozen_state={"evidence": EVIDENCE if step else "", "step": step},
            suspended_node=NODES[step],
            next_node=NODES[step + 1],
        )
        for step in range(5)
    ]


@pytest.fixture
def blobs(tmp_path, shelf, report):
    """A folder with the blobs of that run, whose rows are in the store."""
    folder = tmp_path / "blobs"
    shelf.save(*report, deltas=Deltas(), offload=Offload(blobs=FileSystemBlobStore(folder)))
    return folder


TIMELINE = """\
#0    [running] node=- -> Gather at=2026-10-30T14:49:52Z
#1    [running] node=Gather -> Analyse at=2026-10-30T14:49:52Z
#2    [running] node=Analyse -> Draft at=2026-10-30T14:49:52Z
#3    [running] node=Draft -> Review at=2026-10-30T14:49:52Z
#4    [completed] node=Review -> - at=2026-10-30T14:49:52Z
"""


class TestText:
    def test_the_timeline_has_one_line_per_checkpoint(self, look, blobs):
        assert look("checkpoint", "log", "report-1", "--blobs", str(blobs)).stdout == TIMELINE

    def test_blobs_in_the_own_database_need_no_option(self, shelf, look, report):
        shelf.save(*report, deltas=Deltas(), offload=Offload())

        assert look("checkpoint", "log", "report-1").stdout == TIMELINE

    def test_the_folder_may_come_from_the_environment(self, look, blobs):
        assert look("checkpoint", "log", "report-1", STRATA_BLOBS=str(blobs)).stdout == TIMELINE

    def test_sequences_align_up_to_four_digits(self, shelf, look, checkpoint):
        shelf.save(*(checkpoint(frozen_state={}) for _ in range(11)))

        assert ["#9    [", "#10   ["] == [
            line.split("inter")[0] for line in look("checkpoint", "log", "report-1").stdout.splitlines()[-2:]
        ]

    def test_a_row_that_was_resumed_says_when(self, shelf, look, checkpoint):
        shelf.save(checkpoint(), checkpoint(resumed_at=AT + timedelta(days=2)))

        assert [
            "#0    [interrupted] node=Draft -> Review at=2026-10-30T14:49:52Z",
            "#1    [interrupted] node=Draft -> Review at=2026-10-30T14:49:52Z resumed=2026-11-01T14:49:52Z",
        ] == look("checkpoint", "log", "report-1").stdout.splitlines()

    def test_a_row_says_who_decided_and_who_recovered_or_ended_the_thread(self, shelf, look, checkpoint):
        def decided(approved, who):
            return HumanDecision("Draft", approved, who, AT)

        inner = checkpoint(suspended_node="Sign", decision=decided(False, "bob@acme.io"))
        shelf.save(
            checkpoint(decision=decided(True, "ann@acme.io")),
            checkpoint(decision=decided(True, "Ann B"), metadata={"strata.recovered_by": "worker-2"}),
            checkpoint(nested=inner, metadata={"strata.cancel_reason": "deadline"}),
            checkpoint(status=CheckpointStatus.ENDED, next_node=None, metadata={"strata.ended_by": "ops\x1b[31m"}),
        )
        at = "at=2026-10-30T14:49:52Z"

        assert [
            f"#0    [interrupted] node=Draft -> Review {at} decision=approved by=ann@acme.io",
            f'#1    [interrupted] node=Draft -> Review {at} decision=approved by="Ann B" recovered-by=worker-2',
            f"#2    [interrupted] node=Draft -> Review {at} decision=rejected by=bob@acme.io in=Draft reason=deadline",
            f'#3    [ended] node=Draft -> - {at} ended-by="ops\\u001b[31m"',
        ] == look("checkpoint", "log", "report-1").stdout.splitlines()

    def test_every_page_of_a_long_log_is_read(self, shelf, look, look_json, checkpoint):
        async def work(store):
            for number in range(205):
                await store.save(checkpoint(frozen_state={"step": number}))

        shelf.write(work)

        assert 205 == len(look("checkpoint", "log", "report-1").stdout.splitlines())
        assert list(range(205)) == [
            entry["checkpoint"]["frozen_state"]["step"]
            for entry in look_json("checkpoint", "log", "report-1")["checkpoints"]
        ]

    def test_an_unknown_thread_is_not_found(self, look):
        for option in ([], ["--json"]):
            result = look("checkpoint", "log", "nobody", *option, code=1)

            assert ("", "strata: there is no thread nobody\n") == (result.stdout, result.stderr)


class TestMissingBlob:
    def test_the_checkpoint_the_blob_and_the_field_are_named(self, look, blobs):
        result = look("checkpoint", "log", "report-1", code=1)

        assert result.stdout == ""
        assert (
            f"strata: query failed: checkpoint 'report-1' #1 refers to blob {HASH} at 'evidence', "
            "which the blob store doesn't have\n"
        ) == result.stderr

    def test_a_folder_that_does_not_exist_is_wrong_usage_and_is_not_created(self, look, blobs, tmp_path):
        missing = tmp_path / "blosb"
        error = look("checkpoint", "log", "report-1", "--blobs", str(missing), code=2).stderr

        assert error.startswith(f"strata: invalid value for '--blobs': '{missing}' is not a folder")
        assert not missing.exists()


class TestJson:
    def test_each_checkpoint_is_a_whole_record_however_it_is_stored(self, look, blobs, report):
        document = json.loads(look("checkpoint", "log", "report-1", "--blobs", str(blobs), "--json").stdout)

        assert "report-1" == document["thread_id"]
        assert list(enumerate(report)) == [
            (entry["sequence"], decode_record(entry["checkpoint"])) for entry in document["checkpoints"]
        ]
