"""A call that is cancelled while it waits takes nothing with it; at each await of each call, the suite cancels too."""

import asyncio
import gc
import itertools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from postgres_faults import LATER, LONG, checkpoint, outcome_of, store_at
from postgres_support import save

from strata_conformance.servers import FaultProxy
from strata_core.options import Setup
from strata_core.store import RowStore
from strata_postgres import PostgresBackend, PostgresOptions

WRITE = b"strata_commit"
PATIENT = timedelta(seconds=60)
numbers = itertools.count()


def calls(store: RowStore) -> dict[str, Callable[[], Awaitable[Any]]]:
    """A call of each kind, that could go on for ever."""
    return {
        "save": lambda: store.save(checkpoint("t", next(numbers))),
        "acquire": lambda: store.acquire_lease("u", owner="o", ttl=LONG, save=checkpoint("u", 0)),
        "load": lambda: store.load("t"),
        "list": store.list_threads,
        "log": lambda: store.get_log("t"),
        "purge": lambda: store.purge(LATER),
    }


async def cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def struck(fired: Callable[[], int], times: int = 1) -> None:
    while fired() < times:
        await asyncio.sleep(0.001)


async def numbered(store: RowStore, thread_id: str = "t") -> int:
    """How many rows a thread has, which are in order and whole."""
    entries = (await store.get_log(thread_id, limit=1000)).entries

    assert list(range(len(entries))) == [entry.sequence for entry in entries]
    assert len(entries) == len({entry.checkpoint.frozen_state["step"] for entry in entries})
    return len(entries)


def test_calls_that_are_cancelled_while_a_connection_is_made(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        async with store_at(proxy.url(url), min_connections=0, max_connections=1, command_timeout=PATIENT) as store:
            proxy.reset_all()
            fault = proxy.hang("connect")
            tasks = [asyncio.ensure_future(call()) for call in calls(store).values()]
            waiting = asyncio.ensure_future(store.save(checkpoint("other", 0)))
            await struck(lambda: fault.fired)
            for task in tasks:
                await cancelled(task)
            proxy.release(fault)

            assert 0 == await waiting
            assert await numbered(store) == await store.save(checkpoint("t", next(numbers)))

    asyncio.run(check())


def test_calls_that_are_cancelled_while_they_wait_for_a_connection(proxy: FaultProxy, url: str) -> None:
    """Nor do they keep it, nor does the pool make another one for them."""

    async def check() -> None:
        async with store_at(proxy.url(url), max_connections=1, command_timeout=PATIENT) as store:
            await store.save(checkpoint("t", next(numbers)))
            before = proxy.connections
            fault = proxy.hang("reply")
            busy = asyncio.ensure_future(store.load("t"))
            await struck(lambda: fault.fired)
            tasks = [asyncio.ensure_future(call()) for _ in range(5) for call in calls(store).values()]
            waiting = asyncio.ensure_future(store.save(checkpoint("other", 0)))
            for _ in range(5):
                await asyncio.sleep(0)
            for task in tasks:
                await cancelled(task)
            proxy.release(fault)

            assert 0 == (await busy).sequence  # type: ignore[union-attr]
            assert 0 == await waiting
            assert await numbered(store) == await store.save(checkpoint("t", next(numbers)))
            assert before == proxy.connections

    asyncio.run(check())


@pytest.mark.parametrize("at", ["request", "reply"])
def test_a_batch_that_is_away_comes_to_its_end_whoever_of_it_is_cancelled(proxy: FaultProxy, url: str, at: Any) -> None:
    async def check() -> None:
        async with store_at(proxy.url(url), command_timeout=PATIENT) as store:
            fault = proxy.hang(at, match=WRITE)
            saves = [asyncio.ensure_future(store.save(checkpoint(f"t{number}", 0))) for number in range(10)]
            await struck(lambda: fault.fired)
            behind = [asyncio.ensure_future(store.save(checkpoint(f"t{number}", 1))) for number in range(10)]
            await asyncio.sleep(0)
            for number in range(0, 10, 2):
                await cancelled(saves[number])
            for number in range(0, 10, 3):
                await cancelled(behind[number])
            proxy.release(fault)

            assert [0] * 5 == await asyncio.gather(*saves[1::2])
            left = [number for number in range(10) if number % 3]
            assert [1] * 6 == await asyncio.gather(*(behind[number] for number in left))
            # What was away is there; what waited behind it and was cancelled never left.
            assert [2 if number in left else 1 for number in range(10)] == [
                await numbered(store, f"t{number}") for number in range(10)
            ]

    asyncio.run(check())


@pytest.mark.parametrize("reads", [True, False])
def test_the_failure_of_a_call_that_nobody_waits_for_is_nobodys(
    proxy: FaultProxy, url: str, reads: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        backend = PostgresBackend(proxy.url(url), options=PostgresOptions(pool_timeout=timedelta(seconds=0.1)))
        await backend.open(read_only=False, setup=Setup.AUTO)
        await backend.commit([save("t")])
        fault = proxy.hang("reply", times=None)
        work = backend.read_head("t") if reads else backend.commit([save("t")])
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        await struck(lambda: fault.fired)
        await cancelled(task)
        proxy.refuse()
        proxy.reset_all()
        await backend.close()
        del task, work
        gc.collect()

    asyncio.run(check())

    assert [] == [record for record in caplog.records if record.name == "asyncio"]


def test_an_open_that_is_cancelled_lets_go(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        for at, match in (
            ("connect", None),
            ("request", b"pg_namespace"),
            ("reply", b"pg_advisory"),
            ("reply", b"CREATE"),
        ):
            fault = proxy.hang(at, match=match)  # type: ignore[arg-type]
            backend = PostgresBackend(proxy.url(url), options=PostgresOptions(min_connections=0))
            opening = asyncio.ensure_future(backend.open(read_only=False, setup=Setup.AUTO))
            await struck(lambda fault=fault: fault.fired)  # type: ignore[misc]
            opening.cancel()
            asyncio.get_running_loop().call_later(0.05, proxy.release, fault)
            with pytest.raises(asyncio.CancelledError):
                await opening
            await backend.close()
        async with store_at(proxy.url(url)) as store:
            assert 0 == await store.save(checkpoint("t", 0))

    asyncio.run(check())


def test_a_close_that_is_cancelled_closes_all_the_same(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        backend = PostgresBackend(proxy.url(url))
        await backend.open(read_only=False, setup=Setup.AUTO)
        fault = proxy.hang("reply")
        reading = asyncio.ensure_future(outcome_of(backend.read_head("t")))
        await struck(lambda: fault.fired)
        closing = asyncio.ensure_future(backend.close())
        await asyncio.sleep(0)
        await cancelled(closing)
        proxy.release(fault)
        await backend.close()

        assert reading.done()
        assert (await reading) is None
        assert {asyncio.current_task()} == asyncio.all_tasks()

    asyncio.run(check())
