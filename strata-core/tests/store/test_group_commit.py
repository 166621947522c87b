"""Group commit: what waits together goes down together, and each keeps its own outcome."""

from __future__ import annotations

import asyncio
import os

import pytest

from strata_core.errors import (
    ConflictError,
    CorruptCheckpointError,
    StoreClosedError,
    StoreUnavailableError,
    UsageError,
)
from strata_core.options import Deltas
from strata_core.rows import Batching
from strata_core.store import RowStore


def test_fifty_waiting_saves_go_down_in_one_batch(probe, checkpoint):
    async def scenario():
        async with RowStore(probe) as store:
            return await asyncio.gather(*(store.save(checkpoint(f"t{n}", {"n": n})) for n in range(50)))

    assert [0] * 50 == asyncio.run(scenario())
    assert [50] == [len(batch) for batch in probe.batches]


@pytest.mark.parametrize(("threads", "in_flight", "sizes"), [(50, 2, [25, 25]), (50, 1, [50]), (15, 2, [15])])
def test_many_that_were_answered_together_go_on_in_two_groups_where_two_can_be_away(
    memory, checkpoint, new_probe, threads, in_flight, sizes
):
    """So that one group is away while the other works."""
    probe = new_probe(memory, Batching(in_flight=in_flight))

    async def thread(store, name):
        return [await store.save(checkpoint(name, {"n": n})) for n in range(2)]

    async def turns():
        for _ in range(20):  # more than it takes until all are away
            await asyncio.sleep(0)

    async def scenario():
        async with RowStore(probe) as store:
            probe.gate = asyncio.Event()
            work = asyncio.gather(*(thread(store, f"t{n}") for n in range(threads)))
            await turns()
            probe.gate.set()
            probe.gate = asyncio.Event()
            await turns()
            away = [len(batch) for batch in probe.batches]
            probe.gate.set()
            return away, await work

    away, sequences = asyncio.run(scenario())

    assert [threads, *sizes] == away
    assert [[0, 1]] * threads == sequences


def test_a_conflict_among_fifty_fails_alone(probe, checkpoint):
    async def scenario():
        async with RowStore(probe) as store:
            return await asyncio.gather(
                *(store.save_if_latest(checkpoint(f"t{n}", {}), 7 if n == 25 else None) for n in range(50)),
                return_exceptions=True,
            )

    outcomes = asyncio.run(scenario())

    assert isinstance(outcomes.pop(25), ConflictError)
    assert [0] * 49 == outcomes
    assert 1 == len(probe.batches)


def test_a_commit_that_breaks_its_batch_fails_alone(probe, memory, checkpoint):
    real = memory.commit

    async def commit(batch):
        if any(item.thread_id == "t3" for item in batch):
            raise CorruptCheckpointError("t3", 0, "cannot be read")
        return await real(batch)

    memory.commit = commit

    async def scenario():
        async with RowStore(probe) as store:
            return await asyncio.gather(
                *(store.save(checkpoint(f"t{n}", {})) for n in range(5)), return_exceptions=True
            )

    outcomes = asyncio.run(scenario())

    assert isinstance(outcomes.pop(3), CorruptCheckpointError)
    assert [0] * 4 == outcomes


def test_saves_of_one_thread_keep_the_order_of_the_calls(probe, checkpoint):
    async def scenario():
        async with RowStore(probe) as store:
            sequences = await asyncio.gather(*(store.save(checkpoint("t", {"n": n})) for n in range(50)))
            log = await store.get_log("t")
            return sequences, [entry.checkpoint.frozen_state["n"] for entry in log.entries]

    assert (list(range(50)), list(range(50))) == asyncio.run(scenario())
    assert all(len({item.thread_id for item in batch}) == len(batch) for batch in probe.batches)


def test_a_batch_holds_no_more_than_its_limits(memory, checkpoint, new_probe):
    probe = new_probe(memory, Batching(max_items=8, max_bytes=1 << 20))

    async def scenario():
        async with RowStore(probe) as store:
            await asyncio.gather(*(store.save(checkpoint(f"t{n}", {})) for n in range(20)))
            probe.batches.clear()
            await asyncio.gather(*(store.save(checkpoint(f"b{n}", {"text": "x" * 400_000})) for n in range(5)))

    asyncio.run(scenario())

    assert [2, 2, 1] == [len(batch) for batch in probe.batches]


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_lost_request_or_answer_is_repeated_and_written_once(probe, checkpoint, fault):
    async def scenario():
        probe.faults[1] = fault
        async with RowStore(probe) as store:
            sequence = await store.save(checkpoint("t", {"n": 0}))
            return sequence, len((await store.get_log("t")).entries)

    assert (0, 1) == asyncio.run(scenario())
    assert 2 == len(probe.batches)


def test_a_save_whose_answer_was_lost_is_recognised_after_another_writer(probe, memory, checkpoint):
    async def scenario():
        async with RowStore(probe) as store, RowStore(memory) as other:
            await store.save(checkpoint("t", {"n": 0}))

            async def interfere():
                await other.save(checkpoint("t", {"n": "theirs"}))

            probe.faults[2] = interfere
            sequence = await store.save_if_latest(checkpoint("t", {"n": 1}), 0)
            return sequence, [e.checkpoint.frozen_state["n"] for e in (await store.get_log("t")).entries]

    assert (1, [0, 1, "theirs"]) == asyncio.run(scenario())


