"""Listing threads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, SHORT, THREAD_IDS, checkpoint, completed, every_field
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._time import outlive
from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError, UnsupportedError
from strata_core.records import (
    CheckpointStatus,
    GraphIdentity,
    ThreadQuery,
    ThreadState,
    ThreadSummary,
    Wait,
    WaitKind,
)
from strata_core.testing import FakeClock

__all__ = ["QueryTests"]

SECOND = timedelta(seconds=1)
MICRO = timedelta(microseconds=1)
INTERRUPTED = CheckpointStatus.INTERRUPTED
queries = pytest.mark.requires(Capability.QUERY)


async def ids(store: Store, **query: Any) -> list[str]:
    """Return the IDs of the first page."""
    return [thread.thread_id for thread in (await store.list_threads(ThreadQuery(**query))).threads]


async def pages(store: Store, **query: Any) -> list[list[str]]:
    """Return the IDs of all pages."""
    found, cursor = [], None
    while True:
        page = await store.list_threads(ThreadQuery(**query, cursor=cursor))
        found.append([thread.thread_id for thread in page.threads])
        cursor = page.next_cursor
        if cursor is None:
            return found
        assert len(found) < 1000, "the pages do not end"


class QueryTests(PortTests):
    """Order, filters and pages of listings."""

    @promise("list-1")
    @queries
    async def test_threads_are_listed_newest_first(self, open_store: OpenStore) -> None:
        """Threads are listed by the time of their latest checkpoint, newest first, to the microsecond, whatever the
        order of the saves.
        """
        ages = {"b": 2, "d": 0, "a": 3, "c": 1, "e": 5}
        async with open_store() as store:
            for thread, age in ages.items():
                await store.save(checkpoint(thread, at=BASE - age * MICRO))
            before = await ids(store)
            await store.save(checkpoint("e", at=BASE + MICRO))
            after = await ids(store)

        assert ["d", "c", "b", "a", "e"] == before
        assert ["e", "d", "c", "b", "a"] == after

    @promise("list-2")
    @queries
    async def test_threads_of_the_same_time_are_ordered_by_id_as_utf8(self, open_store: OpenStore) -> None:
        """Threads of the same time are ordered by thread ID, compared as UTF-8 bytes, descending: case, accents, NULs
        of a column's width and characters beyond 16 bits included.
        """
        async with open_store() as store:
            for thread in THREAD_IDS:
                await store.save(checkpoint(thread))
            got = await ids(store, limit=1000)
            paged = await pages(store, limit=7)

        expected = sorted(THREAD_IDS, key=str.encode, reverse=True)
        assert expected == got
        assert expected == [thread for page in paged for thread in page]

    @promise("list-3")
    @queries
    @pytest.mark.parametrize("status", list(CheckpointStatus))
    async def test_a_summary_tells_the_latest_checkpoint(self, open_store: OpenStore, status: CheckpointStatus) -> None:
        """A summary holds everything of the thread's latest checkpoint but the state, its sequence, and as its time
        the later of created_at and resumed_at.
        """
        record = every_field("t", status)
        bare = checkpoint("bare", status, at=BASE - SECOND)
        async with open_store() as store:
            await store.save(checkpoint(metadata={"old": "1"}, suspended_node="Old"))
            await store.save(record)
            await store.save(bare)
            page = await store.list_threads()

        assert record.resumed_at is not None
        assert [
            ThreadSummary(
                "t",
                1,
                ThreadState.RESUMED,
                status,
                record.resumed_at,
                record.suspended_node,
                record.next_node,
                record.wait,
                record.graph,
                record.metadata,
            ),
            ThreadSummary("bare", 0, ThreadState(status.value), status, bare.created_at),
        ] == list(page.threads)
        assert page.next_cursor is None

    @promise("list-4")
    @queries
    async def test_states_select_by_the_latest_checkpoint(self, open_store: OpenStore) -> None:
        """States select threads by their latest checkpoint alone; one from which a resume began is resumed, whatever
        its status; several states are listed in one order; None selects all, an empty set nothing.
        """
        async with open_store() as store:
            for n, status in enumerate(CheckpointStatus):
                await store.save(checkpoint(status.value, INTERRUPTED))
                await store.save(checkpoint(status.value, status, at=BASE + n * SECOND))
            for n, status in enumerate((INTERRUPTED, CheckpointStatus.FAILED, CheckpointStatus.CANCELLED)):
                resumed = BASE + (10 + n) * SECOND
                await store.save(checkpoint(f"resumed {status}", status))
                await store.save(checkpoint(f"resumed {status}", status, resumed_at=resumed))
            each = {state: await ids(store, states={state}) for state in ThreadState}
            several = await ids(store, states=[ThreadState.RUNNING, ThreadState.RESUMED, ThreadState.INTERRUPTED])
            everything, nothing = await ids(store), await ids(store, states=frozenset())
            by_two = await pages(store, states=frozenset(ThreadState), limit=2)

        resumed_ids = ["resumed cancelled", "resumed failed", "resumed interrupted"]
        plain = [status.value for status in CheckpointStatus][::-1]
        assert {state: [state.value] for state in ThreadState if state is not ThreadState.RESUMED} | {
            ThreadState.RESUMED: resumed_ids
        } == each
        assert [*resumed_ids, "running", "interrupted"] == several
        assert [*resumed_ids, *plain] == everything
        assert [] == nothing
        assert everything == [thread for page in by_two for thread in page]

    @promise("list-5")
    @queries
    async def test_metadata_selects_exactly(self, open_store: OpenStore) -> None:
        """Metadata pairs select threads whose latest checkpoint has them all, compared exactly: no case folding, no
        patterns, no paths, no parts; a pair that nobody has selects nothing.
        """
        stored = {
            "a": {"tenant": "acme", "region": "eu"},
            "b": {"tenant": "acme", "region": "us"},
            "c": {"tenant": "ACME"},
            "d": {"a.b": "x", 'q"': "y", "%": "z", "": ""},
            "e": {},
            "f": {"tenant": "acme "},
        }
        asked: list[tuple[dict[str, str], list[str]]] = [
            ({}, ["f", "e", "d", "c", "b", "a"]),
            ({"tenant": "acme"}, ["b", "a"]),
            ({"tenant": "acme", "region": "eu"}, ["a"]),
            ({"tenant": "acme", "region": "eu", "more": "1"}, []),
            ({"region": "acme"}, []),
            ({"tenant": "acm"}, []),
            ({"tenant": "acm%"}, []),
            ({"tenant": "*"}, []),
            ({"tenan_": "acme"}, []),
            ({"Tenant": "acme"}, []),
            ({"tenant": ""}, []),
            ({"nobody": "acme"}, []),
            ({"a.b": "x"}, ["d"]),
            ({"a": "x"}, []),
            ({'q"': "y"}, ["d"]),
            ({"%": "z"}, ["d"]),
            ({"": ""}, ["d"]),
            ({"old": "1"}, []),
            ({"x') OR 1=1 --": "1"}, []),
            ({"tenant": "' OR '1'='1"}, []),
        ]
        async with open_store() as store:
            for thread, metadata in stored.items():
                await store.save(checkpoint(thread, metadata={"old": "1"}))
                await store.save(checkpoint(thread, metadata=metadata))
            got = [(pairs, await ids(store, metadata=pairs)) for pairs, _ in asked]

        assert asked == got

    @promise("list-6")
    @queries
    async def test_times_select_exclusively(self, open_store: OpenStore) -> None:
        """updated_after and updated_before select threads whose time is later, or earlier, by a microsecond or more;
        the moments themselves are excluded.
        """
        async with open_store() as store:
            for n in range(5):
                await store.save(checkpoint(f"t{n}", at=BASE + n * MICRO))
            await store.save(checkpoint("resumed", INTERRUPTED, at=BASE - SECOND, resumed_at=BASE + 2 * MICRO))
            after = await ids(store, updated_after=BASE + 2 * MICRO)
            before = await ids(store, updated_before=BASE + 2 * MICRO)
            between = await ids(store, updated_after=BASE, updated_before=BASE + 3 * MICRO)
            far = await ids(store, updated_after=BASE.replace(year=1), updated_before=BASE.replace(year=9999))
            none = await ids(store, updated_after=BASE, updated_before=BASE)

        assert ["t4", "t3"] == after
        assert ["t1", "t0"] == before
        assert ["t2", "resumed", "t1"] == between
        assert 6 == len(far)
        assert [] == none

    @promise("list-7")
    @queries
    async def test_a_graph_selects_by_id_and_version(self, open_store: OpenStore) -> None:
        """graph_id and graph_version select threads whose latest checkpoint a graph of that ID, and that version,
        wrote; one without the other means any.
        """
        graphs = {"a": ("g", "1"), "b": ("g", "2"), "c": ("h", "1"), "d": ("G", "1")}
        async with open_store() as store:
            await store.save(checkpoint("none"))
            await store.save(checkpoint("moved", graph=GraphIdentity("g", "1")))
            await store.save(checkpoint("moved"))
            for thread, (graph, version) in graphs.items():
                await store.save(checkpoint(thread, graph=GraphIdentity(graph, version)))
            got = [
                await ids(store, graph_id="g"),
                await ids(store, graph_version="1"),
                await ids(store, graph_id="g", graph_version="1"),
                await ids(store, graph_id="nobody"),
                await ids(store, graph_id=""),
            ]

        assert [["b", "a"], ["d", "c", "a"], ["a"], [], []] == got

    @promise("list-8")
    @queries
    async def test_due_selects_inclusively(self, open_store: OpenStore) -> None:
        """due_before selects interrupted threads whose wait is due by then, the moment itself included; a resumed
        thread, one that is not interrupted and one without a due time is never due.
        """

        def waiting(thread_id: str, offset: int, **fields: Any) -> Any:
            wait = Wait(WaitKind.TIMER, due_at=BASE + offset * MICRO)
            return checkpoint(thread_id, fields.pop("status", INTERRUPTED), wait=wait, **fields)

        async with open_store() as store:
            for n in range(4):
                await store.save(waiting(f"t{n}", n))
            await store.save(waiting("resumed", 0, resumed_at=BASE))
            await store.save(waiting("failed", 0, status=CheckpointStatus.FAILED))
            await store.save(waiting("was due", 0))
            await store.save(completed("was due"))
            await store.save(checkpoint("person", INTERRUPTED))
            await store.save(checkpoint("event", INTERRUPTED, wait=Wait(WaitKind.EVENT, "paid")))
            got = [await ids(store, due_before=BASE + n * MICRO) for n in (-1, 0, 2, 10)]

        assert [[], ["t0"], ["t2", "t1", "t0"], ["t3", "t2", "t1", "t0"]] == got

    @promise("list-9")
    @queries
    async def test_leased_selects_by_live_leases(self, open_store: OpenStore, clock: FakeClock) -> None:
        """Leased selects the threads that a live lease holds, or those that none does; an expired or released lease
        does not count; a summary carries the live lease and no other; a lease alone makes no thread.
        """
        async with open_store() as store:
            for thread in ("free", "held", "expired", "released"):
                await store.save(checkpoint(thread))
            expired = await store.acquire_lease("expired", owner="o", ttl=SHORT)
            assert expired is not None
            await outlive(store, clock, expired, SHORT)
            released = await store.acquire_lease("released", owner="o", ttl=LONG)
            assert released is not None
            await store.release_lease(released)
            held = await store.acquire_lease("held", owner="worker", ttl=LONG)
            await store.acquire_lease("lease only", owner="o", ttl=LONG)
            got = [await ids(store, leased=leased) for leased in (True, False, None)]
            leases = {thread.thread_id: thread.lease for thread in (await store.list_threads()).threads}

        assert [["held"], ["released", "free", "expired"], ["released", "held", "free", "expired"]] == got
        assert {"released": None, "held": held, "free": None, "expired": None} == leases

    @promise("list-10")
    @queries
    async def test_filters_are_anded(self, open_store: OpenStore) -> None:
        """A thread is listed only when it passes every filter that is given: one that fails any single one is not."""

        def save(thread_id: str, **other: Any) -> Any:
            fields: dict[str, Any] = {
                "metadata": {"tenant": "acme"},
                "graph": GraphIdentity("g", "1"),
                "wait": Wait(WaitKind.TIMER, due_at=BASE),
                "at": BASE,
            } | other
            return checkpoint(thread_id, fields.pop("status", INTERRUPTED), **fields)

        async with open_store() as store:
            for record in (
                save("all"),
                save("state", status=CheckpointStatus.FAILED),
                save("metadata", metadata={"tenant": "other"}),
                save("early", at=BASE - SECOND),
                save("late", at=BASE + SECOND),
                save("graph", graph=GraphIdentity("h", "1")),
                save("version", graph=GraphIdentity("g", "2")),
                save("due", wait=Wait(WaitKind.TIMER, due_at=BASE + SECOND)),
                save("leased"),
            ):
                await store.save(record)
            await store.acquire_lease("leased", owner="o", ttl=LONG)
            filters: dict[str, Any] = {
                "states": {ThreadState.INTERRUPTED},
                "metadata": {"tenant": "acme"},
                "updated_after": BASE - SECOND,
                "updated_before": BASE + SECOND,
                "graph_id": "g",
                "graph_version": "1",
                "due_before": BASE,
                "leased": False,
            }
            together = await ids(store, **filters)
            without = {
                name: await ids(store, **{key: value for key, value in filters.items() if key != name})
                for name in filters
            }

        assert ["all"] == together
        # A failed thread is never due, so leaving out the states lets no further thread in.
        missing = {
            "states": [],
            "metadata": ["metadata"],
            "updated_after": ["early"],
            "updated_before": ["late"],
            "graph_id": ["graph"],
            "graph_version": ["version"],
            "due_before": ["due"],
            "leased": ["leased"],
        }
        assert {name: sorted(["all", *threads]) for name, threads in missing.items()} == {
            name: sorted(threads) for name, threads in without.items()
        }

    @promise("list-11")
    @queries
    @pytest.mark.parametrize("limit", [1, 3, 10, 11, 1000])
    async def test_pages_hold_the_limit_and_end(self, open_store: OpenStore, limit: int) -> None:
        """Each page but the last holds exactly `limit` threads and a cursor, the last has no cursor; together they
        hold each thread once, also when many have the same time; filters hold on every page.
        """
        async with open_store() as store:
            for n in range(10):
                await store.save(checkpoint(f"t{n}", at=BASE + (n // 4) * SECOND, metadata={"even": str(n % 2 == 0)}))
            got = await pages(store, limit=limit)
            even = await pages(store, limit=limit, metadata={"even": "True"})

        expected = [f"t{n}" for n in reversed(range(10))]
        assert [expected[start : start + limit] for start in range(0, 10, limit)] == got
        assert [expected[1::2][start : start + limit] for start in range(0, 5, limit)] == even

    @promise("list-12")
    @queries
    async def test_a_thread_that_does_not_change_is_seen_exactly_once(self, open_store: OpenStore) -> None:
        """While somebody pages, threads are saved, leased, added and finished: each thread that does not change is
        seen exactly once, on this handle or another.
        """
        async with open_store() as one, open_store() as two:
            for n in range(30):
                await one.save(checkpoint(f"t{n:02}", at=BASE + (n % 5) * SECOND))
            seen, cursor, turn = [], None, 0
            while True:
                page = await (one, two)[turn % 2].list_threads(ThreadQuery(limit=4, cursor=cursor))
                seen += [thread.thread_id for thread in page.threads]
                cursor = page.next_cursor
                if cursor is None:
                    break
                await one.save(checkpoint(f"new{turn}", at=BASE + 2 * SECOND))
                await two.save(completed(f"t{turn:02}", at=BASE + 60 * SECOND))
                await one.acquire_lease(f"t{turn + 20:02}", owner="o", ttl=LONG)
                turn += 1

        unchanged = [f"t{n:02}" for n in range(turn, 30)]
        assert unchanged == sorted(thread for thread in seen if thread in set(unchanged))

    @promise("list-13")
    @queries
    @pytest.mark.parametrize(
        "cursor",
        ["", "garbage", "AAAA", "====", "e30=", "W10=", "WzEsMl0=", "WyJhIiwiYiJd", "\x00", "\ud800", "\u00e9", "[1]"],
    )
    async def test_a_cursor_that_no_page_gave_is_refused(self, open_store: OpenStore, cursor: str) -> None:
        """A cursor that no listing gave raises InvalidInputError that names it; it is never taken for the first
        page.
        """
        async with open_store() as store:
            await store.save(checkpoint())
            with pytest.raises(InvalidInputError) as caught:
                await store.list_threads(ThreadQuery(cursor=cursor))

        assert "cursor" == caught.value.argument

    @promise("list-14")
    @queries
    async def test_an_empty_store_lists_one_empty_page(self, open_store: OpenStore) -> None:
        """An empty store lists one empty page without a cursor."""
        async with open_store() as store:
            page = await store.list_threads()

        assert ([], None) == (list(page.threads), page.next_cursor)

    @promise("list-15")
    @pytest.mark.refuses(Capability.QUERY)
    async def test_a_store_that_cannot_query_says_so(self, open_store: OpenStore) -> None:
        """A store that does not declare queries raises UnsupportedError from list_threads and get_log."""
        async with open_store() as store:
            await store.save(checkpoint())
            with pytest.raises(UnsupportedError) as listing:
                await store.list_threads()
            with pytest.raises(UnsupportedError) as log:
                await store.get_log("t")

        assert [Capability.QUERY] * 2 == [listing.value.capability, log.value.capability]
