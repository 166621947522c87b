"""The FastAPI example, over HTTP: its demo as a user runs it, and its routes on real stores."""

from __future__ import annotations

import asyncio
import importlib
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from strata_core import (
    Cancelled,
    CancelReason,
    CheckpointStatus,
    Failed,
    FailureCode,
    GraphIdentity,
    HumanDecision,
    StateGraph,
    Wait,
    WaitKind,
    open_store,
)

ANN = {"X-Forwarded-User": "ann@acme.io"}
SECRET = "hunter2"


@pytest.fixture
def folder(demo, monkeypatch):
    found = demo("fastapi-approvals")
    monkeypatch.syspath_prepend(str(found.folder))
    return found


@pytest.fixture
def service(folder):
    return importlib.import_module("service")


@pytest.fixture
def payments(folder):
    return importlib.import_module("payments")


@pytest.fixture
def statuses(folder):
    return importlib.import_module("statuses")


@pytest.fixture
def readme(folder):
    return (folder.folder / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def bank(payments):
    return payments.Bank()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "transfers.db"


@pytest.fixture
def serve(service, bank, file):
    """Serve the file, once or several times at the same time; each is a replica with a store and a loop of its own."""

    @contextmanager
    def started(storage=file):
        with TestClient(service.create_app(storage, bank)) as client:
            yield client

    return started


@pytest.fixture
def client(serve):
    with serve() as client:
        yield client


def submit(client, transfer_id="acme", amount="4200.50"):
    return client.post("/transfers", json={"id": transfer_id, "beneficiary": "Acme Corp", "amount": amount})


def answer(client, transfer_id="acme", approve=True, headers=ANN, **overrides):
    body = {"approve": approve, "overrides": overrides}
    return client.post(f"/transfers/{transfer_id}/answer", json=body, headers=headers)


def refusal(response):
    return response.status_code, response.json()["detail"]["code"]


def wait_until(holds):
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.02)
    pytest.fail("it has not come in 20 seconds")


class TestTheDemo:
    def test_the_command_of_the_readme_prints_what_the_readme_says(self, folder):
        def without_reference(text):
            return re.sub("TX-[0-9a-f]{6}", "TX-", text)

        assert without_reference(folder.readme("text")) == without_reference(folder.run().stdout)

    def test_it_fails_when_the_service_does_not_start(self, folder, shelf):
        done = folder.run("--storage", "nowhere://", code=1)

        assert "The service does not start" in done.stderr
        assert "nowhere" in done.stderr


class TestARequestThatFreezes:
    def test_it_is_accepted_and_says_where_the_transfer_is_found(self, client):
        response = submit(client)

        assert 202 == response.status_code
        assert "/transfers/acme" == response.headers["Location"]
        assert response.json() == client.get("/transfers/acme").json()
        assert ("interrupted", "4200.50") == (response.json()["state"], response.json()["amount"])

    def test_sent_twice_it_is_a_conflict_and_changes_nothing(self, client):
        first = submit(client)

        assert (409, "thread_exists") == refusal(submit(client, amount="1"))
        assert first.json() == client.get("/transfers/acme").json()

    @pytest.mark.parametrize(
        "changes", [{"id": "a/b"}, {"amount": "0"}, {"amount": "NaN"}, {"beneficiary": ""}, {"x": 1}]
    )
    def test_one_that_makes_no_sense_is_refused_before_anything_runs(self, client, changes):
        good = {"id": "acme", "beneficiary": "Acme Corp", "amount": "4200.50"}

        assert (422, "invalid_request") == refusal(client.post("/transfers", json=good | changes))
        assert [] == client.get("/transfers").json()["transfers"]


class TestTheListing:
    def test_it_shows_what_waits_unless_other_states_are_asked_for(self, client):
        submit(client, "acme"), submit(client, "globex")
        answer(client, "globex")

        def listed(query=""):
            return [each["id"] for each in client.get(f"/transfers{query}").json()["transfers"]]

        assert ["acme"] == listed()
        assert ["globex", "acme"] == listed("?state=completed&state=interrupted")
        assert [] == listed("?state=failed")

    def test_it_is_paged(self, client):
        submit(client, "acme"), submit(client, "globex")
        first = client.get("/transfers?limit=1").json()
        second = client.get("/transfers", params={"limit": 1, "cursor": first["next_cursor"]}).json()

        assert ["globex", "acme"] == [page["transfers"][0]["id"] for page in (first, second)]
        assert second["next_cursor"] is None

    def test_a_cursor_of_somebody_else_is_refused(self, client):
        assert (422, "invalid_request") == refusal(client.get("/transfers?cursor=mine"))


