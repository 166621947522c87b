"""Deltas and offload: what is loaded equals what was saved, however it is stored."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, checkpoint, completed, spelled
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_core.blobs import InMemoryBlobStore
from strata_core.capabilities import Capability
from strata_core.errors import CorruptCheckpointError, UnsupportedError
from strata_core.options import Deltas, Offload
from strata_core.records import CheckpointStatus, ThreadState

__all__ = ["DeltaTests", "ExternalBlobTests", "OffloadTests"]

BIG = "x" * 300
VALUES: list[Callable[[random.Random], Any]] = [
    lambda r: r.randrange(5),
    lambda r: r.choice([0, 1, 0.0, 1.0, -0.0, True, False, None, "", "1", [], {}]),
    lambda r: [r.randrange(3) for _ in range(r.randrange(4))],
    lambda r: {r.choice("ab"): r.choice([1, 1.0, True, BIG])},
    lambda r: BIG + str(r.randrange(3)),
    lambda r: [BIG, {"deep": BIG + str(r.randrange(2))}],
]
KEYS = ["a", "b", "c", "d", "", "base", "set", "unset", "whole", "blobs", "\u00e9"]


def _history(seed: int, length: int) -> list[tuple[CheckpointStatus, dict[str, Any]]]:
    """Return states that grow, shrink, change, change back and change their order."""
    rng = random.Random(seed)
    state: dict[str, Any] = {"a": 1}
    history = []
    for _ in range(length):
        for _ in range(rng.randrange(3)):
            key = rng.choice(KEYS)
            if rng.random() < 0.3:
                state.pop(key, None)
            else:
                state[key] = rng.choice(VALUES)(rng)
        if rng.random() < 0.1:
            items = list(state.items())
            rng.shuffle(items)
            state = dict(items)
        if history and rng.random() < 0.1:
            state = dict(rng.choice(history)[1])
        status = rng.choice(list(CheckpointStatus)) if rng.random() < 0.1 else CheckpointStatus.RUNNING
        history.append((status, json.loads(json.dumps(state))))
    return history


async def _reloads(store: Store, states: list[dict[str, Any]], thread_id: str = "t") -> None:
    for sequence, state in enumerate(states):
        entry = await store.load(thread_id, at=sequence)
        assert entry is not None
        assert spelled(state) == spelled(entry.checkpoint.frozen_state), f"#{sequence}"


async def _writes_and_reloads(open_store: OpenStore, seed: int, **options: Any) -> None:
    """Save a history from handles that come and go, and reload all of it from handles of any kind."""
    history = _history(seed, 60)
    rng = random.Random(seed)
    written = 0
    while written < len(history):
        async with open_store(**options) as one, open_store(**options) as two, open_store() as plain:
            for status, state in history[written : written + 25]:
                handle = rng.choice([one, one, one, one, two, plain]) if rng.random() < 0.3 else one
                assert written == await handle.save(checkpoint(status=status, state=state))
                latest = await rng.choice([one, two]).load("t")

                assert latest is not None
                assert spelled(state) == spelled(latest.checkpoint.frozen_state), f"#{written}"
                written += 1
    async with open_store(**options) as store:
        await _reloads(store, [state for _, state in history])


class DeltaTests(PortTests):
    """Running checkpoints stored as differences."""

    @promise("delta-1")
    @pytest.mark.requires(Capability.DELTAS)
    @pytest.mark.parametrize("seed", range(6))
    async def test_deltas_reload_equal_to_what_was_saved(self, open_store: OpenStore, seed: int) -> None:
        """With deltas, every checkpoint of a thread reloads equal, in key order, value and type, across restarts,
        other writers and stores without deltas."""
        await _writes_and_reloads(open_store, seed, deltas=Deltas(full_every=random.Random(seed).choice([2, 5, 16])))

    @promise("delta-2")
    @pytest.mark.requires(Capability.DELTAS)
    async def test_deltas_can_be_turned_on_and_off(self, open_store: OpenStore) -> None:
        """A thread that was written with deltas is read and continued without them, and the other way round."""
        states = [{"kept": BIG, "n": n} for n in range(12)]
        for start in range(0, 12, 4):
            async with open_store(**({"deltas": Deltas()} if start != 4 else {})) as store:
                await _reloads(store, states[:start])
                for state in states[start : start + 4]:
                    await store.save(checkpoint(state=state))
        async with open_store() as store:
            await _reloads(store, states)

    @promise("delta-3")
    @pytest.mark.requires(Capability.DELTAS)
    async def test_a_value_that_was_changed_in_place_is_stored(self, open_store: OpenStore) -> None:
        """A list or object that was changed in place between two saves is stored as it is at each save, though it is
        the same object."""
        items: list[Any] = [{"n": 0}]
        state = {"items": items, "text": BIG}
        states = []
        async with open_store(deltas=Deltas()) as store:
            for n in range(6):
                items[0]["n"] = n
                items.append(n)
                states.append(json.loads(json.dumps(state)))
                await store.save(checkpoint(state=state))
            await _reloads(store, states)

    @promise("delta-4")
    @pytest.mark.requires(Capability.DELTAS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_what_a_handle_remembers_of_an_earlier_life_is_not_used(self, open_store: OpenStore) -> None:
        """A handle that remembers a thread which was purged and restarted elsewhere, to the same sequence, stores its
        next checkpoint whole: nothing of the earlier life shows up or is missing."""
        async with open_store(deltas=Deltas()) as one, open_store(deltas=Deltas()) as two:
            await one.save(checkpoint(state={"old": 1, "same": BIG}, at=BASE - timedelta(days=1)))
            assert 1 == await two.purge(BASE, states={ThreadState.RUNNING})
            await two.save(checkpoint(state={"new": 2}))
            second = await one.save(checkpoint(state={"old": 1, "same": BIG, "n": 1}))
            await _reloads(two, [{"new": 2}, {"old": 1, "same": BIG, "n": 1}])

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
        calls, whatever their status and however many were done before the last was started."""
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
            await _reloads(other, states)

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
    @pytest.mark.parametrize("seed", range(4))
    async def test_offloaded_values_reload_equal(self, open_store: OpenStore, seed: int) -> None:
        """With offload into the store's own database, with and without deltas, every checkpoint of a thread reloads
        equal, across restarts, other writers and stores that offload nothing new."""
        options: dict[str, Any] = {"offload": Offload(threshold=random.Random(seed).choice([1, 100, 301]))}
        if seed % 2:
            async with open_store() as store:
                if Capability.DELTAS in store.capabilities:
                    options["deltas"] = Deltas(full_every=4)
        await _writes_and_reloads(open_store, seed, **options)

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
            await _reloads(store, states)
        async with open_store() as store:
            await _reloads(store, states)

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
            await _reloads(two, [{"n": 0}, {"big": BIG, "n": 1}])

    @promise("offload-4")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    async def test_large_values_come_back(self, open_store: OpenStore) -> None:
        """Values of several megabytes come back, offloaded and in the row."""
        state = {"text": "\u00e9" * 1_500_000, "list": ["y" * 1000] * 1000, "n": 1}
        async with open_store(offload=Offload()) as store, open_store() as plain:
            await store.save(checkpoint(state=state))
            await plain.save(checkpoint(state=state))
            await _reloads(store, [state, state])

    @promise("offload-5")
    @pytest.mark.refuses(Capability.OWN_BLOBS)
    async def test_a_store_without_blobs_of_its_own_refuses_them(self, open_store: OpenStore) -> None:
        """A store that does not declare blobs of its own raises UnsupportedError when it is opened to offload into
        its own database."""
        with pytest.raises(UnsupportedError):
            async with open_store(offload=Offload(threshold=1)):
                pass


