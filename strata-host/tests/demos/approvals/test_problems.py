"""What a client is told when something fails: a status for every code, and no secret."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from strata_core import Cancelled, CancelReason, Failed, FailureCode

SECRET = "hunter2"


class TestATransferThatFailed:
    @pytest.fixture
    def failed(self, client, bank, monkeypatch):
        async def down(key, transfer):
            raise ConnectionError(f"https://us:{SECRET}@bank.example does not answer")

        client.submit()
        with monkeypatch.context() as patch:
            patch.setattr(bank, "send", down)
            return client.answer()

    def test_it_is_a_bad_gateway_and_the_error_stays_inside(self, failed, refusal):
        assert (502, "node_failed") == refusal(failed)
        assert SECRET not in failed.text
        assert "bank.example" not in failed.text

    def test_it_can_be_retried_and_keeps_its_answer(self, failed, client, bank):
        done = client.post("/transfers/acme/retry", headers={"X-Forwarded-User": "ops@acme.io"})

        assert (200, "ann@acme.io") == (done.status_code, done.json()["approved_by"])
        assert 1 == len(bank.payments)

    @pytest.mark.parametrize("approve", [True, False])
    def test_an_answer_that_comes_late_is_no_retry(self, failed, client, bank, approve, refusal):
        assert (409, "failed") == refusal(client.answer(approve=approve))
        assert {} == bank.payments

    def test_it_can_be_withdrawn_for_good(self, failed, client, refusal):
        assert 204 == client.delete("/transfers/acme", headers=client.ann).status_code
        assert (409, "ended") == refusal(client.post("/transfers/acme/retry", headers=client.ann))
        assert "ended" == client.get("/transfers/acme").json()["state"]


def test_one_that_waits_is_not_answered_by_a_retry(client, refusal):
    client.submit()

    assert (409, "signal_required") == refusal(client.post("/transfers/acme/retry", headers=client.ann))


def test_one_that_takes_too_long_is_stopped_and_can_be_retried(service, client, bank, monkeypatch, refusal):
    client.submit()
    with monkeypatch.context() as patch:
        patch.setattr(service, "LONGEST", timedelta(0))

        assert (504, "deadline") == refusal(client.answer())
        assert (409, "cancelled") == refusal(client.answer())
    assert 200 == client.post("/transfers/acme/retry", headers=client.ann).status_code
    assert 1 == len(bank.payments)


def test_a_store_that_is_down_is_told_without_its_address_and_may_come_back(serve, shelf, refusal):
    with serve(shelf.url) as client:
        client.submit()
        whole = shelf.path.read_bytes()
        shelf.path.write_bytes(whole + b"rubbish\n")
        requests = [client.submit("globex"), client.answer(), client.get("/transfers"), client.get("/transfers/acme")]

        for response in requests:
            assert (503, "store_unavailable") == refusal(response)
            assert "jsonl" not in response.text

        shelf.path.write_bytes(whole)

        assert 200 == client.answer().status_code


class TestTheStatuses:
    def test_there_is_one_for_every_code(self, problems):
        assert set(FailureCode) == set(problems.FAILED)
        assert set(CancelReason) == set(problems.CANCELLED)

    @pytest.mark.parametrize("code", FailureCode)
    def test_no_text_of_the_engine_goes_out_but_what_does_not_fit(self, problems, code):
        told = problems.refused(Failed("acme", code, SECRET, "Execute", f"state.amount: {SECRET}"))

        assert told.status_code >= 400
        assert code == told.detail["code"]
        assert (code is FailureCode.INVALID_SIGNAL) == (SECRET in told.detail["message"])

    @pytest.mark.parametrize("reason", CancelReason)
    def test_neither_does_the_reason_of_a_token(self, problems, reason):
        told = problems.refused(Cancelled("acme", reason, "Execute", SECRET))

        assert told.status_code >= 400
        assert SECRET not in str(told.detail)

    def test_the_readme_names_the_status_of_every_code(self, readme, problems):
        told = {
            (int(status), code)
            for status, codes in re.findall(r"^\| (\d{3}) \| (.*) \|$", readme, re.MULTILINE)
            for code in re.findall(r"`(\w+)`", codes)
        }
        own = {
            (401, "unknown_user"),
            (409, "failed"),
            (409, "cancelled"),
            (422, "invalid_request"),
            (503, "store_unavailable"),
        }

        assert told == own | {
            (int(status), str(code))
            for table in (problems.FAILED, problems.CANCELLED)
            for code, (status, _) in table.items()
        }


def test_the_readme_names_every_request(readme, service):
    told = set(re.findall(r"^\| `(\w+) (/\S+)` \|", readme, re.MULTILINE))

    assert told == {(method, route.path) for route in service.transfers.routes for method in route.methods}
