"""Deltas, and offload into the store's own database: what is loaded equals what was saved, however it is stored."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, checkpoint, spelled
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._histories import BIG, race, reloads, writes_and_reloads
from strata_core.capabilities import Capability
from strata_core.errors import UnsupportedError
from strata_core.options import Deltas, Offload
from strata_core.records import CheckpointStatus, ThreadState

__all__ = ["DeltaTests", "OffloadTests"]


class DeltaTests(PortTests):
    """Running checkpoints stored as differences."""

    @promise("delta-1")
    @pytest.mark.requires(Capability.DELTAS)
    @pytest.mark.parametrize(("seed", "full_every"), [(0, 5), (1, 2), (5, 16)])
    async def test_deltas_reload_equal_to_what_was_saved(
        self, open_store: OpenStore, seed: int, full_every: int
    ) -> None:
        """With deltas, every checkpoint of a thread reloads equal, in key order, value and type, across restarts,
        other writers and stores without deltas.
        """
        await writes_and_reloads(open_store, seed, deltas=Deltas(full_every=full_every))

    @promise("delta-2")
    @pytest.mark.requires(Capability.DELTAS)
    async def test_deltas_can_be_turned_on_and_off(self, open_store: OpenStore) -> None:
        """A thread that was written with deltas is read and continued without them, and the other way round."""
        states = [{"kept": BIG, "n": n} for n in range(12)]
        for start in range(0, 12, 4):
            async with open_store(**({"deltas": Deltas()} if start != 4 else {})) as store:
                await reloads(store, states[:start])
                for state in states[start : start + 4]:
                    await store.save(checkpoint(state=state))
        async with open_store() as store:
            await reloads(store, states)

    @promise("delta-3")
    @pytest.mark.requires(Capability.DELTAS)
    async def test_a_value_that_was_changed_in_place_is_stored(self, open_store: OpenStore) -> None:
        """A list or object that was changed in place between two saves is stored as it is at each save, though it is
        the same object.
        """
        items: list[Any] = [{"n": 0}]
        state = {"items": items, "text": BIG}
        states = []
        async with open_store(deltas=Deltas()) as store:
            for n in range(6):
                items[0]["n"] = n
                items.append(n)
                states.append(json.loads(json.dumps(state)))
                await store.save(checkpoint(state=state))
            await reloads(store, states)

    @promise("delta-4")
    @pytest.mark.requires(Capability.DELTAS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_what_a_handle_remembers_of_an_earlier_life_is_not_used(self, open_store: OpenStore) -> None:
        """A handle that remembers a thread which was purged and restarted elsewhere, to the same sequence, stores its
        next checkpoint whole: nothing of the earlier life shows up or is missing.
        """
        async with open_store(deltas=Deltas()) as one, open_store(deltas=Deltas()) as two:
            await one.save(checkpoint(state={"old": 1, "same": BIG}, at=BASE - timedelta(days=1)))
            assert 1 == await two.purge(BASE, states={ThreadState.RUNNING})
            await two.save(checkpoint(state={"new": 2}))
            second = await one.save(checkpoint(state={"old": 1, "same": BIG, "n": 1}))
            await reloads(two, [{"new": 2}, {"old": 1, "same": BIG, "n": 1}])

        assert 1 == second

    @promise("delta-5")
    @pytest.mark.requires(Capability.DELTAS)
    @pytest.mark.requires(Capability.QUERY)
    async def test_log_slices_that_begin_in_the_middle_of_a_chain_are_whole(self, open_store: OpenStore) -> None:
        """A slice of the log that begins at a checkpoint stored as a delta holds whole states."""
        states = [{"kept": BIG, "n": n} | ({f"k{n}": n} if n % 3 else {}) for n in range(40)]
        async with open_store(deltas=Deltas(full_every=16)) as store:
            await asyncio.gather(*(store.save(checkpoint(state=state)) for state in states))
            slices = [await store.get_log("t", start=start, limit=3) for start in range(40)]

        assert [[spelled(s) for s in states[start : start + 3]] for start in range(40)] == [
            [spelled(entry.checkpoint.frozen_state) for entry in page.entries] for page in slices
        ]

    @promise("delta-6")
    @pytest.mark.requires(Capability.DELTAS)
    @pytest.mark.parametrize("finished", [0, 3, 5], ids=lambda n: f"every {n}" if n else "none")
    async def test_saves_that_are_started_together_keep_their_order_with_deltas(
        self, open_store: OpenStore, finished: int
    ) -> None:
        """With deltas too, saves to one thread that one handle starts without waiting are stored in the order of the
        calls, whatever their status and however many were done before the last was started.
        """
        states = [{"kept": BIG, "n": n} for n in range(40)]

        def save(store: Store, n: int) -> asyncio.Future[int]:
            status = CheckpointStatus.INTERRUPTED if finished and n % finished == 0 else CheckpointStatus.RUNNING
            return asyncio.ensure_future(store.save(checkpoint(status=status, state=states[n])))

        async with open_store(deltas=Deltas(full_every=4)) as store, open_store() as other:
            await store.save(checkpoint(state=states[0]))
            first = [save(store, n) for n in range(1, 10)]
            await first[0]
            second = [save(store, n) for n in range(10, 20)]
            got = await asyncio.gather(*first, *second)
            await other.save(checkpoint(state=states[20]))
            third = [save(store, n) for n in range(21, 30)]
            await asyncio.sleep(0)
            fourth = [save(store, n) for n in range(30, 40)]
            got += await asyncio.gather(*third, *fourth)
            await reloads(other, states)

        assert [*range(1, 20), *range(21, 40)] == got

    @promise("delta-7")
    @pytest.mark.refuses(Capability.DELTAS)
    async def test_a_store_without_deltas_refuses_the_option(self, open_store: OpenStore) -> None:
        """A store that does not declare deltas raises UnsupportedError when it is opened with them."""
        with pytest.raises(UnsupportedError) as caught:
            async with open_store(deltas=Deltas()):
                pass

        assert Capability.DELTAS is caught.value.capability


class OffloadTests(PortTests):
    """Large values kept apart from their rows, in the store's own database."""

    @promise("offload-1")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    @pytest.mark.parametrize(("seed", "threshold"), [(0, 1), (1, 100), (2, 301)])
    async def test_offloaded_values_reload_equal(self, open_store: OpenStore, seed: int, threshold: int) -> None:
        """With offload into the store's own database, with and without deltas, every checkpoint of a thread reloads
        equal, across restarts, other writers and stores that offload nothing new.
        """
        options: dict[str, Any] = {"offload": Offload(threshold=threshold)}
        if seed % 2:
            async with open_store() as store:
                if Capability.DELTAS in store.capabilities:
                    options["deltas"] = Deltas(full_every=4)
        await writes_and_reloads(open_store, seed, **options)

    @promise("offload-2")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    async def test_old_blobs_stay_readable_when_offload_stops(self, open_store: OpenStore) -> None:
        """With a threshold of sys.maxsize nothing new is offloaded and what was offloaded before is still read."""
        states = [{"big": BIG, "n": n} for n in range(4)]
        async with open_store(offload=Offload(threshold=1)) as store:
            await store.save(checkpoint(state=states[0]))
            await store.save(checkpoint(state=states[1]))
        async with open_store(offload=Offload(threshold=sys.maxsize)) as store:
            await store.save(checkpoint(state=states[2]))
            await store.save(checkpoint(state=states[3]))
            await reloads(store, states)
        async with open_store() as store:
            await reloads(store, states)

    @promise("offload-3")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_blobs_of_an_earlier_life_are_not_relied_on(self, open_store: OpenStore) -> None:
        """A value that a handle offloaded before the thread was purged elsewhere is stored again, not referred to."""
        async with open_store(offload=Offload(threshold=10)) as one, open_store(offload=Offload(threshold=10)) as two:
            await one.save(checkpoint(state={"big": BIG}, at=BASE - timedelta(days=1)))
            assert 1 == await two.purge(BASE, states={ThreadState.RUNNING})
            await two.save(checkpoint(state={"n": 0}))
            await one.save(checkpoint(state={"big": BIG, "n": 1}))
            await reloads(two, [{"n": 0}, {"big": BIG, "n": 1}])

    @promise("offload-4")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    async def test_large_values_come_back(self, open_store: OpenStore) -> None:
        """Values of several megabytes come back, offloaded and in the row."""
        state = {"text": "\u00e9" * 1_500_000, "list": ["y" * 1000] * 1000, "n": 1}
        async with open_store(offload=Offload()) as store, open_store() as plain:
            await store.save(checkpoint(state=state))
            await plain.save(checkpoint(state=state))
            await reloads(store, [state, state])

    @promise("offload-5")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_saves_loads_and_purges_can_race(self, open_store: OpenStore) -> None:
        """Saves, loads and purges of the same threads from several handles can race, with offload into the store's
        own database: every load returns a checkpoint that somebody saved, or None.
        """
        await race(open_store, Offload(threshold=100))

    @promise("offload-7")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_purge_leaves_the_same_value_of_another_thread(self, open_store: OpenStore) -> None:
        """Threads share no value: one that two threads have offloaded is there for the second when the first is purged,
        however it is stored.
        """
        async with open_store(offload=Offload(threshold=10)) as store, open_store(offload=Offload(threshold=10)) as two:
            await store.save(checkpoint(state={"big": BIG}, at=BASE - timedelta(days=1)))
            await two.save(checkpoint("kept", state={"big": BIG}))
            purged = await store.purge(BASE, states={ThreadState.RUNNING})
            entries = [await handle.load("kept") for handle in (store, two)]

        assert 1 == purged
        assert [{"big": BIG}] * 2 == [entry.checkpoint.frozen_state for entry in entries if entry is not None]

    @promise("offload-6")
    @pytest.mark.refuses(Capability.OWN_BLOBS)
    async def test_a_store_without_blobs_of_its_own_refuses_them(self, open_store: OpenStore) -> None:
        """A store that does not declare blobs of its own raises UnsupportedError when it is opened to offload into
        its own database.
        """
        with pytest.raises(UnsupportedError):
            async with open_store(offload=Offload(threshold=1)):
                pass
