"""`strata thread inspect`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from strata_core.codec import decode_record
from strata_core.records import CheckpointStatus, GraphIdentity, HumanDecision, Wait, WaitKind

AT = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
DECISION = HumanDecision("Approve", True, "jdoe@acme.io", AT, {"amount": 4150.25})


class TestText:
    def test_everything_about_a_thread_is_shown(self, shelf, look, checkpoint):
        shelf.save(
            checkpoint(),
            checkpoint(
                frozen_state={"step": 2, "name": "Zoë"},
                metadata={"tenant": "acme", "strata.error": "out of paper"},
                graph=GraphIdentity("reports", "3"),
                decision=DECISION,
                wait=Wait(WaitKind.PERSON, due_at=AT + timedelta(days=1), on_timeout="Cancel"),
            ),
        )

        assert [
            "thread:      report-1",
            "status:      interrupted",
            "node:        Draft",
            "next node:   Review",
            "graph:       reports@3",
            "lease:       -",
            "waits for:   person until 2026-10-31T14:49:52Z, then Cancel",
            'decision:    approved at Approve by jdoe@acme.io, overrides {"amount": 4150.25}, 2026-10-30T14:49:52Z',
            "metadata:    tenant=acme",
            "             strata.error=out of paper",
            "checkpoints: 2",
            f"revision:    {shelf.revision('report-1')}",
            "written:     2026-10-30T14:49:52Z",
            "state:",
            "{",
            '  "step": 2,',
            '  "name": "Zoë"',
            "}",
        ] == look("thread", "inspect", "report-1").stdout.splitlines()

    def test_what_does_not_apply_is_a_dash(self, shelf, look, checkpoint):
        shelf.save(checkpoint(status=CheckpointStatus.COMPLETED, next_node=None))
        shown = look("thread", "inspect", "report-1").stdout

        assert {"next node:   -", "graph:       -", "waits for:   -", "decision:    -", "metadata:    -"} <= set(
            shown.splitlines()
        )

    def test_a_resumed_thread_says_what_its_latest_checkpoint_is(self, shelf, look, checkpoint):
        shelf.save(checkpoint(resumed_at=AT + timedelta(minutes=1)))
        shown = look("thread", "inspect", "report-1").stdout.splitlines()

        assert "status:      resumed (its latest checkpoint is interrupted)" in shown
        assert "resumed:     2026-10-30T14:50:52Z" in shown

    def test_a_lease_is_shown_with_its_holder_and_expiry(self, shelf, look, checkpoint):
        async def hold(store):
            return await store.acquire_lease("report-1", owner="worker-7", ttl=timedelta(days=1), save=checkpoint())

        lease = shelf.write(hold)

        assert (
            f"lease:       worker-7, token {lease.token}, until 9000-01-02T00:00:00Z"
            in look("thread", "inspect", "report-1").stdout.splitlines()
        )

    def test_a_thread_that_stopped_inside_a_subgraph_shows_the_path_and_every_state(self, shelf, look, checkpoint):
        inner = checkpoint(frozen_state={"inner": True}, suspended_node="Approve")
        shelf.save(checkpoint(frozen_state={"outer": True}, suspended_node="Work it", nested=inner))
        shown = look("thread", "inspect", "report-1").stdout

        assert 'node:        "Work it" / Approve\n' in shown
        assert shown.endswith('state:\n{\n  "outer": true\n}\nstate of "Work it":\n{\n  "inner": true\n}\n')

    def test_a_decision_inside_a_subgraph_stands_below_the_one_around_it(self, shelf, look, checkpoint):
        inner = checkpoint(suspended_node="Approve", decision=DECISION)
        middle = checkpoint(suspended_node="Inner", nested=inner)
        shelf.save(checkpoint(suspended_node="Work", nested=middle))
        shown = look("thread", "inspect", "report-1").stdout
        replayed = look("checkpoint", "replay", "report-1", "--sequence", "0").stdout

        line = (
            'in Work / Inner: approved at Approve by jdoe@acme.io, overrides {"amount": 4150.25}, 2026-10-30T14:49:52Z'
        )
        assert f"decision:    -\n             {line}\n" in shown
        assert f"decision:   -\n            {line}\n" in replayed


class TestJson:
    def test_the_checkpoint_is_the_record_of_the_schema(self, shelf, look_json, checkpoint):
        inner = checkpoint(frozen_state={"inner": 1}, suspended_node="Approve")
        saved = checkpoint(
            frozen_state={"big": 10**30, "text": "\x00\x1b[31m é 😀", "list": [None, 1.5]},
            metadata={"tenant": "a"},
            graph=GraphIdentity("reports", "3"),
            decision=DECISION,
            nested=inner,
            wait=Wait(WaitKind.EVENT, event_type="paid"),
        )
        shelf.save(saved)
        shown = look_json("thread", "inspect", "report-1")

        assert saved == decode_record(shown.pop("checkpoint"))
        assert {
            "thread_id": "report-1",
            "state": "interrupted",
            "sequence": 0,
            "revision": shelf.revision("report-1"),
            "checkpoints": 1,
            "lease": None,
        } == shown

    def test_a_lease_has_its_owner_token_and_expiry(self, shelf, look_json, checkpoint):
        async def hold(store):
            return await store.acquire_lease("report-1", owner="worker-7", ttl=timedelta(days=1), save=checkpoint())

        lease = shelf.write(hold)

        assert {
            "owner": "worker-7",
            "token": lease.token,
            "expires_at": "9000-01-02T00:00:00.000000Z",
        } == look_json("thread", "inspect", "report-1")["lease"]


class TestNotFound:
    def test_an_unknown_thread_is_told_on_stderr(self, look):
        result = look("thread", "inspect", "nobody", code=1)

        assert ("", "strata: there is no thread nobody\n") == (result.stdout, result.stderr)

    def test_a_thread_that_is_only_leased_has_no_checkpoint_to_show(self, shelf, look):
        async def hold(store):
            await store.acquire_lease("report-1", owner="worker-7", ttl=timedelta(days=1))

        shelf.write(hold)

        assert look("thread", "inspect", "report-1", code=1).stderr == "strata: there is no thread report-1\n"

    @pytest.mark.parametrize(
        ("thread_id", "problem"),
        [("", "ID"), ("x" * 513, "ID"), ("\udcff", "ID"), ("a\x00b", "ID")],
        ids=["empty", "long", "surrogate", "nul"],
    )
    def test_an_id_that_no_thread_can_have_is_wrong_usage(self, look, thread_id, problem):
        assert look("thread", "inspect", thread_id, code=2).stderr.startswith(f"strata: invalid value for {problem}: ")

    def test_ids_are_never_trimmed_folded_or_globbed(self, shelf, look, checkpoint):
        shelf.save(checkpoint("Report"))

        for thread_id in ("report", "Report ", "Rep*", "Repor%"):
            look("thread", "inspect", thread_id, code=1)

    def test_an_id_that_begins_with_a_dash_goes_after_two_dashes(self, shelf, look, checkpoint):
        shelf.save(checkpoint("-17"))

        assert "thread:      -17\n" in look("thread", "inspect", "--", "-17").stdout


def test_attrs_records_are_compared_whole(checkpoint):
    """The comparison that the JSON test stands on sees every field."""
    assert checkpoint() != attrs.evolve(checkpoint(), metadata={"a": "b"})
