"""Cancelling a save, at every place where it waits."""

from __future__ import annotations

import asyncio

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._cancellation import Ask, cancel_everywhere, moments
from strata_core.records import Lease, LogEntry

__all__ = ["CancelledSaveTests"]


async def _log(store: Store, thread_id: str, length: int) -> list[LogEntry]:
    entries = [await store.load(thread_id, at=n) for n in range(length)]
    assert None not in entries
    return [entry for entry in entries if entry is not None]


class CancelledSaveTests(PortTests):
    """A save that is cancelled, of whichever kind."""

    @promise("cancel-1")
    @moments
    async def test_a_cancelled_save_is_done_or_not_done(self, open_store: OpenStore, late: bool) -> None:
        """A save that is cancelled at any await ends so, and its checkpoint is stored whole or not at all; the next
        save of the thread follows it.
        """
        big = {"n": "cancelled", "big": "x" * 100_000}
        async with open_store() as store, open_store() as other:

            async def prepare(_: str) -> Ask:
                return lambda thread: store.save(checkpoint(thread, state=big))

            async def check(thread_id: str, came_to_its_end: bool) -> None:
                sequence = await store.save(checkpoint(thread_id, state={"n": "next"}))
                entries = await _log(other, thread_id, sequence + 1)

                assert [big, {"n": "next"}][1 - sequence :] == [entry.checkpoint.frozen_state for entry in entries]
                assert sequence == 1 or not came_to_its_end

            await cancel_everywhere(prepare, check, late=late)

    @promise("cancel-2")
    @moments
    async def test_a_cancelled_conditional_save_is_done_or_not_done(self, open_store: OpenStore, late: bool) -> None:
        """A conditional save that is cancelled at any await is stored whole or not at all."""
        async with open_store() as store, open_store() as other:

            async def prepare(thread_id: str) -> Ask:
                await store.save(checkpoint(thread_id))
                return lambda thread: store.save_if_latest(checkpoint(thread, state={"n": "cancelled"}), 0)

            async def check(thread_id: str, came_to_its_end: bool) -> None:
                sequence = await store.save(checkpoint(thread_id, state={"n": "next"}))
                entries = await _log(other, thread_id, sequence + 1)

                done = [{"n": 0}, {"n": "cancelled"}, {"n": "next"}]
                assert (done if sequence == 2 else done[::2]) == [entry.checkpoint.frozen_state for entry in entries]
                assert sequence == 2 or not came_to_its_end

            await cancel_everywhere(prepare, check, late=late)

    @promise("cancel-3")
    @moments
    async def test_a_cancelled_last_save_releases_with_its_checkpoint_or_not_at_all(
        self, open_store: OpenStore, late: bool
    ) -> None:
        """A save under a lease with release=True that is cancelled at any await has stored its checkpoint and released
        the lease, or neither.
        """
        leases: dict[str, Lease] = {}
        async with open_store() as store, open_store() as other:

            async def prepare(thread_id: str) -> Ask:
                lease = await store.acquire_lease(thread_id, owner="o", ttl=LONG)
                assert lease is not None
                leases[thread_id] = lease
                return lambda thread: store.save_under_lease(completed(thread), lease, release=True)

            async def check(thread_id: str, came_to_its_end: bool) -> None:
                await store.release_lease(Lease(thread_id, 2**40, "nobody", BASE))  # waits for what is under way
                live, entry = await other.live_lease(thread_id), await other.load(thread_id)

                assert (live is None) == (entry is not None)
                assert live in (None, leases[thread_id])
                assert live is None or not came_to_its_end

            await cancel_everywhere(prepare, check, late=late)

    @promise("cancel-4")
    @moments
    async def test_a_cancelled_acquire_takes_and_saves_or_neither(self, open_store: OpenStore, late: bool) -> None:
        """An acquire with a save that is cancelled at any await has taken the lease and stored the checkpoint, or
        neither.
        """
        async with open_store() as store, open_store() as other:

            async def prepare(_: str) -> Ask:
                return lambda thread: store.acquire_lease(thread, owner="o", ttl=LONG, save=checkpoint(thread))

            async def check(thread_id: str, came_to_its_end: bool) -> None:
                await store.release_lease(Lease(thread_id, 2**40, "nobody", BASE))
                live, entry = await other.live_lease(thread_id), await other.load(thread_id)

                assert (live is None) == (entry is None)
                assert entry is not None or not came_to_its_end
                assert (0 if entry is None else 1) == await store.save(checkpoint(thread_id))

            await cancel_everywhere(prepare, check, late=late)

    @promise("cancel-8")
    async def test_one_cancelled_save_leaves_those_beside_it_alone(self, open_store: OpenStore) -> None:
        """Of saves that are under way together, one that is cancelled takes no other with it, on its thread or any
        other; those of its thread keep their order.
        """
        async with open_store() as store:
            for turns in range(12):
                tasks = [
                    asyncio.ensure_future(store.save(checkpoint(f"c{turns}-{n % 3}", state={"n": n})))
                    for n in range(12)
                ]
                for _ in range(turns):
                    await asyncio.sleep(0)
                was_done = tasks[4].done()
                tasks[4].cancel()
                got = await asyncio.gather(*tasks, return_exceptions=True)
                others: dict[int, int] = {}
                for n, sequence in enumerate(got):
                    if n == 4 and not was_done:
                        continue
                    assert isinstance(sequence, int), sequence
                    others[n] = sequence
                    entry = await store.load(f"c{turns}-{n % 3}", at=sequence)

                    assert entry is not None
                    assert n == entry.checkpoint.frozen_state["n"]
                same = [others[n] for n in (1, 7, 10)]
                assert sorted(same) == same
