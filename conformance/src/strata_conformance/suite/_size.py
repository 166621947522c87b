"""Long threads and large values."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, checkpoint, spelled
from strata_conformance.suite._base import OpenStore, PortTests
from strata_core.capabilities import Capability
from strata_core.options import Deltas
from strata_core.records import ThreadState

__all__ = ["SizeTests"]

LENGTH: Final = 2000


class SizeTests(PortTests):
    """Nothing changes with size."""

    @promise("size-1")
    async def test_a_thread_of_two_thousand_checkpoints_is_a_thread(self, open_store: OpenStore) -> None:
        """A thread of 2,000 checkpoints, with deltas where the store has them, loads at its start, its end and between,
        from another handle, goes on counting, and, where the store can purge, goes whole.
        """
        options: dict[str, Any] = {}
        kept = {f"kept {n}": "x" * 50 for n in range(10)}
        async with open_store() as store:
            purges = Capability.RETENTION in store.capabilities
            if Capability.DELTAS in store.capabilities:
                options["deltas"] = Deltas()
        async with open_store(**options) as store:
            got: list[int] = []
            for start in range(0, LENGTH, 100):
                states = [kept | {"n": n} for n in range(start, start + 100)]
                got += await asyncio.gather(*(store.save(checkpoint(state=state)) for state in states))
        async with open_store(**options) as store:
            places = (0, 1, 15, 16, 999, 1000, 1983, 1984, LENGTH - 1)
            loaded = [await store.load("t", at=n) for n in places]
            beyond = await store.load("t", at=LENGTH)
            further = await store.save(checkpoint(state={"n": LENGTH}))
            left: list[Any] = []
            if purges:
                assert 1 == await store.purge(BASE + timedelta(days=1), states={ThreadState.RUNNING})
                left = [entry for n in (0, 1000, LENGTH) if (entry := await store.load("t", at=n)) is not None]

        assert list(range(LENGTH)) == got
        assert [spelled(kept | {"n": n}) for n in places] == [
            spelled(entry.checkpoint.frozen_state) for entry in loaded if entry is not None
        ]
        assert beyond is None
        assert LENGTH == further
        assert [] == left

    @promise("size-2")
    async def test_a_state_of_five_megabytes_comes_back(self, open_store: OpenStore) -> None:
        """States of five megabytes, in one text and in twenty thousand parts, come back equal, after the storage was
        opened again too, and small ones before and behind them.
        """
        text, parts = "\u00e9" * 2_500_000, {str(n): ["x" * 480, n] for n in range(10_000)}
        states: list[dict[str, Any]] = [{"n": 0}, {"text": text}, {"n": 1}, {"parts": parts}, {"n": 2}]
        async with open_store() as store:
            got = [await store.save(checkpoint(state=state)) for state in states]
        async with open_store() as store:
            loaded = [await store.load("t", at=n) for n in range(len(states))]

        assert list(range(5)) == got
        assert len(states) == sum(
            spelled(state) == spelled(entry.checkpoint.frozen_state)
            for state, entry in zip(states, loaded, strict=True)
            if entry is not None
        )
