"""Faults on the wire, at each message of a thread's life: nothing acknowledged is lost, nothing is written twice."""

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from redis_support import Place

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
from strata_conformance.servers.mixes import Mix
from strata_core.errors import StoreUnavailableError
from strata_core.options import Deltas, Offload
from strata_core.store import RowStore
from strata_redis import RedisBackend, RedisOptions
from strata_redis._calls import COMMIT
from strata_redis._node import Node

FAULTS = 3_500 if os.environ.get("STRATA_SOAK") == "1" else 30
WRITE = COMMIT.digest
KEPT = {"tokens", "meta"}
"""What a store without threads consists of."""


@pytest.fixture
def proxy(place: Place) -> Iterator[FaultProxy]:
    """A proxy in front of the server of the place."""
    (server,) = place.servers
    with FaultProxy.before(server) as proxy:  # type: ignore[arg-type]  # it is one
        yield proxy


@asynccontextmanager
async def store_at(url: str, **options: Any) -> AsyncGenerator[RowStore]:
    """A store with deltas and offload, and little patience."""
    backend = RedisBackend(url, options=RedisOptions(**({"timeout": timedelta(seconds=0.25)} | options)))
    async with RowStore(backend, deltas=Deltas(), offload=Offload(threshold=300)) as store:
        yield store


def left(place: Place) -> set[str]:
    """What keys of what kind there are."""
    return {
        name.rpartition(":")[2].rstrip("}") if name.endswith("}") else name.partition("}")[2] for name in place.names()
    }


@pytest.mark.parametrize("kind", WIRE_FAULTS)
def test_a_fault_at_every_message_of_a_life_changes_no_outcome(place: Place, proxy: FaultProxy, kind: str) -> None:
    """Each message fails once and is sent again: a write by core under the same write ID, a read by the store.

    A read that hangs is not made again: whoever asked has waited long enough.
    """
    hangs = kind.endswith("hangs")
    first = FirstAttempt(WRITE if hangs else b"")
    patience = timedelta(seconds=0.25 if hangs else 60)

    async def check() -> None:
        async with store_at(proxy.url(place.url), pool_size=1, timeout=patience) as store:
            assert LIVED == await Life(store, "whole").run()
            fault = WIRE_FAULTS[kind](proxy, first)
            assert LIVED == await Life(store, "struck").run()
            assert (8 if hangs else 20) <= fault.fired == first.struck
            proxy.release(fault)

    asyncio.run(check())

    assert left(place) == KEPT


def test_everything_works_when_everything_takes_longer(place: Place, proxy: FaultProxy) -> None:
    async def check() -> None:
        async with store_at(proxy.url(place.url), timeout=timedelta(seconds=60)) as store:
            proxy.delay(requests=0.005, replies=0.01)
            for lived in await asyncio.gather(*(Life(store, f"{number}", purge=False).run() for number in range(10))):
                assert LIVED == lived | {"purge": 1}
            assert 10 == await store.purge(LATER)

    asyncio.run(check())

    assert left(place) == KEPT


@pytest.mark.parametrize("kind", ["request lost", "answer lost"])
def test_a_write_that_fails_for_good_may_have_been_done_and_can_be_repeated(
    place: Place, proxy: FaultProxy, kind: str
) -> None:
    async def check() -> None:
        async with store_at(proxy.url(place.url)) as store:
            writes = Writes(store)
            await writes.prepare()
            before = place.footprint()
            fault = WIRE_FAULTS[kind](proxy, lambda request: WRITE in request.content)
            failed = await writes.make() | {"purge": await outcome_of(store.purge(LATER))}
            assert {(StoreUnavailableError, True)} == {
                (type(e), getattr(e, "maybe_written", None)) for e in failed.values()
            }
            assert (kind == "request lost") == (before == place.footprint())
            proxy.release(fault)

            outcomes = await writes.make()
            assert ["save", "conditional", "fenced"] == [name for name, outcome in outcomes.items() if outcome == 1]
            assert [("lease", 0)] * 2 == [outcomes["acquire"], outcomes["renew"]]
            assert outcomes["release"] is None
            assert await store.live_lease("release") is None
            await store.purge(LATER)
            assert await store.load("purge") is None
            threads = ("save", "conditional", "fenced", "acquire", "renew", "release")
            rows = {name: len((await store.get_log(name)).entries) for name in threads}
            assert dict(zip(threads, (2, 2, 2, 1, 1, 1), strict=True)) == rows

    asyncio.run(check())


