"""What a caller is told when a storage fails: never less than is known, never more."""

from __future__ import annotations

import asyncio

import pytest

from strata_core.errors import PluginError, StoreBusyError, StoreUnavailableError
from strata_core.store import RowStore


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("strata_core.store._batcher.PAUSE", 0.0)


@pytest.mark.parametrize("later", [StoreUnavailableError("refused"), StoreBusyError("locked"), RuntimeError("broken")])
def test_an_attempt_that_nobody_heard_leaves_the_outcome_unknown_whatever_follows(probe, memory, checkpoint, later):
    async def scenario():
        probe.faults.update({1: "after", 2: later, 3: later, 4: later})
        async with RowStore(probe) as store:
            with pytest.raises(StoreUnavailableError) as caught:
                await store.save(checkpoint("t", {}))
        return caught.value.maybe_written, isinstance(caught.value, StoreBusyError)

    assert (True, False) == asyncio.run(scenario())
    assert 1 == len(memory._rows["t"])


def test_attempts_that_surely_wrote_nothing_say_so(probe, checkpoint):
    async def scenario():
        probe.faults.update({n: StoreUnavailableError("refused") for n in range(1, 6)})
        async with RowStore(probe) as store:
            with pytest.raises(StoreUnavailableError) as caught:
                await store.save(checkpoint("t", {}))
        return caught.value.maybe_written

    assert not asyncio.run(scenario())


def test_a_busy_storage_is_asked_once_since_the_backend_has_waited_already(probe, checkpoint):
    async def scenario():
        probe.faults[1] = StoreBusyError("locked")
        async with RowStore(probe) as store:
            with pytest.raises(StoreBusyError):
                await store.save(checkpoint("t", {}))

    asyncio.run(scenario())

    assert 1 == len(probe.batches)


def test_each_waiter_gets_an_error_of_its_own(probe, checkpoint):
    async def scenario():
        probe.faults[1] = StoreBusyError("locked")
        async with RowStore(probe) as store:
            return await asyncio.gather(
                *(store.save(checkpoint(f"t{n}", {})) for n in range(3)), return_exceptions=True
            )

    assert 3 == len({id(error) for error in asyncio.run(scenario())})


def test_a_commit_that_never_fits_fails_alone(probe, memory, checkpoint):
    real = memory.commit

    async def commit(batch):
        if any(item.thread_id == "large" for item in batch):
            raise StoreUnavailableError("the disk is full")
        return await real(batch)

    memory.commit = commit

    async def scenario():
        async with RowStore(probe) as store:
            names = ("a", "large", "b", "c")
            return await asyncio.gather(*(store.save(checkpoint(name, {})) for name in names), return_exceptions=True)

    a, large, b, c = asyncio.run(scenario())

    assert [0, 0, 0] == [a, b, c]
    assert isinstance(large, StoreUnavailableError)


def test_a_storage_that_is_away_is_not_asked_once_for_each_of_many(probe, checkpoint):
    async def scenario():
        probe.faults.update({n: StoreUnavailableError("refused") for n in range(1, 100)})
        async with RowStore(probe) as store:
            return await asyncio.gather(
                *(store.save(checkpoint(f"t{n}", {})) for n in range(50)), return_exceptions=True
            )

    errors = asyncio.run(scenario())

    assert all(isinstance(error, StoreUnavailableError) for error in errors)
    assert 6 == len(probe.batches)  # four attempts, and two commits alone


def test_a_backend_that_answers_for_fewer_commits_is_told_by_its_mistake(probe, memory, checkpoint):
    async def commit(batch):
        return []

    memory.commit = commit

    async def scenario():
        async with RowStore(probe) as store:
            with pytest.raises(PluginError, match="0 outcomes for 1 commits"):
                await store.save(checkpoint("t", {}))

    asyncio.run(scenario())


def test_a_loop_that_shuts_down_leaves_nobody_hanging(probe, checkpoint):
    outcomes = []

    async def scenario():
        probe.gate = asyncio.Event()
        store = RowStore(probe)
        await store.__aenter__()

        async def save():
            try:
                await store.save(checkpoint("t", {}))
            except (StoreUnavailableError, asyncio.CancelledError) as error:
                outcomes.append(type(error).__name__)

        task = asyncio.get_running_loop().create_task(save())
        while not probe.batches:
            await asyncio.sleep(0)
        for running in store._link._batcher._running:
            running.cancel()
        await task

    asyncio.run(scenario())

    assert ["StoreUnavailableError"] == outcomes
