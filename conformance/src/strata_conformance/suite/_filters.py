"""Filters of a listing, one by one and together."""

from __future__ import annotations

from typing import Any

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, SHORT, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._listing import MICRO, SECOND, ids, pages, queries
from strata_conformance.suite._time import outlive
from strata_core.records import (
    CheckpointStatus,
    GraphIdentity,
    ThreadQuery,
    ThreadState,
    Wait,
    WaitKind,
)
from strata_core.testing import FakeClock

__all__ = ["FilterTests"]

INTERRUPTED = CheckpointStatus.INTERRUPTED


class FilterTests(PortTests):
    """Which threads a query selects."""

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
            first = await store.list_threads(ThreadQuery(limit=1))
            (later,) = (await store.list_threads(ThreadQuery(limit=1, cursor=first.next_cursor))).threads

        assert ("held", held) == (later.thread_id, later.lease)
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