def test_a_storage_that_stays_away_raises_and_tells_that_the_outcome_is_unknown(probe, checkpoint):
    async def scenario():
        probe.faults.update(dict.fromkeys(range(1, 5), "after"))
        write_id = os.urandom(8)
        async with RowStore(probe) as store:
            with pytest.raises(StoreUnavailableError) as caught:
                await store.save(checkpoint("t", {}), write_id=write_id)
            again = await store.save(checkpoint("t", {}), write_id=write_id)
            return caught.value.maybe_written, again, len((await store.get_log("t")).entries)

    assert (True, 0, 1) == asyncio.run(scenario())


def test_a_cancelled_save_that_still_waits_is_dropped(probe, checkpoint):
    async def scenario():
        async with RowStore(probe) as store:
            tasks = [asyncio.create_task(store.save(checkpoint("t", {"n": n}))) for n in range(3)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            await asyncio.wait(tasks)
            return [e.checkpoint.frozen_state["n"] for e in (await store.get_log("t")).entries]

    assert [0, 2] == asyncio.run(scenario())


def test_a_cancelled_save_that_is_under_way_finishes_and_takes_no_neighbour_with_it(probe, checkpoint):
    async def scenario():
        probe.gate = asyncio.Event()
        async with RowStore(probe) as store:
            tasks = [asyncio.create_task(store.save(checkpoint(f"t{n}", {}))) for n in range(5)]
            while not probe.batches:
                await asyncio.sleep(0)
            tasks[2].cancel()
            await asyncio.sleep(0)
            probe.gate.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            return [type(r).__name__ for r in results], (await store.load("t2")).sequence

    assert (["int", "int", "CancelledError", "int", "int"], 0) == asyncio.run(scenario())


def test_closing_waits_for_the_writes_that_were_asked_for(probe, memory, checkpoint):
    async def scenario():
        store = RowStore(probe)
        async with store:
            tasks = [asyncio.create_task(store.save(checkpoint("t", {"n": n}))) for n in range(5)]
            await asyncio.sleep(0)
        return await asyncio.gather(*tasks), len(memory._rows["t"])

    assert ([0, 1, 2, 3, 4], 5) == asyncio.run(scenario())


def test_a_closed_or_unopened_store_says_so(probe, checkpoint):
    async def scenario():
        store = RowStore(probe)
        with pytest.raises(StoreClosedError):
            await store.load("t")
        async with store:
            pass
        await store.close()
        for call in (store.save(checkpoint("t", {})), store.load("t"), store.list_threads()):
            with pytest.raises(StoreClosedError):
                await call

    asyncio.run(scenario())


def test_a_store_is_refused_in_another_event_loop(memory, checkpoint):
    async def scenario():
        async with RowStore(memory) as store:

            def elsewhere():
                with pytest.raises(UsageError, match="event loop"):
                    asyncio.run(store.load("t"))

            await asyncio.to_thread(elsewhere)

    asyncio.run(scenario())


def test_an_opening_that_fails_closes_the_backend(probe, memory):
    async def fail(**_):
        raise StoreUnavailableError("not there")

    memory.open = fail

    async def scenario():
        with pytest.raises(StoreUnavailableError):
            async with RowStore(probe):
                pass

    asyncio.run(scenario())

    assert 1 == probe.closed


def test_saves_with_deltas_that_are_started_together_keep_their_order_and_become_deltas(probe, memory, checkpoint):
    async def scenario():
        async with RowStore(probe, deltas=Deltas()) as store:
            sequences = await asyncio.gather(*(store.save(checkpoint("t", {"n": n, "c": "x" * 99})) for n in range(12)))
            return sequences, [e.checkpoint.frozen_state["n"] for e in (await store.get_log("t")).entries]

    assert (list(range(12)), list(range(12))) == asyncio.run(scenario())
    assert [0] * 12 == [row.whole_at for row in memory._rows["t"]]


def test_a_cancelled_save_with_deltas_lets_the_next_one_pass_and_leaves_nothing_behind(probe, checkpoint):
    async def scenario():
        async with RowStore(probe, deltas=Deltas()) as store:
            for step in range(20):
                tasks = [asyncio.create_task(store.save(checkpoint("t", {"n": n}))) for n in range(4)]
                for _ in range(step):
                    await asyncio.sleep(0)
                tasks[step % 4].cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
                assert sum(isinstance(result, int) for result in results) >= 3
            sequences = [entry.sequence for entry in (await store.get_log("t", limit=1000)).entries]
            return sequences == list(range(len(sequences))), store._saver._turns._queues

    assert (True, {}) == asyncio.run(scenario())


@pytest.mark.parametrize("limit", [1, 1000])
def test_a_purge_whose_answer_is_lost_counts_what_went_and_keeps_to_its_limit(probe, checkpoint, later, limit):
    async def scenario():
        async with RowStore(probe) as store:
            for n in range(3):
                await store.save(checkpoint(f"t{n}", {}, "completed"))
            probe.faults[len(probe.batches) + 1] = "after"
            purged = await store.purge(later, limit=limit)
            return purged, len((await store.list_threads()).threads)

    assert (min(limit, 3), 3 - min(limit, 3)) == asyncio.run(scenario())
