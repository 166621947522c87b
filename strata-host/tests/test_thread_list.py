"""`strata thread list`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from strata_core import StateGraph
from strata_core.records import CheckpointStatus, GraphIdentity, ThreadState, Wait, WaitKind
from strata_core.testing import FakeClock

AT = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)


def _in_state(checkpoint, state):
    """Return a checkpoint that leaves a thread named after `state` in that state."""
    if state is ThreadState.RESUMED:
        return checkpoint("resumed", resumed_at=AT + timedelta(seconds=1))
    return checkpoint(state.value, status=CheckpointStatus(state.value))


class TestRows:
    def test_a_thread_is_one_row_with_where_it_stands_and_what_it_waits_for(self, shelf, look, checkpoint):
        shelf.save(
            checkpoint("order-1"),
            checkpoint("order-1", wait=Wait(WaitKind.TIMER, due_at=AT + timedelta(hours=1), on_timeout="End")),
        )

        assert [
            "THREAD   NODE   SEQ  STATE        WAITS FOR                                   LEASE  UPDATED",
            "order-1  Draft  #1   interrupted  timer until 2026-10-30T15:49:52Z, then End  -      2026-10-30T14:49:52Z",
        ] == look("thread", "list").stdout.splitlines()

    @pytest.mark.parametrize(
        ("wait", "shown"),
        [
            (lambda graph: graph.add_interrupt_boundary("Draft"), "person"),
            (
                lambda graph: graph.add_interrupt_boundary("Draft", timeout=timedelta(hours=1)),
                "person until 2026-10-30T15:49:52Z",
            ),
            (lambda graph: graph.add_wait_for_event("Draft", "order paid"), 'event "order paid"'),
            (
                lambda graph: graph.add_wait_for_event("Draft", "paid", timeout=timedelta(days=2), on_timeout="Send"),
                "event paid until 2026-11-01T14:49:52Z, then Send",
            ),
            (lambda graph: graph.add_timer("Draft", timedelta(minutes=5)), "timer until 2026-10-30T14:54:52Z"),
        ],
    )
    def test_a_thread_that_a_graph_left_waiting_says_what_it_waits_for(self, shelf, look, wait, shown):
        async def leave(store):
            graph = StateGraph(dict).add_node("Draft", lambda state: state).add_node("Send", lambda state: state)
            await wait(graph.add_edge("Draft", "Send")).compile(clock=FakeClock(AT)).run("order-1", {}, store)

        shelf.write(leave)

        assert f"interrupted  {shown}  " in look("thread", "list").stdout
        assert f"waits for:   {shown}\n" in look("thread", "inspect", "order-1").stdout

    def test_the_latest_updated_comes_first(self, shelf, look_json, checkpoint):
        shelf.save(
            checkpoint("old"),
            checkpoint("new", created_at=AT + timedelta(seconds=2)),
            checkpoint("middle", created_at=AT + timedelta(seconds=1)),
        )

        assert ["new", "middle", "old"] == [thread["thread_id"] for thread in look_json("thread", "list")["threads"]]

    def test_the_holder_of_a_lease_is_shown(self, shelf, look, look_json, checkpoint):
        async def hold(store):
            await store.save(checkpoint("order-1"))
            return await store.acquire_lease("order-1", owner="worker 7", ttl=timedelta(days=1))

        lease = shelf.write(hold)

        assert '"worker 7"' in look("thread", "list").stdout
        assert look_json("thread", "list")["threads"][0]["lease"]["token"] == lease.token

    def test_an_empty_store_says_so(self, look, look_json):
        assert look("thread", "list").stdout == "no thread matches\n"
        assert {"threads": [], "next_cursor": None} == look_json("thread", "list")


class TestFilters:
    @pytest.mark.parametrize("state", list(ThreadState))
    def test_each_of_the_seven_states_is_a_status(self, shelf, look_json, checkpoint, state):
        shelf.save(*(_in_state(checkpoint, each) for each in ThreadState))

        assert [state.value] == [
            thread["thread_id"] for thread in look_json("thread", "list", "--status", state.value)["threads"]
        ]

    def test_several_statuses_are_alternatives(self, shelf, look_json, checkpoint):
        shelf.save(*(_in_state(checkpoint, each) for each in ThreadState))
        found = look_json("thread", "list", "--status", "failed", "--status", "resumed")["threads"]

        assert {"failed", "resumed"} == {thread["thread_id"] for thread in found}

    def test_an_unknown_status_is_wrong_usage(self, look):
        assert "'--status': 'waiting' is not one of" in look("thread", "list", "--status", "waiting", code=2).stderr

    def test_metadata_pairs_must_all_be_there(self, shelf, look_json, checkpoint):
        shelf.save(
            checkpoint("both", metadata={"tenant": "a", "desk": "b=c"}),
            checkpoint("one", metadata={"tenant": "a"}),
        )
        found = look_json("thread", "list", "--meta", "tenant=a", "--meta", "desk=b=c")["threads"]

        assert ["both"] == [thread["thread_id"] for thread in found]

    @pytest.mark.parametrize("pair", ["tenant", "=a", ""])
    def test_a_pair_without_a_key_or_an_equals_sign_is_wrong_usage(self, look, pair):
        error = look("thread", "list", "--meta", pair, code=2).stderr

        assert f"strata: invalid value for '--meta': {pair!r} is not of the form KEY=VALUE" in error

    def test_a_key_with_two_values_is_wrong_usage(self, look):
        error = look("thread", "list", "--meta", "a=1", "--meta", "a=2", code=2).stderr

        assert "'a' is given twice with different values" in error

    def test_a_graph_is_found_by_id_and_by_version(self, shelf, look_json, checkpoint):
        shelf.save(
            checkpoint("v1", graph=GraphIdentity("mail@home", "1")),
            checkpoint("v2", graph=GraphIdentity("mail@home", "2")),
            checkpoint("other", graph=GraphIdentity("mail", "home")),
            checkpoint("none"),
        )

        assert ["v2"] == [
            each["thread_id"] for each in look_json("thread", "list", "--graph", "mail@home@2")["threads"]
        ]
        assert ["other"] == [each["thread_id"] for each in look_json("thread", "list", "--graph", "mail")["threads"]]

    @pytest.mark.parametrize("graph", ["", "@1", "mail@"])
    def test_a_graph_without_an_id_or_a_version_is_wrong_usage(self, look, graph):
        assert "is not of the form ID[@VERSION]" in look("thread", "list", "--graph", graph, code=2).stderr

    def test_due_threads_are_those_whose_time_has_come(self, shelf, look_json, checkpoint):
        shelf.save(
            checkpoint("due", wait=Wait(WaitKind.TIMER, due_at=datetime(2001, 1, 1, tzinfo=UTC))),
            checkpoint("later", wait=Wait(WaitKind.TIMER, due_at=datetime(9000, 1, 1, tzinfo=UTC))),
            checkpoint("person"),
        )

        assert ["due"] == [thread["thread_id"] for thread in look_json("thread", "list", "--due")["threads"]]


class TestPages:
    def test_following_the_cursor_shows_every_thread_once(self, shelf, look, checkpoint):
        shelf.save(*(checkpoint(f"order-{number}") for number in range(5)))
        seen, option = [], []
        while True:
            rows = look("thread", "list", "--limit", "2", *option).stdout.splitlines()
            seen += [row.split()[0] for row in rows if row.startswith("order-")]
            if not rows[-1].startswith("next page: "):
                break
            option = rows[-1].removeprefix("next page: ").split()

        assert ["order-4", "order-3", "order-2", "order-1", "order-0"] == seen

    def test_a_full_last_page_announces_no_other(self, shelf, look, look_json, checkpoint):
        shelf.save(checkpoint("order-1"), checkpoint("order-2"))

        assert "next page" not in look("thread", "list", "--limit", "2").stdout
        assert look_json("thread", "list", "--limit", "2")["next_cursor"] is None

    @pytest.mark.parametrize("limit", ["0", "-1", "1001", "ten", "1; drop table"])
    def test_a_limit_out_of_range_is_wrong_usage(self, look, limit):
        assert "strata: invalid value for '--limit'" in look("thread", "list", "--limit", limit, code=2).stderr

    def test_a_cursor_that_is_none_is_wrong_usage(self, look):
        assert "strata: invalid value for '--cursor'" in look("thread", "list", "--cursor", "nonsense", code=2).stderr


def test_the_json_of_a_thread_has_every_key(shelf, look_json, checkpoint):
    shelf.save(
        checkpoint(
            "order-1",
            metadata={"tenant": "a"},
            graph=GraphIdentity("mail", "2"),
            wait=Wait(WaitKind.EVENT, event_type="paid"),
        )
    )

    assert {
        "threads": [
            {
                "thread_id": "order-1",
                "sequence": 0,
                "revision": shelf.revision("order-1"),
                "state": "interrupted",
                "status": "interrupted",
                "updated_at": "2026-10-30T14:49:52.000000Z",
                "suspended_node": "Draft",
                "next_node": "Review",
                "wait": {"kind": "event", "event_type": "paid"},
                "graph": {"id": "mail", "version": "2"},
                "metadata": {"tenant": "a"},
                "lease": None,
            }
        ],
        "next_cursor": None,
    } == look_json("thread", "list")
