"""Requests to the FastAPI example: what freezes, lists and answers, on real files."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from strata_core import GraphIdentity, StateGraph, open_store


class TestARequestThatFreezes:
    def test_it_is_accepted_and_says_where_the_transfer_is_found(self, client):
        response = client.submit()

        assert 202 == response.status_code
        assert "/transfers/acme" == response.headers["Location"]
        assert response.json() == client.get("/transfers/acme").json()
        assert ("interrupted", "4200.50") == (response.json()["state"], response.json()["amount"])

    def test_sent_twice_it_is_a_conflict_and_changes_nothing(self, client, refusal):
        first = client.submit()

        assert (409, "thread_exists") == refusal(client.submit(amount="1"))
        assert first.json() == client.get("/transfers/acme").json()

    @pytest.mark.parametrize(
        "changes", [{"id": "a/b"}, {"amount": "0"}, {"amount": "NaN"}, {"beneficiary": ""}, {"x": 1}]
    )
    def test_one_that_makes_no_sense_is_refused_before_anything_runs(self, client, changes, refusal):
        good = {"id": "acme", "beneficiary": "Acme Corp", "amount": "4200.50"}

        assert (422, "invalid_request") == refusal(client.post("/transfers", json=good | changes))
        assert [] == client.get("/transfers").json()["transfers"]


class TestTheListing:
    def test_it_shows_what_waits_unless_other_states_are_asked_for(self, client):
        client.submit("acme"), client.submit("globex")
        client.answer("globex")

        def listed(query=""):
            return [each["id"] for each in client.get(f"/transfers{query}").json()["transfers"]]

        assert ["acme"] == listed()
        assert ["globex", "acme"] == listed("?state=completed&state=interrupted")
        assert [] == listed("?state=failed")

    def test_it_is_paged(self, client):
        client.submit("acme"), client.submit("globex")
        first = client.get("/transfers?limit=1").json()
        second = client.get("/transfers", params={"limit": 1, "cursor": first["next_cursor"]}).json()

        assert ["globex", "acme"] == [page["transfers"][0]["id"] for page in (first, second)]
        assert second["next_cursor"] is None

    def test_a_cursor_of_somebody_else_is_refused(self, client, refusal):
        assert (422, "invalid_request") == refusal(client.get("/transfers?cursor=mine"))


class TestAnAnswer:
    def test_it_is_given_to_another_process_than_the_one_that_froze(self, serve, bank):
        with serve() as before:
            before.submit()
        with serve() as after:
            done = after.answer(amount="4150.25")

        assert 200 == done.status_code
        assert ("completed", "4150.25", "ann@acme.io") == tuple(
            done.json()[key] for key in ("state", "amount", "approved_by")
        )
        assert ["4150.25"] == [str(payment.amount) for payment in bank.payments.values()]

    def test_a_rejection_sends_nothing(self, client, bank):
        client.submit()
        done = client.answer(approve=False)

        assert (200, "cancelled by ann@acme.io") == (done.status_code, done.json()["status"])
        assert {} == bank.payments

    def test_of_many_at_once_on_two_replicas_exactly_one_counts(self, serve, bank, refusal):
        with serve() as one, serve() as other, ThreadPoolExecutor(8) as pool:
            for number in range(5):
                one.submit(f"acme-{number}")
                answers = list(pool.map(lambda client, n=number: client.answer(f"acme-{n}"), [one, other] * 4))

                assert [200] + [409] * 7 == sorted(each.status_code for each in answers)
                assert {"already_resumed"} == {refusal(each)[1] for each in answers if each.status_code == 409}
        assert 5 == len(bank.payments)

    @pytest.mark.parametrize(
        "overrides", [{"amount": 4150.25}, {"amount": "a lot"}, {"amount": "-1"}, {"beneficiary": ""}, {"amount": None}]
    )
    def test_a_correction_that_does_not_fit_is_refused_and_the_transfer_still_waits(
        self, client, bank, overrides, refusal
    ):
        before = client.submit().json()

        assert (422, "invalid_signal") == refusal(client.answer(**overrides))
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
    def test_what_is_no_answer_is_refused_without_an_echo(self, client, body, refusal):
        client.submit()
        url, headers = "/transfers/acme/answer", client.ann | {"Content-Type": "application/json"}

        assert (422, "invalid_request") == refusal(client.post(url, content=body, headers=headers))
        assert "interrupted" == client.get("/transfers/acme").json()["state"]

    @pytest.mark.parametrize("value", [b"NaN", b"1e999", b'"\\ud800"', b"9" * 100])
    def test_a_value_that_is_no_json_is_refused_as_one_that_does_not_fit(self, client, value, refusal):
        client.submit()
        body = b'{"approve": true, "overrides": {"amount": ' + value + b"}}"
        headers = client.ann | {"Content-Type": "application/json"}

        assert (422, "invalid_signal") == refusal(client.post("/transfers/acme/answer", content=body, headers=headers))

    def test_it_can_be_for_what_was_seen_and_nothing_else(self, client, bank, refusal, monkeypatch):
        async def down(key, transfer):
            raise ConnectionError

        frozen = client.submit()
        seen = client.get("/transfers/acme").headers["ETag"]
        with monkeypatch.context() as patch:
            patch.setattr(bank, "send", down)
            assert (502, "node_failed") == refusal(client.answer(headers=client.ann | {"If-Match": seen}))
        late = client.answer(approve=False, headers=client.ann | {"If-Match": seen})
        withdrawn = client.delete("/transfers/acme", headers=client.ann | {"If-Match": seen})
        now = client.get("/transfers/acme").headers["ETag"]

        assert seen == frozen.headers["ETag"] != now
        assert [(412, "changed")] * 2 == [refusal(late), refusal(withdrawn)]
        assert 204 == client.delete("/transfers/acme", headers=client.ann | {"If-Match": now}).status_code

    @pytest.mark.parametrize("etag", ["acme", '"1"', 'W/"0-0011223344556677"'])
    def test_an_etag_that_was_never_given_is_refused(self, client, etag, refusal):
        client.submit()

        assert (422, "invalid_request") == refusal(client.answer(headers=client.ann | {"If-Match": etag}))
        assert 200 == client.answer(headers=client.ann | {"If-Match": "*"}).status_code

    def test_nobody_answers_without_a_login(self, client, refusal):
        client.submit()

        assert (401, "unknown_user") == refusal(client.answer(headers={}))
        assert (401, "unknown_user") == refusal(client.post("/transfers/acme/retry"))
        assert (401, "unknown_user") == refusal(client.delete("/transfers/acme"))

    def test_what_is_not_there_is_not_found(self, client, refusal):
        for response in (
            client.answer(),
            client.get("/transfers/acme"),
            client.delete("/transfers/acme", headers=client.ann),
        ):
            assert (404, "not_found") == refusal(response)

    def test_an_id_that_can_be_none_is_refused(self, client, refusal):
        assert (422, "invalid_request") == refusal(client.get("/transfers/%00"))

    def test_what_is_held_is_a_conflict(self, client, file, refusal):
        async def hold():
            async with open_store(file) as store:
                await store.acquire_lease("acme", owner="somebody", ttl=timedelta(hours=1))

        client.submit()
        asyncio.run(hold())

        assert (409, "lease_held") == refusal(client.answer())
        assert (409, "lease_held") == refusal(client.delete("/transfers/acme", headers=client.ann))

    def test_a_thread_of_another_graph_is_not_found(self, client, file, refusal):
        other = StateGraph(dict).add_node("Wait", dict).add_interrupt_boundary("Wait")
        other.compile(identity=GraphIdentity("other", "1")).run_sync("acme", {}, open_store(file))

        assert (404, "wrong_graph") == refusal(client.answer())
        assert (404, "not_found") == refusal(client.get("/transfers/acme"))
        assert [] == client.get("/transfers").json()["transfers"]
