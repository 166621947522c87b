"""What the processes of the FastAPI example do by themselves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from strata_core import CheckpointStatus, HumanDecision, Wait, WaitKind, open_store


class TestWhatIsLeftToDo:
    """Each process looks after what others have left; the first time at once."""

    @pytest.fixture
    def leave(self, payments, file, checkpoint):
        """Leave a transfer behind, as a process that is gone has left it."""

        def leave(**fields):
            async def save():
                async with open_store(file) as store:
                    await store.save(checkpoint("acme", graph=payments.IDENTITY, frozen_state=transfer, **fields))

            transfer = {"beneficiary": "Acme Corp", "amount": "4200.50", "status": "new", "approved_by": None}
            asyncio.run(save())

        return leave

    @pytest.fixture
    def completed(self, wait_until):
        """Wait until the transfer is completed, and return its status."""

        def completed(client):
            wait_until(lambda: client.get("/transfers/acme").json()["state"] == "completed")
            return client.get("/transfers/acme").json()["status"]

        return completed

    def test_what_a_process_that_died_was_sending_is_sent(self, leave, serve, completed, bank):
        yes = HumanDecision("Prepare", True, "ann@acme.io", datetime.now(UTC))
        leave(status=CheckpointStatus.RUNNING, suspended_node="Prepare", next_node="Execute", decision=yes)
        with serve() as client:
            assert completed(client).startswith("sent as TX-")
        assert 1 == len(bank.payments)

    def test_what_nobody_answered_in_time_expires(self, leave, serve, completed, bank, refusal):
        wait = Wait(WaitKind.PERSON, due_at=datetime.now(UTC), on_timeout="Expire")
        leave(status=CheckpointStatus.INTERRUPTED, suspended_node="Prepare", next_node="Execute", wait=wait)
        with serve() as client:
            assert "expired, nobody answered" == completed(client)
            assert (409, "completed") == refusal(client.answer())
        assert {} == bank.payments

    def test_it_is_told_by_the_listing_until_when_an_answer_counts(self, client):
        client.submit()
        (waiting,) = client.get("/transfers").json()["transfers"]
        left = datetime.fromisoformat(waiting["due_at"]) - datetime.fromisoformat(waiting["updated_at"])

        assert timedelta(days=7) == timedelta(seconds=round(left.total_seconds()))

    def test_a_store_that_is_down_for_a_while_does_not_stop_it(
        self, service, serve, shelf, monkeypatch, caplog, wait_until
    ):
        monkeypatch.setattr(service, "EVERY", timedelta(milliseconds=10))
        with serve(shelf.url) as client:
            client.submit()
            shelf.path.write_bytes((whole := shelf.path.read_bytes()) + b"rubbish\n")
            wait_until(lambda: caplog.records)
            shelf.path.write_bytes(whole)

            assert 200 == client.answer().status_code
        assert {"approvals"} == {record.name for record in caplog.records}