class TestAnAnswer:
    def test_it_is_given_to_another_process_than_the_one_that_froze(self, serve, bank):
        with serve() as before:
            submit(before)
        with serve() as after:
            done = answer(after, amount="4150.25")

        assert 200 == done.status_code
        assert ("completed", "4150.25", "ann@acme.io") == tuple(
            done.json()[key] for key in ("state", "amount", "approved_by")
        )
        assert ["4150.25"] == [str(payment.amount) for payment in bank.payments.values()]

    def test_a_rejection_sends_nothing(self, client, bank):
        submit(client)
        done = answer(client, approve=False)

        assert (200, "cancelled by ann@acme.io") == (done.status_code, done.json()["status"])
        assert {} == bank.payments

    def test_of_many_at_once_on_two_replicas_exactly_one_counts(self, serve, bank):
        with serve() as one, serve() as other, ThreadPoolExecutor(8) as pool:
            for number in range(5):
                submit(one, f"acme-{number}")
                answers = list(pool.map(lambda client, n=number: answer(client, f"acme-{n}"), [one, other] * 4))

                assert [200] + [409] * 7 == sorted(each.status_code for each in answers)
                assert {"already_resumed"} == {refusal(each)[1] for each in answers if each.status_code == 409}
        assert 5 == len(bank.payments)

    @pytest.mark.parametrize(
        "overrides", [{"amount": 4150.25}, {"amount": "a lot"}, {"amount": "-1"}, {"beneficiary": ""}, {"amount": None}]
    )
    def test_a_correction_that_does_not_fit_is_refused_and_the_transfer_still_waits(self, client, bank, overrides):
        before = submit(client).json()

        assert (422, "invalid_signal") == refusal(answer(client, **overrides))
        assert before == client.get("/transfers/acme").json()
        assert {} == bank.payments

    @pytest.mark.parametrize(
        "body",
        [
            b"{",
            b"null",
            b'{"approve": "yes"}',
            b'{"approve": 1}',
            b'{"approve": true, "overrides": {"approved_by": "mallory"}}',
            b'{"approve": true, "overrides": {"\\ud800": 1}}',
            b'{"\\ud800": 1}',
        ],
    )
    def test_what_is_no_answer_is_refused_without_an_echo(self, client, body):
        submit(client)
        url, headers = "/transfers/acme/answer", ANN | {"Content-Type": "application/json"}

        assert (422, "invalid_request") == refusal(client.post(url, content=body, headers=headers))
        assert "interrupted" == client.get("/transfers/acme").json()["state"]

    @pytest.mark.parametrize("value", [b"NaN", b"1e999", b'"\\ud800"', b"9" * 100])
    def test_a_value_that_is_no_json_is_refused_as_one_that_does_not_fit(self, client, value):
        submit(client)
        body = b'{"approve": true, "overrides": {"amount": ' + value + b"}}"
        headers = ANN | {"Content-Type": "application/json"}

        assert (422, "invalid_signal") == refusal(client.post("/transfers/acme/answer", content=body, headers=headers))

    def test_nobody_answers_without_a_login(self, client):
        submit(client)

        assert (401, "unknown_user") == refusal(answer(client, headers={}))
        assert (401, "unknown_user") == refusal(client.post("/transfers/acme/retry"))
        assert (401, "unknown_user") == refusal(client.delete("/transfers/acme"))

    def test_what_is_not_there_is_not_found(self, client):
        for response in (answer(client), client.get("/transfers/acme"), client.delete("/transfers/acme", headers=ANN)):
            assert (404, "not_found") == refusal(response)

    def test_an_id_that_can_be_none_is_refused(self, client):
        assert (422, "invalid_request") == refusal(client.get("/transfers/%00"))

    def test_what_is_held_is_a_conflict(self, client, file):
        async def hold():
            async with open_store(file) as store:
                await store.acquire_lease("acme", owner="somebody", ttl=timedelta(hours=1))

        submit(client)
        asyncio.run(hold())

        assert (409, "lease_held") == refusal(answer(client))
        assert (409, "lease_held") == refusal(client.delete("/transfers/acme", headers=ANN))

    def test_a_thread_of_another_graph_is_not_found(self, client, file):
        other = StateGraph(dict).add_node("Wait", dict).add_interrupt_boundary("Wait")
        other.compile(identity=GraphIdentity("other", "1")).run_sync("acme", {}, open_store(file))

        assert (404, "wrong_graph") == refusal(answer(client))
        assert (404, "not_found") == refusal(client.get("/transfers/acme"))
        assert [] == client.get("/transfers").json()["transfers"]


class TestATransferThatFailed:
    @pytest.fixture
    def failed(self, client, bank, monkeypatch):
        async def down(key, transfer):
            raise ConnectionError(f"https://us:{SECRET}@bank.example does not answer")

        submit(client)
        with monkeypatch.context() as patch:
            patch.setattr(bank, "send", down)
            return answer(client)

    def test_it_is_a_bad_gateway_and_the_error_stays_inside(self, failed):
        assert (502, "node_failed") == refusal(failed)
        assert SECRET not in failed.text
        assert "bank.example" not in failed.text

    def test_it_can_be_retried_and_keeps_its_answer(self, failed, client, bank):
        done = client.post("/transfers/acme/retry", headers={"X-Forwarded-User": "ops@acme.io"})

        assert (200, "ann@acme.io") == (done.status_code, done.json()["approved_by"])
        assert 1 == len(bank.payments)

    @pytest.mark.parametrize("approve", [True, False])
    def test_an_answer_that_comes_late_is_no_retry(self, failed, client, bank, approve):
        assert (409, "failed") == refusal(answer(client, approve=approve))
        assert {} == bank.payments

    def test_it_can_be_withdrawn_for_good(self, failed, client):
        assert 204 == client.delete("/transfers/acme", headers=ANN).status_code
        assert (409, "ended") == refusal(client.post("/transfers/acme/retry", headers=ANN))
        assert "ended" == client.get("/transfers/acme").json()["state"]


