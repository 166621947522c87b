"""Faults on the wire, at each message of a thread's life: nothing acknowledged is lost, nothing is written twice."""

import asyncio
import itertools
from datetime import timedelta

import pytest
from postgres_faults import store_at
from postgres_support import query

from strata_conformance.servers import FaultProxy
from strata_conformance.servers.lives import (
    LATER,
    LIVED,
    WIRE_FAULTS,
    FirstAttempt,
    Life,
    Writes,
    checkpoint,
    outcome_of,
)
from strata_core.errors import StoreUnavailableError
from strata_core.store import RowStore
from strata_postgres import PostgresBackend, PostgresOptions

WRITE = b"strata_commit"


def left(url: str) -> tuple[int, ...]:
    """How many heads, rows, blobs and entries of the listing there are."""
    tables = ("strata_heads", "strata_rows", "strata_blobs", "strata_listing")
    (counts,) = query(url, "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables))
    return tuple(counts)


@pytest.mark.parametrize("kind", WIRE_FAULTS)
def test_a_fault_at_every_message_of_a_life_changes_no_outcome(proxy: FaultProxy, url: str, kind: str) -> None:
    """Each message fails once; the store sends it again by itself, a write under the same write ID.

    A read that hangs is not made again: whoever asked has waited long enough.
    """
    hangs = kind.endswith("hangs")
    first = FirstAttempt(WRITE if hangs else b"")

    async def check() -> None:
        async with store_at(proxy.url(url), max_connections=1) as store:
            assert LIVED == await Life(store, "whole").run()
            fault = WIRE_FAULTS[kind](proxy, first)
            assert LIVED == await Life(store, "struck").run()
            assert (8 if hangs else 14) <= fault.fired == first.struck
            proxy.release(fault)

    asyncio.run(check())

    assert (0, 0, 0, 0) == left(url)


def test_everything_works_when_everything_takes_longer(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        async with store_at(proxy.url(url), command_timeout=timedelta(seconds=60)) as store:
            proxy.delay(requests=0.005, replies=0.01)
            for lived in await asyncio.gather(*(Life(store, f"{number}", purge=False).run() for number in range(10))):
                assert LIVED == lived | {"purge": 1}
            assert 10 == await store.purge(LATER)

    asyncio.run(check())

    assert (0, 0, 0, 0) == left(url)


@pytest.mark.parametrize("kind", ["request lost", "answer lost"])
def test_a_write_that_fails_for_good_may_have_been_done_and_can_be_repeated(
    proxy: FaultProxy, url: str, kind: str
) -> None:
    async def check() -> None:
        async with store_at(proxy.url(url)) as store:
            writes = Writes(store)
            await writes.prepare()
            rows = "SELECT count(*) FROM strata_rows"
            ((before,),) = query(url, rows)
            fault = WIRE_FAULTS[kind](proxy, lambda request: WRITE in request.content)
            failed = await writes.make() | {"purge": await outcome_of(store.purge(LATER))}
            assert {(StoreUnavailableError, True)} == {
                (type(e), getattr(e, "maybe_written", None)) for e in failed.values()
            }
            assert [(before + (0 if kind == "request lost" else 3),)] == query(url, rows)
            proxy.release(fault)

            outcomes = await writes.make()
            assert ["save", "conditional", "fenced"] == [name for name, outcome in outcomes.items() if outcome == 1]
            assert ("lease", 0) == outcomes["acquire"]
            assert ("lease", 0) == outcomes["renew"]
            assert outcomes["release"] is None
            assert await store.live_lease("release") is None
            await store.purge(LATER)
            assert await store.load("purge") is None

    asyncio.run(check())

    counts = "SELECT h.thread_id, count(*)::int FROM strata_heads AS h JOIN strata_rows USING (thread) GROUP BY 1"
    expected = {"save": 2, "conditional": 2, "fenced": 2, "acquire": 1, "renew": 1, "release": 1}
    assert expected == dict(query(url, counts))


def test_what_never_left_was_not_written_and_the_pool_recovers(proxy: FaultProxy, url: str) -> None:
    """Every connection breaks and no new one can be made."""

    async def check() -> None:
        async with store_at(proxy.url(url), pool_timeout=timedelta(seconds=0.05)) as store:
            writes = Writes(store)
            await writes.prepare()
            before = left(url)
            proxy.refuse()
            proxy.reset_all()
            failed = await writes.make()
            failed |= {
                "load": await outcome_of(store.load("save")),
                "log": await outcome_of(store.get_log("save")),
                "list": await outcome_of(store.list_threads()),
                "purge": await outcome_of(store.purge(LATER)),
                "set-up": await outcome_of(store.setup()),
            }
            said = {(type(error), getattr(error, "maybe_written", None)) for error in failed.values()}
            assert {(StoreUnavailableError, False)} == said
            assert {True} == {"refused" in str(error) for error in failed.values()}
            assert before == left(url)

            proxy.accept()
            while isinstance(await outcome_of(store.load("save")), StoreUnavailableError):
                await asyncio.sleep(0)
            assert 1 == (await writes.make())["save"]

    asyncio.run(check())


def test_a_connection_that_breaks_while_it_is_made_is_made_again(proxy: FaultProxy, url: str) -> None:
    async def check() -> None:
        async with store_at(proxy.url(url)) as store:
            await store.save(checkpoint("t", 0))
            proxy.reset_all()
            proxy.reset("connect", times=2)
            assert 1 == await store.save(checkpoint("t", 1))
            assert 1 == (await store.load("t")).sequence  # type: ignore[union-attr]

    asyncio.run(check())


@pytest.mark.parametrize("kind", [kind for kind in WIRE_FAULTS if not kind.endswith("short")])
def test_a_fault_at_any_message_of_the_set_up_is_told_and_leaves_it_undone_or_done(
    proxy: FaultProxy, url: str, kind: str
) -> None:
    async def check() -> None:
        for nth in range(1, 20):
            seen = itertools.count(1)
            place = url + f"_{nth}"
            fault = WIRE_FAULTS[kind](proxy, lambda _, seen=seen, nth=nth: next(seen) == nth)
            options = PostgresOptions(command_timeout=timedelta(seconds=0.25), min_connections=0)
            failed = await outcome_of(opened_once(proxy.url(place), options))
            fault.withdraw()
            if not fault.fired:
                assert 5 <= nth
                return
            assert StoreUnavailableError is type(failed)
            proxy.release(fault)
            await opened_once(place, PostgresOptions())
            assert [(2,)] == query(place, "SELECT version FROM strata_version")
        raise AssertionError("the set-up has no end")

    asyncio.run(check())


async def opened_once(url: str, options: PostgresOptions) -> None:
    async with RowStore(PostgresBackend(url, options=options)):
        pass


def test_opening_without_a_server_fails_at_once_and_says_why(proxy: FaultProxy, url: str) -> None:
    proxy.refuse()
    failed = asyncio.run(outcome_of(opened_once(proxy.url(url), PostgresOptions())))

    assert isinstance(failed, StoreUnavailableError)
    assert "refused" in str(failed)
    assert not failed.maybe_written


def test_opening_at_a_server_that_takes_connections_and_says_nothing_ends_with_the_connect_timeout(
    proxy: FaultProxy, url: str
) -> None:
    proxy.hang("connect", times=None)
    options = PostgresOptions(connect_timeout=timedelta(seconds=2))
    failed = asyncio.run(outcome_of(opened_once(proxy.url(url), options)))

    assert isinstance(failed, StoreUnavailableError)
    assert "timeout" in str(failed)