def test_what_never_left_was_not_written_and_the_pool_recovers(place: Place, proxy: FaultProxy) -> None:
    """Every connection breaks and no new one can be made."""

    async def check() -> None:
        backend = RedisBackend(proxy.url(place.url))
        async with RowStore(backend) as store:
            writes = Writes(store)
            await writes.prepare()
            before = place.footprint()
            proxy.refuse()
            proxy.reset_all()
            while is_connected(backend):
                await asyncio.sleep(0)
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
            assert before == place.footprint()

            proxy.accept()
            assert 0 == (await store.load("save")).sequence  # type: ignore[union-attr]
            assert 1 == (await writes.make())["save"]

    asyncio.run(check())


def is_connected(backend: RedisBackend) -> bool:
    """Whether there is a connection of which the loop has not heard yet that it is gone."""
    assert backend._server is not None
    node: Node = backend._server._route._node  # type: ignore[attr-defined]  # one server
    return any(connection.is_open for connection in node._pool._free)


def test_a_connection_that_breaks_while_it_is_made_is_made_again(place: Place, proxy: FaultProxy) -> None:
    async def check() -> None:
        async with store_at(proxy.url(place.url.replace("/0?", "/1?"))) as store:  # the log-in names a database
            await store.save(checkpoint("t", 0))
            proxy.reset_all()
            proxy.reset("connect", times=2)
            assert 1 == await store.save(checkpoint("t", 1))
            proxy.reset_all()
            assert 1 == (await store.load("t")).sequence  # type: ignore[union-attr]

    asyncio.run(check())


@pytest.mark.parametrize("kind", [kind for kind in WIRE_FAULTS if not kind.endswith("short")])
def test_a_fault_at_any_message_of_the_set_up_is_told_and_leaves_it_undone_or_done(
    place: Place, proxy: FaultProxy, kind: str
) -> None:
    async def check() -> None:
        for nth in range(1, 20):
            seen = itertools.count(1)
            fault = WIRE_FAULTS[kind](proxy, lambda _, seen=seen, nth=nth: next(seen) == nth)
            failed = await outcome_of(opened_once(proxy.url(place.url), timeout=timedelta(seconds=0.1)))
            fault.withdraw()
            if not fault.fired:
                assert 3 < nth
                return
            assert 1 < nth or StoreUnavailableError is type(failed)  # without what only warnings need, it opens
            proxy.release(fault)
            assert place.names() in ([], [f"{{{place.prefix}:meta}}"])
            await opened_once(place.url)
            assert [f"{{{place.prefix}:meta}}"] == place.names()
            place.servers[0].command("DEL", f"{{{place.prefix}:meta}}")
        raise AssertionError("the set-up has no end")

    asyncio.run(check())


async def opened_once(url: str, **options: Any) -> None:
    async with RowStore(RedisBackend(url, options=RedisOptions(**options))):
        pass


def test_a_batch_that_is_away_comes_to_its_end_whoever_of_it_is_cancelled(place: Place, proxy: FaultProxy) -> None:
    """What waits behind it and is cancelled never leaves."""

    async def check() -> None:
        async with store_at(proxy.url(place.url), timeout=timedelta(seconds=60)) as store:
            for at in ("request", "reply"):
                before = [await rows_of(store, number) for number in range(10)]
                fault = proxy.hang(at, match=WRITE)
                saves = [asyncio.ensure_future(store.save(checkpoint(f"t{n}", before[n]))) for n in range(10)]
                while not fault.fired:
                    await asyncio.sleep(0.001)
                behind = [asyncio.ensure_future(store.save(checkpoint(f"t{n}", before[n] + 1))) for n in range(10)]
                await asyncio.sleep(0)
                for call in (*saves[::2], *behind[::3]):
                    call.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await call
                proxy.release(fault)
                kept = [n for n in range(10) if n % 3]

                assert before[1::2] == await asyncio.gather(*saves[1::2])
                assert [before[n] + 1 for n in kept] == await asyncio.gather(*(behind[n] for n in kept))
                assert [before[n] + (2 if n in kept else 1) for n in range(10)] == [
                    await rows_of(store, n) for n in range(10)
                ]

    asyncio.run(check())


async def rows_of(store: RowStore, number: int) -> int:
    """How many rows a thread has, in order and each with a step of its own."""
    entries = (await store.get_log(f"t{number}", limit=1000)).entries

    assert list(range(len(entries))) == [entry.sequence for entry in entries]
    assert list(range(len(entries))) == [entry.checkpoint.frozen_state["step"] for entry in entries]
    return len(entries)


@pytest.mark.soak
def test_random_calls_under_random_faults_are_done_once_or_not_at_all(place: Place, proxy: FaultProxy) -> None:
    mix = Mix(proxy, FAULTS, seed=20261130)

    async def main() -> None:
        async with store_at(proxy.url(place.url), pool_size=3) as store:
            await mix.run(store)
        async with store_at(place.url) as clean:
            await mix.check(clean)

    asyncio.run(main())

    assert mix.struck >= FAULTS
