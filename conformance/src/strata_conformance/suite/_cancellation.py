"""Cancelling a call, at every place where it waits; saves are those of `_cancelled_saves.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from strata_conformance._interrupt import CancelAt
from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests
from strata_core.capabilities import Capability
from strata_core.records import Lease

__all__ = ["Ask", "CancellationTests", "cancel_at_every_turn", "cancel_everywhere"]

LATER = BASE + timedelta(days=1)
PLACES = 200
"""More places than any call waits at."""
TURNS = 25
"""At how many turns of the event loop a call that works in tasks of its own is cancelled."""
moments = pytest.mark.parametrize("late", [False, True], ids=["early", "late"])

Ask = Callable[[str], Coroutine[Any, Any, Any]]
Check = Callable[[str, bool], Awaitable[None]]


async def cancel_everywhere(prepare: Callable[[str], Awaitable[Ask]], check: Check, *, late: bool) -> None:
    """Cancel a call at its first place, its second and so on, each time on a thread of its own.

    Args:
        prepare: Makes the thread ready and returns the call.
        check: Looks at the thread afterwards; is told whether the call came to its end.
        late: See `CancelAt`.
    """
    for nth in range(1, PLACES):
        thread_id = f"t{nth}"
        ask = await prepare(thread_id)
        cancelling = CancelAt(ask(thread_id), nth, late=late)
        outcome = await cancelling.outcome()
        if cancelling.reached:
            assert isinstance(outcome, asyncio.CancelledError), f"cancelled at place {nth}, it came to {outcome!r}"
        else:
            assert not isinstance(outcome, BaseException), outcome
        await check(thread_id, not cancelling.reached)
        if not cancelling.reached:
            return
    raise AssertionError("the call waits without end")


async def cancel_at_every_turn(prepare: Callable[[str], Awaitable[Ask]], check: Check) -> None:
    """Cancel a call once the event loop has turned once, twice and so on, each time on a thread of its own.

    So a call is met while tasks that it waits for are anywhere on their way.  See `cancel_everywhere`.
    """
    for turns in range(1, TURNS):
        thread_id = f"turn{turns}"
        task = asyncio.create_task((await prepare(thread_id))(thread_id))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        came_to_its_end = True
        try:
            await task
        except asyncio.CancelledError:
            came_to_its_end = False
        await check(thread_id, came_to_its_end)
        if came_to_its_end:
            return


class CancellationTests(PortTests):
    """A cancelled call ends, its write is done or not done, and the store goes on."""

    @promise("cancel-5")
    @moments
    async def test_a_cancelled_renewal_or_release_is_done_or_not_done(self, open_store: OpenStore, late: bool) -> None:
        """A renewal that is cancelled at any await leaves the lease with its old or its new expiry, a release leaves it
        held or free; another call decides it.
        """
        leases: dict[str, Lease] = {}
        async with open_store() as store, open_store() as other:

            async def hold(thread_id: str) -> Lease:
                lease = await store.acquire_lease(thread_id, owner="o", ttl=LONG)
                assert lease is not None
                leases[thread_id] = lease
                return lease

            async def prepare_renewal(thread_id: str) -> Ask:
                lease = await hold(thread_id)
                return lambda _: store.renew_lease(lease, ttl=LONG * 2)

            async def check_renewal(thread_id: str, _: bool) -> None:
                renewed = await store.renew_lease(leases[thread_id], ttl=LONG * 3)

                assert renewed == await other.live_lease(thread_id)
                await store.release_lease(renewed)

            async def prepare_release(thread_id: str) -> Ask:
                lease = await hold(thread_id)
                return lambda _: store.release_lease(lease)

            async def check_release(thread_id: str, came_to_its_end: bool) -> None:
                assert not came_to_its_end or await other.live_lease(thread_id) is None
                await store.release_lease(leases[thread_id])
                assert await other.live_lease(thread_id) is None

            await cancel_everywhere(prepare_renewal, check_renewal, late=late)
            await cancel_everywhere(prepare_release, check_release, late=late)

    @promise("cancel-6")
    @moments
    async def test_a_cancelled_read_leaves_the_store_usable(self, open_store: OpenStore, late: bool) -> None:
        """A load, a listing, a log or a look at a lease that is cancelled at any await leaves the store usable, however
        often.
        """
        async with open_store() as store:
            await store.save(checkpoint("same"))
            reads: list[Ask] = [lambda _: store.load("same"), lambda _: store.live_lease("same")]
            if Capability.QUERY in store.capabilities:
                reads += [lambda _: store.list_threads(), lambda _: store.get_log("same")]
            for read in reads:

                async def prepare(_: str, read: Ask = read) -> Ask:
                    return read

                async def check(_: str, came_to_its_end: bool) -> None:
                    assert await store.load("same") is not None

                await cancel_everywhere(prepare, check, late=late)
            for read in reads:
                for _ in range(20):
                    asyncio.get_running_loop().call_soon((task := asyncio.ensure_future(read("same"))).cancel)
                    await asyncio.wait([task])
            sequence = await store.save(checkpoint("same"))

        assert 1 == sequence

    @promise("cancel-7")
    @pytest.mark.parametrize("late", [False, True, None], ids=["early", "late", "between"])
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_cancelled_purge_takes_threads_whole(self, open_store: OpenStore, late: bool | None) -> None:
        """A purge that is cancelled at any await has taken each thread whole or not at all; another purge takes the
        rest, and each ID can start over.
        """
        async with open_store() as store, open_store() as other:

            async def prepare(thread_id: str) -> Ask:
                for n in range(3):
                    await store.save(checkpoint(f"{thread_id}-{n}"))
                    await store.save(completed(f"{thread_id}-{n}"))
                return lambda _: store.purge(LATER)

            async def check(thread_id: str, came_to_its_end: bool) -> None:
                for n in range(3):
                    name = f"{thread_id}-{n}"
                    if n == 2:
                        await store.purge(LATER)
                    sequence = await store.save(checkpoint(name))
                    found = [await other.load(name, at=at) is not None for at in range(3)]

                    assert [[True, False, False], [], [True] * 3][sequence] == found
                    assert 0 == sequence or (n < 2 and not came_to_its_end)

            if late is None:
                await cancel_at_every_turn(prepare, check)
            else:
                await cancel_everywhere(prepare, check, late=late)

    @promise("cancel-9")
    async def test_a_cancelled_open_lets_go_of_everything(self, open_store: OpenStore) -> None:
        """Opening that is cancelled at any await leaves nothing behind that keeps the storage from being opened."""
        for nth in range(1, PLACES):
            manager = open_store()
            cancelling = CancelAt(manager.__aenter__(), nth, late=False)
            outcome = await cancelling.outcome()
            if not cancelling.reached:
                assert not isinstance(outcome, BaseException), outcome
                await manager.__aexit__(None, None, None)
                break
            assert isinstance(outcome, asyncio.CancelledError)
        async with open_store() as store:
            sequence = await store.save(checkpoint())

        assert 0 == sequence
