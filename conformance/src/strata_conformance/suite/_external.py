"""Offload into a blob store of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from datetime import timedelta
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, checkpoint, completed
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._cancellation import Ask, cancel_at_every_turn, cancel_everywhere
from strata_conformance.suite._histories import BIG, LyingBlobs, WaitingBlobs, history_of, race, reloads
from strata_core.blobs import InMemoryBlobStore
from strata_core.capabilities import Capability
from strata_core.errors import CorruptCheckpointError, UnsupportedError
from strata_core.options import Deltas, Offload
from strata_core.ports import BlobStore
from strata_core.records import ThreadState

__all__ = ["ExternalBlobTests"]

SOON = 10.0
"""Seconds that a call may take when nobody is in its way."""


class ExternalBlobTests(PortTests):
    """Large values kept in a blob store of their own."""

    @pytest.fixture
    def external_blobs(self) -> BlobStore:
        """An empty, open blob store; override it to see a store together with one of yours."""
        return InMemoryBlobStore()

    @promise("external-1")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    @pytest.mark.parametrize("seed", range(4))
    async def test_values_in_a_blob_store_reload_equal(
        self, open_store: OpenStore, seed: int, external_blobs: BlobStore
    ) -> None:
        """With offload into a separate blob store, with and without deltas, every checkpoint reloads equal, across
        restarts, other writers and stores that offload nothing new.
        """
        blobs = external_blobs
        history = history_of(seed + 100, 40)
        options: dict[str, Any] = {}
        async with open_store() as store:
            if seed % 2 and Capability.DELTAS in store.capabilities:
                options["deltas"] = Deltas(full_every=5)
        for start in range(0, 40, 20):
            offload = Offload(threshold=(20, sys.maxsize)[start // 20 if seed > 1 else 0], blobs=blobs)
            async with open_store(offload=offload, **options) as one, open_store(offload=offload, **options) as two:
                for n, (status, state) in enumerate(history[start : start + 20], start):
                    await (two if n % 7 == 6 else one).save(checkpoint(status=status, state=state))
                await reloads(two, [state for _, state in history[: start + 20]])

    @promise("external-2")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    async def test_a_missing_blob_is_an_error_that_names_it(
        self, open_store: OpenStore, external_blobs: BlobStore
    ) -> None:
        """A load whose blob is missing raises CorruptCheckpointError, which names the thread, the checkpoint and the
        digest; it never returns a part, nor an earlier checkpoint.
        """
        blobs = external_blobs
        digest = "sha256:" + hashlib.sha256(json.dumps(BIG).encode()).hexdigest()
        async with open_store(offload=Offload(threshold=100, blobs=blobs)) as store:
            await store.save(checkpoint(state={"n": 0}))
            await store.save(checkpoint(state={"big": BIG}))
            assert await blobs.get("t", digest) is not None
            await blobs.delete_thread("t")
            with pytest.raises(CorruptCheckpointError) as caught:
                await store.load("t")
            first = await store.load("t", at=0)

        assert ("t", 1) == (caught.value.thread_id, caught.value.sequence)
        assert digest in str(caught.value)
        assert first is not None

    @promise("external-3")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    async def test_a_false_blob_is_an_error(self, open_store: OpenStore, external_blobs: BlobStore) -> None:
        """A load whose blob does not match its digest raises CorruptCheckpointError, which names the thread and the
        checkpoint.
        """
        blobs = LyingBlobs(external_blobs)
        async with open_store(offload=Offload(threshold=100, blobs=blobs)) as store:
            await store.save(checkpoint(state={"big": BIG}))
            await store.load("t")
            blobs.lies = True
            with pytest.raises(CorruptCheckpointError) as caught:
                await store.load("t")

        assert ("t", 0) == (caught.value.thread_id, caught.value.sequence)

    @promise("external-4")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_purge_takes_the_threads_blobs(self, open_store: OpenStore, external_blobs: BlobStore) -> None:
        """A purge deletes the blobs of the threads that it takes from their blob store, and those of no other
        thread; a purged thread can be saved and loaded again.
        """
        blobs = external_blobs
        digest = "sha256:" + hashlib.sha256(json.dumps(BIG).encode()).hexdigest()
        async with open_store(offload=Offload(threshold=100, blobs=blobs)) as store:
            for thread in ("gone", "kept"):
                await store.save(checkpoint(thread, state={"big": BIG}))
            await store.save(completed("gone"))
            purged = await store.purge(BASE + timedelta(days=1))
            left = [await blobs.get(thread, digest) is not None for thread in ("gone", "kept")]
            again = await store.save(checkpoint("gone", state={"big": BIG}))
            await reloads(store, [{"big": BIG}], "gone")

        assert 1 == purged
        assert [False, True] == left
        assert 0 == again

    @promise("external-5")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_saves_loads_and_purges_with_a_blob_store_can_race(
        self, open_store: OpenStore, external_blobs: BlobStore
    ) -> None:
        """Saves, loads and purges of the same threads from several handles can race: every load returns a checkpoint
        that somebody saved, or None; a purge of what is left leaves no blob behind.
        """
        blobs = WaitingBlobs(external_blobs)
        await race(open_store, Offload(threshold=100, blobs=blobs))

        assert [] == await blobs.left()

    @promise("external-6")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    async def test_saves_that_are_started_together_keep_their_order_with_a_blob_store(
        self, open_store: OpenStore, external_blobs: BlobStore
    ) -> None:
        """With a blob store too, saves to one thread that one handle starts without waiting are stored in the order of
        the calls, those whose values are put into the blob store first and those that have none.
        """
        states = [{"big": BIG + str(n), "n": n} if n % 3 == 0 else {"n": n} for n in range(20)]
        async with open_store(offload=Offload(threshold=100, blobs=WaitingBlobs(external_blobs))) as store:
            got = await asyncio.gather(*(store.save(checkpoint(state=state)) for state in states))
            await reloads(store, states)

        assert list(range(20)) == got

    @promise("external-7")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    async def test_a_save_that_waits_for_the_blob_store_is_nobodys_lease(
        self, open_store: OpenStore, external_blobs: BlobStore
    ) -> None:
        """While a save waits for the blob store, the thread is nobody's: no lease is shown, and one can be taken."""
        blobs = WaitingBlobs(external_blobs)
        async with open_store(offload=Offload(threshold=100, blobs=blobs)) as one, open_store() as two:
            blobs.gate = asyncio.Event()
            saving = asyncio.ensure_future(one.save(checkpoint(state={"big": BIG})))
            await blobs.waiting.wait()
            shown = await two.live_lease("t")
            acquiring = asyncio.ensure_future(two.acquire_lease("t", owner="o", ttl=LONG))
            await asyncio.sleep(0)
            blobs.gate.set()
            sequence, lease = await asyncio.gather(saving, acquiring)

        assert shown is None
        assert 0 == sequence
        assert lease is not None

    @promise("external-8")
    @pytest.mark.parametrize("late", [False, True, None], ids=["early", "late", "between"])
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_cancelled_save_with_a_blob_store_is_in_nobodys_way(
        self, open_store: OpenStore, late: bool | None, external_blobs: BlobStore
    ) -> None:
        """A save with a blob store that is cancelled at any await is done or not done; nobody waits for it, and a purge
        of the thread leaves none of its blobs.
        """
        blobs = WaitingBlobs(external_blobs)
        offload = Offload(threshold=100, blobs=blobs)
        async with open_store(offload=offload) as store, open_store(offload=offload) as other:

            async def prepare(_: str) -> Ask:
                return lambda thread: store.save(checkpoint(thread, state={"big": BIG}))

            async def check(thread_id: str, came_to_its_end: bool) -> None:
                async with asyncio.timeout(SOON):
                    sequence = await other.save(checkpoint(thread_id, state={"n": 1, "big": BIG}))
                await store.save(checkpoint(thread_id, state={"n": 2}))
                if sequence == 0:
                    await reloads(other, [{"n": 1, "big": BIG}], thread_id)
                assert sequence == 1 or not came_to_its_end

            if late is None:
                await cancel_at_every_turn(prepare, check)
            else:
                await cancel_everywhere(prepare, check, late=late)
            while await store.purge(BASE + timedelta(days=1), states={ThreadState.RUNNING}):
                pass

        assert [] == await blobs.left()

    @promise("external-9")
    @pytest.mark.parametrize("late", [False, True, None], ids=["early", "late", "between"])
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_cancelled_purge_with_a_blob_store_is_in_nobodys_way(
        self, open_store: OpenStore, late: bool | None, external_blobs: BlobStore
    ) -> None:
        """A purge with a blob store that is cancelled at any await has taken a thread whole or not at all; nobody waits
        for it, and another purge leaves no blob.
        """
        blobs = WaitingBlobs(external_blobs)
        offload = Offload(threshold=100, blobs=blobs)
        async with open_store(offload=offload) as store, open_store(offload=offload) as other:

            async def prepare(thread_id: str) -> Ask:
                await store.save(completed(thread_id, at=BASE - timedelta(days=1)))
                await store.save(checkpoint(thread_id, state={"big": BIG}, at=BASE - timedelta(days=1)))
                return lambda _: store.purge(BASE, states={ThreadState.RUNNING})

            async def check(thread_id: str, came_to_its_end: bool) -> None:
                async with asyncio.timeout(SOON):
                    sequence = await other.save(checkpoint(thread_id, state={"n": 1, "big": BIG}))
                entry = await store.load(thread_id)

                assert entry is not None
                assert {"n": 1, "big": BIG} == entry.checkpoint.frozen_state
                assert sequence == 0 or (sequence == 2 and not came_to_its_end)

            if late is None:
                await cancel_at_every_turn(prepare, check)
            else:
                await cancel_everywhere(prepare, check, late=late)
            while await store.purge(BASE + timedelta(days=1), states={ThreadState.RUNNING}):
                pass

        assert [] == await blobs.left()

    @promise("external-10")
    @pytest.mark.refuses(Capability.EXTERNAL_BLOBS)
    async def test_a_store_that_cannot_use_a_blob_store_refuses_one(self, open_store: OpenStore) -> None:
        """A store that does not declare external blobs raises UnsupportedError when it is opened with a blob store."""
        with pytest.raises(UnsupportedError):
            async with open_store(offload=Offload(threshold=1, blobs=InMemoryBlobStore())):
                pass