def test_one_that_waits_is_not_answered_by_a_retry(client):
    submit(client)

    assert (409, "signal_required") == refusal(client.post("/transfers/acme/retry", headers=ANN))


def test_one_that_takes_too_long_is_stopped_and_can_be_retried(service, client, bank, monkeypatch):
    submit(client)
    with monkeypatch.context() as patch:
        patch.setattr(service, "LONGEST", timedelta(0))

        assert (504, "deadline") == refusal(answer(client))
        assert (409, "cancelled") == refusal(answer(client))
    assert 200 == client.post("/transfers/acme/retry", headers=ANN).status_code
    assert 1 == len(bank.payments)


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

    def wait_until_completed(self, client):
        def state():
            return client.get("/transfers/acme").json()["state"]

        wait_until(lambda: state() == "completed")
        return client.get("/transfers/acme").json()["status"]

    def test_what_a_process_that_died_was_sending_is_sent(self, leave, serve, bank):
        yes = HumanDecision("Prepare", True, "ann@acme.io", datetime.now(UTC))
        leave(status=CheckpointStatus.RUNNING, suspended_node="Prepare", next_node="Execute", decision=yes)
        with serve() as client:
            assert self.wait_until_completed(client).startswith("sent as TX-")
        assert 1 == len(bank.payments)

    def test_what_nobody_answered_in_time_expires(self, leave, serve, bank):
        wait = Wait(WaitKind.PERSON, due_at=datetime.now(UTC), on_timeout="Expire")
        leave(status=CheckpointStatus.INTERRUPTED, suspended_node="Prepare", next_node="Execute", wait=wait)
        with serve() as client:
            assert "expired, nobody answered" == self.wait_until_completed(client)
            assert (409, "completed") == refusal(answer(client))
        assert {} == bank.payments

    def test_it_is_told_by_the_listing_until_when_an_answer_counts(self, client):
        submit(client)
        (waiting,) = client.get("/transfers").json()["transfers"]
        left = datetime.fromisoformat(waiting["due_at"]) - datetime.fromisoformat(waiting["updated_at"])

        assert timedelta(days=7) == timedelta(seconds=round(left.total_seconds()))

    def test_a_store_that_is_down_for_a_while_does_not_stop_it(self, service, serve, shelf, monkeypatch, caplog):
        monkeypatch.setattr(service, "EVERY", timedelta(milliseconds=10))
        with serve(shelf.url) as client:
            submit(client)
            shelf.path.write_bytes((whole := shelf.path.read_bytes()) + b"rubbish\n")
            wait_until(lambda: caplog.records)
            shelf.path.write_bytes(whole)

            assert 200 == answer(client).status_code
        assert {"approvals"} == {record.name for record in caplog.records}


def test_a_store_that_is_down_is_told_without_its_address_and_may_come_back(serve, shelf):
    with serve(shelf.url) as client:
        submit(client)
        whole = shelf.path.read_bytes()
        shelf.path.write_bytes(whole + b"rubbish\n")
        requests = [submit(client, "globex"), answer(client), client.get("/transfers"), client.get("/transfers/acme")]

        for response in requests:
            assert (503, "store_unavailable") == refusal(response)
            assert "jsonl" not in response.text

        shelf.path.write_bytes(whole)

        assert 200 == answer(client).status_code


class TestTheStatuses:
    def test_there_is_one_for_every_code(self, statuses):
        assert set(FailureCode) == set(statuses.FAILED)
        assert set(CancelReason) == set(statuses.CANCELLED)

    @pytest.mark.parametrize("code", FailureCode)
    def test_no_text_of_the_engine_goes_out_but_what_does_not_fit(self, statuses, code):
        status, body = statuses.refusal(Failed("acme", code, SECRET, "Execute", f"state.amount: {SECRET}"))

        assert status >= 400
        assert code == body["code"]
        assert (code is FailureCode.INVALID_SIGNAL) == (SECRET in body["message"])

    @pytest.mark.parametrize("reason", CancelReason)
    def test_neither_does_the_reason_of_a_token(self, statuses, reason):
        status, body = statuses.refusal(Cancelled("acme", reason, "Execute", SECRET))

        assert status >= 400
        assert SECRET not in str(body)

    def test_the_readme_names_the_status_of_every_code(self, readme, statuses):
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
            for table in (statuses.FAILED, statuses.CANCELLED)
            for code, (status, _) in table.items()
        }


def test_the_readme_names_every_request(readme, service):
    told = set(re.findall(r"^\| `(\w+) (/\S+)` \|", readme, re.MULTILINE))

    assert told == {(method, route.path) for route in service.transfers.routes for method in route.methods}
