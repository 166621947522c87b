"""Saving and loading; conditions are those of `_conditional.py`."""

from __future__ import annotations

import asyncio
import os

from strata_conformance._promise import promise
from strata_conformance._samples import checkpoint, spelled
from strata_conformance.suite._base import OpenStore, PortTests
from strata_core.records import CheckpointStatus, Revision

__all__ = ["CheckpointStoreTests"]


class CheckpointStoreTests(PortTests):
    """Appends and their order; loads."""

    @promise("save-1")
    async def test_a_save_returns_the_position_in_the_threads_log_counted_from_zero(
        self, open_store: OpenStore
    ) -> None:
        """A save returns the sequence of the checkpoint: 0, 1, 2 and so on, for each thread on its own."""
        async with open_store() as store:
            got = [await store.save(checkpoint(thread, state={"n": n})) for n in range(3) for thread in ("a", "b")]

        assert [0, 0, 1, 1, 2, 2] == got

    @promise("save-2")
    async def test_saves_that_one_handle_starts_together_keep_the_order_of_the_calls(
        self, open_store: OpenStore
    ) -> None:
        """Saves to one thread that one handle starts without waiting are stored in the order of the calls."""
        async with open_store() as store:
            got = await asyncio.gather(*(store.save(checkpoint(state={"n": n})) for n in range(50)))
            stored = [await store.load("t", at=n) for n in range(50)]

        assert list(range(50)) == got
        assert list(range(50)) == [entry.checkpoint.frozen_state["n"] for entry in stored if entry is not None]

    @promise("save-3")
    async def test_saves_of_two_handles_get_sequences_without_gaps_or_doubles(self, open_store: OpenStore) -> None:
        """Two handles that save to one thread at once share one log: no sequence is given twice, none is left out."""
        async with open_store() as one, open_store() as two:
            handles = [one if n % 3 else two for n in range(40)]
            got = await asyncio.gather(*(h.save(checkpoint(state={"n": n})) for n, h in enumerate(handles)))
            stored = {sequence: await one.load("t", at=sequence) for sequence in got}

        assert list(range(40)) == sorted(got)
        assert {sequence: n for n, sequence in enumerate(got)} == {
            sequence: entry.checkpoint.frozen_state["n"] for sequence, entry in stored.items() if entry is not None
        }

    @promise("save-4")
    async def test_a_saved_checkpoint_is_there_for_every_handle_at_once(self, open_store: OpenStore) -> None:
        """When a save has returned, every other handle on the storage loads the checkpoint."""
        async with open_store() as one, open_store() as two:
            for n in range(5):
                await one.save(checkpoint(state={"n": n}))
                seen = await two.load("t")

                assert seen is not None
                assert (n, {"n": n}) == (seen.sequence, seen.checkpoint.frozen_state)

    @promise("save-5")
    async def test_saved_checkpoints_outlive_the_handle(self, open_store: OpenStore) -> None:
        """What was saved is there when the storage is closed and opened again, and the thread goes on counting."""
        async with open_store() as store:
            await store.save(checkpoint(state={"n": 0}))
            await store.save(checkpoint(state={"n": 1}))
        async with open_store() as store:
            first, latest = await store.load("t", at=0), await store.load("t")
            third = await store.save(checkpoint(state={"n": 2}))

        assert first is not None
        assert latest is not None
        assert [{"n": 0}, {"n": 1}] == [first.checkpoint.frozen_state, latest.checkpoint.frozen_state]
        assert 2 == third

    @promise("save-6")
    async def test_a_save_never_changes_an_earlier_checkpoint(self, open_store: OpenStore) -> None:
        """The log is append-only: a later save, of whatever status, leaves every earlier checkpoint as it was."""
        async with open_store() as store:
            for n, status in enumerate(CheckpointStatus):
                await store.save(checkpoint(status=status, state={"n": n}, metadata={"n": str(n)}))
            stored = [await store.load("t", at=n) for n in range(len(CheckpointStatus))]

        assert [(status, {"n": n}, {"n": str(n)}) for n, status in enumerate(CheckpointStatus)] == [
            (entry.checkpoint.status, entry.checkpoint.frozen_state, entry.checkpoint.metadata)
            for entry in stored
            if entry is not None
        ]

    @promise("save-7")
    async def test_what_happens_to_the_state_after_the_call_is_not_stored(self, open_store: OpenStore) -> None:
        """The state is taken when the save begins: a list that is changed while the save waits is stored unchanged."""
        items, metadata = [1, 2], {"k": "v"}
        state = {"items": items, "n": 0}
        async with open_store() as store:
            saving = asyncio.ensure_future(store.save(checkpoint(state=state, metadata=metadata)))
            await asyncio.sleep(0)
            items.append(3)
            state["n"] = 1
            metadata["k"] = "changed"
            await saving
            entry = await store.load("t")

        assert entry is not None
        assert {"items": [1, 2], "n": 0} == entry.checkpoint.frozen_state
        assert {"k": "v"} == entry.checkpoint.metadata

    @promise("save-8")
    async def test_objects_that_a_store_returns_share_nothing_with_it(self, open_store: OpenStore) -> None:
        """Changing what was saved, or what a load returned, changes nothing that is stored."""
        state, metadata = {"items": [1, {"a": []}]}, {"k": "v"}
        async with open_store() as store:
            await store.save(checkpoint(state=state, metadata=metadata))
            state["items"].append("saved one changed")
            metadata["k"] = "changed"
            first = await store.load("t")
            assert first is not None
            first.checkpoint.frozen_state["items"][1]["a"].append("loaded one changed")
            first.checkpoint.frozen_state["items"].clear()
            if isinstance(first.checkpoint.metadata, dict):
                first.checkpoint.metadata["k"] = "changed"
            second = await store.load("t")
            await store.save(checkpoint(state={"items": [1, {"a": []}], "more": 1}, metadata={"k": "v"}))
            third = await store.load("t", at=0)

        assert second is not None
        assert third is not None
        assert [({"items": [1, {"a": []}]}, {"k": "v"})] * 2 == [
            (entry.checkpoint.frozen_state, entry.checkpoint.metadata) for entry in (second, third)
        ]

    @promise("save-9")
    async def test_keys_keep_their_order(self, open_store: OpenStore) -> None:
        """A state comes back with its keys in the order in which it was saved, at every depth."""
        state = {"z": 1, "a": {"y": 2, "b": [{"x": 3, "10": 0, "9": 0, "c": 4}]}, "2": 0, "m": None, "1": 0}
        async with open_store() as store:
            await store.save(checkpoint(state=state))
            await store.save(checkpoint(state=dict(reversed(state.items()))))
            first, second = await store.load("t", at=0), await store.load("t")

        assert first is not None
        assert second is not None
        assert spelled(state) == spelled(first.checkpoint.frozen_state)
        assert spelled(dict(reversed(state.items()))) == spelled(second.checkpoint.frozen_state)

    @promise("load-1")
    async def test_a_load_finds_nothing_where_nothing_was_saved(self, open_store: OpenStore) -> None:
        """A load of an unknown thread, or of a sequence that the thread does not have, returns None."""
        async with open_store() as store:
            await store.save(checkpoint("other"))
            await store.save(checkpoint("t"))
            got = [await store.load("unknown"), await store.load("unknown", at=0)]
            got += [await store.load("t", at=at) for at in (1, 2, 2**16, 2**31 - 1)]

        assert [None] * 6 == got

    @promise("load-2")
    async def test_a_load_names_the_checkpoint_and_its_revision(self, open_store: OpenStore) -> None:
        """A load names the sequence and the revision: the sequence with the write ID it was saved under, for every
        handle the same.
        """
        ids = [os.urandom(8) for _ in range(3)]
        async with open_store() as one, open_store() as two:
            for n, write_id in enumerate(ids):
                await one.save(checkpoint(state={"n": n}), write_id=write_id)
            entries = [await two.load("t", at=n) for n in range(3)] + [await two.load("t")]

        assert [(n, Revision(n, ids[n])) for n in (0, 1, 2, 2)] == [
            (entry.sequence, entry.revision) for entry in entries if entry is not None
        ]

    @promise("load-3")
    async def test_saves_without_a_write_id_get_revisions_of_their_own(self, open_store: OpenStore) -> None:
        """A save without a write ID gets one that no other checkpoint has."""
        async with open_store() as store:
            await asyncio.gather(*(store.save(checkpoint(thread)) for thread in "abc" for _ in range(10)))
            entries = [await store.load(thread, at=n) for thread in "abc" for n in range(10)]

        assert 30 == len({entry.revision.write_id for entry in entries if entry is not None})
