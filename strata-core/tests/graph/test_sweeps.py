"""Recovering many threads at once: every dead one of ours, past whatever else is in the store."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from lost_support import STOOD_STILL, lost

from strata_core.errors import CorruptCheckpointError, InvalidInputError, SchemaVersionError, StoreUnavailableError
from strata_core.graph import CheckpointPolicy, Completed, Failed, FailureCode, StateGraph, SweepReport
from strata_core.memory import MemoryBackend
from strata_core.records import Checkpoint, CheckpointStatus, GraphIdentity
from strata_core.store import RowStore
from strata_core.testing import FakeClock

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

AT = datetime(2026, 1, 1, tzinfo=UTC)
OURS = GraphIdentity("ours", "1")


def dead(thread_id: str, minute: int = 0, graph: GraphIdentity | None = OURS, **changes: Any) -> Checkpoint:
    at = AT + timedelta(minutes=minute)
    seed = Checkpoint(thread_id, CheckpointStatus.RUNNING, {"n": 0}, at, None, "A", graph=graph)
    return attrs.evolve(seed, **changes)


def counting(world: Any, work: Any = None, **options: Any) -> Any:
    defaults = {"identity": OURS, "checkpointing": CheckpointPolicy.EVERY_NODE, "clock": world.clock}
    return new(dict).add_node("A", work or (lambda state: {"n": state["n"] + 1})).compile(**defaults | options)


def finished(*thread_ids: str) -> dict[str, Any]:
    return {thread_id: Completed(thread_id, {"n": 1}) for thread_id in thread_ids}


def test_every_dead_thread_is_finished_across_pages(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            ids = [f"t{n:03}" for n in range(230)]
            for n, thread_id in enumerate(ids):
                await store.save(dead(thread_id, n))
            report = await counting(world).recover_all(store, limit=1000, concurrency=7)

            assert SweepReport(finished(*ids), {}, {}, True) == report
            assert SweepReport({}, {}, {}, True) == await counting(world).recover_all(store)

    asyncio.run(main())


def test_no_more_are_taken_than_the_limit_and_no_more_at_once_than_asked(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            at_once: set[int] = set()
            under_way = 0

            async def work(state: Any) -> Any:
                nonlocal under_way
                under_way += 1
                at_once.add(under_way)
                async with asyncio.timeout(10):  # a server answers one after the other
                    while max(at_once) < 4:
                        await asyncio.sleep(0)
                for _ in range(3):
                    await asyncio.sleep(0)
                under_way -= 1
                return {"n": state["n"] + 1}

            for n in range(20):
                await store.save(dead(f"t{n}", n))
            graph = counting(world, work)
            first = await graph.recover_all(store, limit=8, concurrency=4)
            second = await graph.recover_all(store, limit=12, concurrency=4)

            assert (8, False) == (len(first.results), first.is_complete)
            assert (12, True) == (len(second.results), second.is_complete)
            assert 4 == max(at_once)

    asyncio.run(main())


def test_threads_of_other_graphs_are_left_alone_and_do_not_use_up_the_limit(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            for n in range(150):
                await store.save(dead(f"other{n}", n + 1, GraphIdentity("other", "1")))
            await store.save(dead("ours"))
            await store.save(dead("nobody's", graph=None))

            with_identity = await counting(world).recover_all(store, limit=1)
            without = await counting(world, identity=None).recover_all(store, limit=1)

            assert finished("ours") == with_identity.results
            assert finished("nobody's") == without.results
            assert {} == without.refused

    asyncio.run(main())


def test_threads_that_are_refused_do_not_use_up_the_limit_and_are_told(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            for n in range(120):
                await store.save(dead(f"gone{n}", n + 1, next_node="Gone"))
            await store.save(dead("misfit", frozen_state={"n": "one"}))
            await store.save(dead("t"))
            graph = (
                new(dict[str, int])
                .add_node("A", lambda state: {"n": state["n"] + 1})
                .compile(identity=OURS, checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
            )
            report = await graph.recover_all(store, limit=2, concurrency=2)

            assert finished("t") == report.results
            assert {FailureCode.UNKNOWN_NODE: 120, FailureCode.REHYDRATION_FAILED: 1} == Counter(
                refused.code for refused in report.refused.values()
            )
            assert report.is_complete

    asyncio.run(main())


def test_threads_that_cannot_be_loaded_do_not_use_up_the_limit_but_those_of_a_store_that_is_down_do(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:

            class Broken:
                def __init__(self, *errors: Exception) -> None:
                    self._errors = list(errors)

                def __getattr__(self, name: str) -> Any:
                    return getattr(store, name)

                async def load(self, thread_id: str) -> Any:
                    if self._errors:
                        raise self._errors.pop()
                    return await store.load(thread_id)

            for n in range(3):
                await store.save(dead(f"t{n}", n))
            down = await counting(world).recover_all(Broken(StoreUnavailableError("down")), limit=1)
            damaged, newer = CorruptCheckpointError("t", 0, "bad"), SchemaVersionError("new", found="9", supported="1")
            report = await counting(world).recover_all(Broken(damaged, newer), limit=1, concurrency=1)

            assert (0, 1, False) == (len(down.results), len(down.errors), down.is_complete)
            assert (1, 2, True) == (len(report.results), len(report.errors), report.is_complete)

    asyncio.run(main())


def test_a_thread_that_was_listed_when_the_limit_was_reached_is_left_for_the_next_call(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:

            class Slow:
                """Gives one thread a page, and each page only when the work on the one before is done."""

                def __getattr__(self, name: str) -> Any:
                    return getattr(store, name)

                async def list_threads(self, query: Any) -> Any:
                    for _ in range(query.cursor is not None and 100):
                        await asyncio.sleep(0)
                    return await store.list_threads(attrs.evolve(query, limit=1))

            for n in range(3):
                await store.save(dead(f"t{n}", n))
            report = await counting(world).recover_all(Slow(), limit=2, concurrency=2)

            assert (2, False) == (len(report.results), report.is_complete)

    asyncio.run(main())


def test_held_threads_are_not_even_looked_at(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            for n in range(12):
                await store.acquire_lease(
                    f"held{n}", owner="somebody", ttl=timedelta(minutes=1), save=dead(f"held{n}", n + 1)
                )
            await store.save(dead("t"))

            assert SweepReport(finished("t"), {}, {}, True) == await counting(world).recover_all(store)

    asyncio.run(main())


def test_what_happens_to_one_thread_does_not_stop_the_others(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with world.open() as store:

            def work(state: Any, ctx: Any) -> Any:
                if ctx.thread_id == "t1":
                    raise ValueError("no")
                return {"n": state["n"] + 1}

            class Broken:
                def __getattr__(self, name: str) -> Any:
                    return getattr(store, name)

                async def load(self, thread_id: str) -> Any:
                    if thread_id == "t2":
                        raise StoreUnavailableError("it does not answer")
                    return await store.load(thread_id)

            for n in range(4):
                await store.save(dead(f"t{n}", n))
            report = await counting(world, work).recover_all(Broken(), concurrency=1)

            assert finished("t0", "t3") == {key: value for key, value in report.results.items() if key != "t1"}
            assert (FailureCode.NODE_FAILED, "A") == (report.results["t1"].code, report.results["t1"].node)
            assert ["t2"] == list(report.errors)
            assert isinstance(report.errors["t2"], StoreUnavailableError)
            assert {} == report.refused

    with caplog.at_level(logging.WARNING, "strata_core.graph"):
        asyncio.run(main())

    assert "thread 't2' was left: StoreUnavailableError" in caplog.messages


@pytest.mark.parametrize("bad", ["first", "amid", "last", "several", "all"])
@pytest.mark.parametrize("envelope", [b"nothing", b'{"schema_version": "1.99.0"}'])
def test_a_thread_that_cannot_be_read_keeps_nobody_else_waiting(bad: str, envelope: bytes) -> None:
    async def main() -> None:
        clock = FakeClock()
        memory = MemoryBackend(clock)
        ids = [f"t{n:03}" for n in range(130)]
        spoilt = {"first": [0], "amid": [64], "last": [129], "several": [3, 4, 90, 128], "all": [*range(130)]}[bad]
        async with RowStore(memory) as store:
            for n, thread_id in enumerate(ids):
                await store.save(dead(thread_id, n))
            for n in spoilt:
                rows = memory._rows[ids[n]]
                rows[0] = attrs.evolve(rows[0], envelope=envelope)

            class World:
                pass

            world: Any = World()
            world.clock = clock
            report = await counting(world).recover_all(store, limit=1000)
            sound = [thread_id for n, thread_id in enumerate(ids) if n not in spoilt]

            assert finished(*sound) == report.results
            assert {ids[n] for n in spoilt} == set(report.errors)
            assert all(isinstance(e, CorruptCheckpointError | SchemaVersionError) for e in report.errors.values())
            assert report.is_complete

    asyncio.run(main())


class Listing:
    """A store whose listing fails at the n-th page."""

    def __init__(self, store: Any, at: int, error: Exception) -> None:
        self._store = store
        self._left = at
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list_threads(self, query: Any) -> Any:
        if self._left == 0:
            raise self._error
        self._left -= 1
        return await self._store.list_threads(query)


class TestListingFails:
    @pytest.mark.parametrize("call", ["recover_all", "wake_due"])
    @pytest.mark.parametrize(
        "error",
        [StoreUnavailableError("down"), SchemaVersionError("was never set up", found="none", supported="2")],
        ids=["down", "never-set-up"],
    )
    def test_at_once_and_nothing_is_done(self, world: Any, error: Exception, call: str) -> None:
        async def main() -> None:
            async with world.open() as store:
                await store.save(dead("t"))
                with pytest.raises(type(error)):
                    await getattr(counting(world), call)(Listing(store, 0, error))

                assert 1 == len(await world.log(store, "t"))

        asyncio.run(main())

    @pytest.mark.parametrize(
        "error",
        [StoreUnavailableError("down"), CorruptCheckpointError("t", 3, "which this store cannot pass over")],
        ids=["down", "unreadable"],
    )
    def test_later_and_what_was_done_is_told(self, world: Any, error: Exception) -> None:
        async def main() -> None:
            async with world.open() as store:
                for n in range(150):
                    await store.save(dead(f"t{n}", n))
                report = await counting(world).recover_all(Listing(store, 1, error), limit=1000)

                assert (100, False) == (len(report.results), report.is_complete)
                assert 50 == len((await counting(world).recover_all(store)).results)

        asyncio.run(main())


def test_cancelling_it_leaves_every_thread_whole(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            started = 0
            all_started = asyncio.Event()

            async def work(state: Any) -> Any:
                nonlocal started
                started += 1
                if started == 4:
                    all_started.set()
                await asyncio.Event().wait()

            for n in range(6):
                await store.save(dead(f"t{n}", n))
            before = len(asyncio.all_tasks())
            task = asyncio.create_task(counting(world, work).recover_all(store, concurrency=4))
            await all_started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            last = Counter([(await world.rows(store, f"t{n}"))[-1] for n in range(6)])
            assert {("cancelled", "A", "A"): 4, ("running", None, "A"): 2} == last
            assert [None] * 6 == [await store.live_lease(f"t{n}") for n in range(6)]
            assert before == len(asyncio.all_tasks())

    asyncio.run(main())


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_node_that_cancels_its_own_task_stops_nobody_else_and_is_told(world: Any, concurrency: int) -> None:
    async def main() -> None:
        async with world.open() as store:

            async def work(state: Any, ctx: Any) -> Any:
                if ctx.thread_id in {"t1", "t4"}:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                    await asyncio.sleep(0)
                return {"n": state["n"] + 1}

            for n in range(6):
                await store.save(dead(f"t{n}", n))
            report = await counting(world, work).recover_all(store, concurrency=concurrency)

            assert finished("t0", "t2", "t3", "t5") == report.results
            assert {"t1", "t4"} == set(report.errors)
            assert {RuntimeError} == set(map(type, report.errors.values()))
            assert report.is_complete
            assert ("cancelled", "A", "A") == (await world.rows(store, "t4"))[-1]

    asyncio.run(main())


def test_sweeps_of_several_processes_share_the_threads(world: Any) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            ran: Counter[str] = Counter()

            def work(state: Any, ctx: Any) -> Any:
                ran[ctx.thread_id] += 1
                return {"n": state["n"] + 1}

            ids = [f"t{n}" for n in range(60)]
            for n, thread_id in enumerate(ids):
                await one.save(dead(thread_id, n))
            graph = counting(world, work)
            reports = await asyncio.gather(*(graph.recover_all(store) for store in (one, other, one, other)))

            assert dict.fromkeys(ids, 1) == ran
            assert sorted(ids) == sorted(thread_id for report in reports for thread_id in report.results)
            for report in reports:
                assert isinstance(report, SweepReport)
                assert {} == report.errors
                for refused in report.refused.values():
                    assert isinstance(refused, Failed)
                    assert refused.code in {
                        FailureCode.ALREADY_RESUMED,
                        FailureCode.COMPLETED,
                        FailureCode.LEASE_HELD,
                    }

    asyncio.run(main())


def test_a_recovery_that_loses_its_lease_is_told_and_a_later_sweep_takes_the_thread_again(world: Any) -> None:
    ttl = timedelta(seconds=30)

    async def main() -> None:
        async with world.pair() as (one, other):
            ran: Counter[str] = Counter()

            def work(state: Any, ctx: Any) -> Any:
                ran[ctx.thread_id] += 1
                if ran[ctx.thread_id] == 1:
                    world.clock.advance(ttl)  # the loop has no turn in which the lease could be renewed
                return {"n": state["n"] + 1}

            class Paged:
                """Gives one thread a page, so that what is updated meanwhile comes up again behind the others."""

                def __getattr__(self, name: str) -> Any:
                    return getattr(one, name)

                async def list_threads(self, query: Any) -> Any:
                    return await one.list_threads(attrs.evolve(query, limit=1))

            ids = ["t0", "t1", "t2"]
            for n, thread_id in enumerate(ids):
                await one.save(dead(thread_id, created_at=world.clock.now() - timedelta(days=3 - n)))
            graph = counting(world, work, lease_ttl=ttl, owner="us")
            first = await graph.recover_all(Paged(), concurrency=1)
            states = [(await world.rows(one, thread_id))[-1][0] for thread_id in ids]
            for thread_id in ids:
                await world.lapse(other, thread_id, timedelta(0))
            second = await graph.recover_all(other)

            everyone_lost = {thread_id: lost("A", STOOD_STILL, ttl, thread_id) for thread_id in ids}
            assert SweepReport(everyone_lost, {}, {}, True) == first
            assert ["running"] * 3 == states
            assert SweepReport(finished(*ids), {}, {}, True) == second
            assert dict.fromkeys(ids, 2) == ran
            log = await world.log(one, "t0")
            assert ["running", "running", "running", "completed"] == [row.status for row in log]
            assert [None, "us", "us", None] == [row.metadata.get("strata.recovered_by") for row in log]

    asyncio.run(main())


def test_the_oldest_are_taken_first_however_many_come_after_them(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            took = []
            for n in range(0, 12, 3):
                for late in range(n, n + 3):  # three die while two are taken
                    await store.save(dead(f"t{late:02}", late))
                took.append(set((await counting(world).recover_all(store, limit=2)).results))

            assert [{"t00", "t01"}, {"t02", "t03"}, {"t04", "t05"}, {"t06", "t07"}] == took

    asyncio.run(main())


def test_what_a_node_does_to_a_context_variable_does_not_reach_the_next_thread(world: Any) -> None:
    from contextvars import ContextVar

    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")

    async def main() -> None:
        async with world.open() as store:
            seen = []

            def work(state: Any, ctx: Any) -> Any:
                seen.append(tenant.get())
                tenant.set(ctx.thread_id)
                return state

            for n in range(3):
                await store.save(dead(f"t{n}", n))
            await counting(world, work).recover_all(store, concurrency=1)

            assert ["nobody"] * 3 == seen

    asyncio.run(main())


class TestArguments:
    @pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 1001}, {"limit": True}, {"limit": None}])
    def test_a_limit_is_one_to_a_thousand(self, world: Any, options: Any) -> None:
        self.refuse(world, "limit", options)

    @pytest.mark.parametrize("options", [{"concurrency": 0}, {"concurrency": 1001}, {"concurrency": True}])
    def test_so_is_how_many_at_once(self, world: Any, options: Any) -> None:
        self.refuse(world, "concurrency", options)

    def refuse(self, world: Any, argument: str, options: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                with pytest.raises(InvalidInputError, match=f"^{argument}: "):
                    await counting(world).recover_all(store, **options)

        asyncio.run(main())

    def test_a_store_that_cannot_list_is_refused(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:

                class Plain:
                    def __getattr__(self, name: str) -> Any:
                        if name in ("list_threads", "get_log"):
                            raise AttributeError(name)
                        return getattr(store, name)

                with pytest.raises(InvalidInputError, match=r"^store: must be able to list threads, which Plain"):
                    await counting(world).recover_all(Plain())

        asyncio.run(main())