class ExternalBlobTests(PortTests):
    """Large values kept in a blob store of their own."""

    @promise("external-1")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    @pytest.mark.parametrize("seed", range(4))
    async def test_values_in_a_blob_store_reload_equal(self, open_store: OpenStore, seed: int) -> None:
        """With offload into a separate blob store, with and without deltas, every checkpoint reloads equal, across
        restarts, other writers and stores that offload nothing new."""
        blobs = InMemoryBlobStore()
        history = _history(seed + 100, 40)
        options: dict[str, Any] = {}
        async with open_store() as store:
            if seed % 2 and Capability.DELTAS in store.capabilities:
                options["deltas"] = Deltas(full_every=5)
        for start in range(0, 40, 20):
            offload = Offload(threshold=(20, sys.maxsize)[start // 20 if seed > 1 else 0], blobs=blobs)
            async with open_store(offload=offload, **options) as one, open_store(offload=offload, **options) as two:
                for n, (status, state) in enumerate(history[start : start + 20], start):
                    await (two if n % 7 == 6 else one).save(checkpoint(status=status, state=state))
                await _reloads(two, [state for _, state in history[: start + 20]])

    @promise("external-2")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    async def test_a_missing_blob_is_an_error_that_names_it(self, open_store: OpenStore) -> None:
        """A load whose blob is missing raises CorruptCheckpointError, which names the thread, the checkpoint and the
        digest; it never returns a part, nor an earlier checkpoint."""
        blobs = InMemoryBlobStore()
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
    async def test_a_false_blob_is_an_error(self, open_store: OpenStore) -> None:
        """A load whose blob does not match its digest raises CorruptCheckpointError, which names the thread and the
        checkpoint."""
        blobs = _Lying()
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
    async def test_a_purge_takes_the_threads_blobs(self, open_store: OpenStore) -> None:
        """A purge deletes the blobs of the threads that it takes from their blob store, and those of no other
        thread; a purged thread can be saved and loaded again."""
        blobs = InMemoryBlobStore()
        digest = "sha256:" + hashlib.sha256(json.dumps(BIG).encode()).hexdigest()
        async with open_store(offload=Offload(threshold=100, blobs=blobs)) as store:
            for thread in ("gone", "kept"):
                await store.save(checkpoint(thread, state={"big": BIG}))
            await store.save(completed("gone"))
            purged = await store.purge(BASE + timedelta(days=1))
            left = [await blobs.get(thread, digest) is not None for thread in ("gone", "kept")]
            again = await store.save(checkpoint("gone", state={"big": BIG}))
            await _reloads(store, [{"big": BIG}], "gone")

        assert 1 == purged
        assert [False, True] == left
        assert 0 == again

    @promise("external-5")
    @pytest.mark.refuses(Capability.EXTERNAL_BLOBS)
    async def test_a_store_that_cannot_use_a_blob_store_refuses_one(self, open_store: OpenStore) -> None:
        """A store that does not declare external blobs raises UnsupportedError when it is opened with a blob store."""
        with pytest.raises(UnsupportedError):
            async with open_store(offload=Offload(threshold=1, blobs=InMemoryBlobStore())):
                pass


class _Lying(InMemoryBlobStore):
    lies = False

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        content = await super().get(thread_id, digest)
        return b'"' + content[2:] if self.lies and content else content
